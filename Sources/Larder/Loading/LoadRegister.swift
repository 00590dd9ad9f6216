import LarderBytes
import LarderEngine
import Synchronization

/// The keys of a store that are being loaded, each with the ticket of the save that follows.
///
/// A change of a key that is made while it is loaded wins: it revokes the ticket. The leader of the
/// commit queue notes changes in the order of commits, before it applies them. So a save after the
/// change fails at its ticket, and the change comes after a save that had its turn before.
///
/// The leader notes them again before the writer returns. A load that was registered in between may
/// have read the disk before the change was applied, and callers that come later must not join it.
final class LoadRegister: Sendable {
  /// The maximum number of tags whose invalidations are remembered one by one.
  private static let tagLimit = 10_000

  private struct Load {
    let ticket: WriteTicket
    let cacheID: UInt64
    /// The number of invalidations before the registration.
    let start: UInt64
    var tags: Set<[UInt8]> = []
    weak var owner: (any LoadOwner)?
  }

  private struct State {
    var loads: [[UInt8]: Load] = [:]
    var invalidations: UInt64 = 0
    /// The number of the last invalidation of each tag, while any key is registered.
    var tags: [[UInt8]: UInt64] = [:]
    /// The invalidations that were forgotten: up to this number.
    var forgotten: UInt64 = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let owner = ProcessOwner()
  private let count = Atomic<Int>(0)

  /// Whether no key is registered; writes skip the register then.
  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }
}

// MARK: - Loads

/// A cache that loads, as the register knows it.
protocol LoadOwner: AnyObject, Sendable {
  /// Ends all loads, because the store is closed.
  func close()
}

extension LoadRegister {
  /// Registers a key before its entry is read; returns false if the store is closed.
  func add(_ key: RecordKey, _ ticket: WriteTicket, of owner: any LoadOwner) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      state.loads[key.bytes] = Load(
        ticket: ticket, cacheID: key.cacheID, start: state.invalidations, owner: owner)
      count.store(state.loads.count, ordering: .sequentiallyConsistent)
      return true
    }
  }

  /// Makes the ticket depend on tags, from its registration on.
  func add(tags: [[UInt8]], to key: [UInt8], _ ticket: WriteTicket) {
    guard !tags.isEmpty else { return }
    state.withLock { state in
      guard let load = state.loads[key], load.ticket === ticket else { return }
      state.loads[key]?.tags.formUnion(tags)
      let isInvalidated =
        load.start < state.forgotten || tags.contains { load.start < state.tags[$0] ?? 0 }
      if isInvalidated { ticket.revoke() }
    }
  }

  /// Ends the registration of a key, unless another load has registered it since.
  func remove(_ key: [UInt8], _ ticket: WriteTicket) {
    state.withLock { state in
      guard state.loads[key]?.ticket === ticket else { return }
      state.loads[key] = nil
      if state.loads.isEmpty { state.tags = [:] }
      count.store(state.loads.count, ordering: .sequentiallyConsistent)
    }
  }

  /// Ends all loads; none begins afterwards.
  func close() {
    // In a forked child, the lock may be held by a thread that does not exist there.
    guard owner.isCurrent else { return }
    let owners = state.withLock { state in
      state.isClosed = true
      return state.loads.values.compactMap(\.owner)
    }
    for owner in owners { owner.close() }
  }
}

// MARK: - Changes

extension LoadRegister {
  /// Notes the changes of a batch that is about to be applied, or whose write has ended.
  ///
  /// Changes that the store makes by itself, such as deleting expired entries, carry a note, and do
  /// not count. The rows of a load's own save depend on its ticket, and do not count either. A
  /// removal counts even if there is nothing to remove.
  func noteChanges(of batch: borrowing WriteBatch, without failed: Set<Int>) {
    batch.bytes.withBytes { bytes in
      for row in batch.rows where row.note == 0 {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        if key.first == KeySpace.records.rawValue {
          if let requirement = row.requirement,
            case .valid = batch.requirements[requirement].condition
          {
            continue
          }
          if row.kind == .remove || row.isKept(without: failed) { changed(key) }
        } else if row.kind == .put {
          if let id = Metadata.reclaimedID(in: key.bytes) { cleared(cacheID: id) }
          if key.starts(with: Metadata.tagPrefix) {
            invalidated(tag: Array(key.dropFirst(Metadata.tagPrefix.count)))
          }
        }
      }
    }
  }

  /// Notes that the keys of a range are about to be removed.
  ///
  /// A save that had its turn before is applied before the next commit, which the caller makes.
  func willRemove(_ range: EngineRange) {
    guard !isEmpty else { return }
    revoke { key, _ in
      !key.lexicographicallyPrecedes(range.lower)
        && range.upper.map { key.lexicographicallyPrecedes($0) } ?? true
    }
  }

  private func changed(_ key: UnsafeRawBufferPointer) {
    let key = Array(key)
    state.withLock { $0.loads[key]?.ticket.revoke() }
  }

  private func cleared(cacheID: UInt64) { revoke { _, load in load.cacheID == cacheID } }

  private func invalidated(tag: [UInt8]) {
    state.withLock { state in
      state.invalidations += 1
      if state.tags.count >= Self.tagLimit {
        state.forgotten = state.invalidations
        state.tags = [:]
      }
      state.tags[tag] = state.invalidations
    }
    revoke { _, load in load.tags.contains(tag) }
  }

  private func revoke(where isAffected: ([UInt8], Load) -> Bool) {
    state.withLock { state in
      for (key, load) in state.loads where isAffected(key, load) { load.ticket.revoke() }
    }
  }
}
