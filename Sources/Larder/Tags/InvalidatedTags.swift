import Synchronization

/// The tags that were invalidated, each with the sequence of the commit that did it.
///
/// An entry has ended if its value was saved before one of its tags was invalidated. The rows of
/// the tags are read when the store is opened, and followed from then on: a commit that invalidates
/// a tag is noted here before its writer returns, and before observers are notified.
package final class InvalidatedTags: Sendable {
  /// The stamp of a tag's row, which is all of its value.
  static let stamp = Stamp(at: 0)

  private struct State {
    var sequences: [[UInt8]: UInt64] = [:]
    /// Tags whose rows may have been written: by a commit under way, or by one that failed.
    var inDoubt: Set<[UInt8]> = []
  }

  private let state = Lock(State())
  private let count = Atomic<Int>(0)
  private let underWay = Atomic<Int>(0)
  private let forgettings = Atomic<UInt64>(0)
  private let settings = Atomic<UInt64>(0)

  package init() {}

  /// All tags, with their sequences.
  var all: [[UInt8]: UInt64] { state.withLock { $0.sequences } }

  /// A number that is different once a tag was forgotten.
  ///
  /// A reader loads it before it reads a record, and again after it has judged the record: if it
  /// has changed, the entry may have been deleted between, and its tag forgotten.
  var generation: UInt64 { forgettings.load(ordering: .acquiring) }

  /// A number that is different once a tag was invalidated.
  ///
  /// It changes before the call that invalidates a tag returns. A tagged entry that was read in
  /// another epoch must be judged again.
  var epoch: UInt64 { settings.load(ordering: .acquiring) }

  /// Whether a commit that is under way invalidates a tag.
  var isUnderWay: Bool { underWay.load(ordering: .acquiring) > 0 }

  /// Notes in `record`, which was read from `bytes`, whether one of its tags was invalidated after
  /// its value was saved.
  ///
  /// - Complexity: One lookup in memory for each tag while any tag is invalidated; nothing for a
  ///   record without tags.
  package func judge(_ record: inout Record, in bytes: RawSpan) {
    guard record.tags != nil, count.load(ordering: .acquiring) > 0,
      let tags = Tags(of: record, in: bytes)
    else { return }
    let saved = record.originalSequence
    record.isInvalidated = state.withLock { state in
      tags.all.contains { saved < state.sequences[Array($0)] ?? 0 }
    }
  }

  /// The sequence with which a tag was last invalidated; nil if it was not.
  package func sequence(of tag: [UInt8]) -> UInt64? { state.withLock { $0.sequences[tag] } }

  private func set(_ sequence: UInt64?, for tag: [UInt8]) {
    state.withLock { state in
      state.sequences[tag] = sequence
      count.store(state.sequences.count, ordering: .releasing)
      settings.add(1, ordering: .acquiringAndReleasing)
    }
  }
}

// MARK: - Following the rows

extension InvalidatedTags {
  /// Reads the rows of all tags.
  ///
  /// Throws ``StoreError/corrupt(_:)`` if a row is damaged.
  package func read(from engine: any StorageEngine) throws(StoreError) {
    let cursor = try engine.cursor(over: EngineRange(prefix: Metadata.tagPrefix))
    while try cursor.next() {
      guard cursor.withEntry({ key, value in readRow(value, under: key) }) else {
        throw .corrupt("the row of an invalidated tag is damaged")
      }
    }
  }

  /// Reads the row of a tag; returns false if it is damaged.
  package func readRow(_ value: RawSpan, under key: RawSpan) -> Bool {
    guard let sequence = Self.sequence(in: value, under: key) else { return false }
    set(sequence, for: Metadata.tag(in: [UInt8](key)))
    return true
  }

  /// The sequence in the row of a tag; nil if the row is damaged.
  static func sequence(in value: RawSpan, under key: RawSpan) -> UInt64? {
    guard value.byteCount == stamp.end, stamp.isIntact(value, key: key) else { return nil }
    return stamp.sequence(of: value)
  }

  /// Runs `commit`, which writes the row of `tag`.
  func invalidating<E: Error>(_ tag: [UInt8], _ commit: () throws(E) -> Void) throws(E) {
    state.withLock { _ = $0.inDoubt.insert(tag) }
    underWay.add(1, ordering: .acquiringAndReleasing)
    defer { underWay.subtract(1, ordering: .acquiringAndReleasing) }
    try commit()
    // A tag whose commit failed stays in doubt.
    state.withLock { _ = $0.inDoubt.remove(tag) }
  }

  /// Notes the tags that a committed batch has invalidated.
  func committed(_ batch: borrowing WriteBatch, sequence: UInt64) {
    batch.bytes.withBytes { bytes in
      for row in batch.rows
      where row.kind == .put && bytes[row.key].starts(with: Metadata.tagPrefix) {
        set(sequence, for: Metadata.tag(in: Array(bytes[row.key])))
      }
    }
  }

  /// Reads the rows of the tags in doubt again, after the database was reopened.
  ///
  /// A row that cannot be read leaves its tag as it was; the next opening of the store reports it.
  func readAgain(by read: EngineReader) {
    for tag in state.withLock({ $0.inDoubt }) {
      let key = Metadata.tag(tag)
      do throws(StoreError) {
        guard let value = try read(key),
          let sequence = Self.sequence(in: value.span.bytes, under: key.span.bytes)
        else { continue }
        set(sequence, for: tag)
      } catch {
        continue
      }
    }
  }

  /// Forgets a tag whose entries were deleted and whose row was removed, unless it was invalidated
  /// again.
  func remove(_ tag: [UInt8], invalidatedBy sequence: UInt64) {
    state.withLock { state in
      guard state.sequences[tag] == sequence else { return }
      // Before: a reader that does not find the tag then finds another generation.
      forgettings.add(1, ordering: .acquiringAndReleasing)
      state.sequences[tag] = nil
      count.store(state.sequences.count, ordering: .releasing)
    }
  }
}
