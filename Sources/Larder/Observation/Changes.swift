import Synchronization

/// A change to an entry or to a whole cache.
public struct Change<Key: CacheKey, Value: Sendable>: Sendable {
  /// The kind of a change.
  public enum Kind: Sendable {
    /// An entry was saved, or its date was updated by ``Cache/touch(_:lifetime:validator:)``.
    case set(Entry<Value>)
    /// The entry was removed, or deleted because it was unreadable.
    case removed
    /// The entry was deleted because it had expired.
    ///
    /// Expiry alone is not reported; the deletion of the expired entry is.
    case expired
    /// The entry was deleted to make room within a budget; see <doc:Budgets>.
    case evicted
    /// All entries of the cache were removed, or the cache was dropped; ``Change/key`` is nil.
    case cleared
    /// The entries with this tag have ended; ``Change/key`` is nil.
    ///
    /// See ``Store/invalidate(tag:durability:)``. Each one is reported as ``expired`` later, when
    /// it is deleted.
    case invalidated(tag: String)
    /// This number of changes was dropped here, because the observer fell behind.
    ///
    /// ``Change/key`` is nil. Read the entries that matter again. It is also reported, with 1, when
    /// the store has opened its files again after a failed write, which may have taken effect.
    case missed(Int)
  }

  /// The key of the entry; nil for ``Kind/cleared``, ``Kind/invalidated(tag:)`` and
  /// ``Kind/missed(_:)``.
  public let key: Key?
  /// The kind of change, with the new entry if one was saved.
  public let kind: Kind
}

extension Change.Kind: CustomStringConvertible {
  /// The kind with its value, tag or number: `set(7)`, `removed`, `missed(3)`.
  public var description: String {
    switch self {
    case .set(let entry): "set(\(entry.value))"
    case .removed: "removed"
    case .expired: "expired"
    case .evicted: "evicted"
    case .cleared: "cleared"
    case .invalidated(let tag): "invalidated(tag: \"\(tag)\")"
    case .missed(let count): "missed(\(count))"
    }
  }
}

/// An asynchronous sequence of the changes to a cache, in the order in which they took effect.
///
/// ```swift
/// for await change in feed.changes(for: id) {
///   if case .set(let entry) = change.kind { show(entry.value) }
/// }
/// ```
///
/// The sequence starts with the first write after it was requested. It reports only acknowledged
/// writes. When a failed write may have taken effect nevertheless, ``Change/Kind/missed(_:)`` asks
/// to read again. The sequence ends when its task is cancelled, its cache is dropped or the store
/// is closed.
///
/// Writers never wait for an observer. If an observer falls behind, the sequence keeps the newest
/// changes, up to its buffer size, and drops older ones; ``Change/Kind/missed(_:)`` tells where,
/// and how many. A sequence supports one loop; request another one for a second loop.
///
/// A screen that shows one value is simpler with `Cache.states(for:loading:load:)`.
public struct Changes<Key: CacheKey, Value: Sendable>: AsyncSequence, Sendable {
  /// The sequence does not throw.
  public typealias Failure = Never

  typealias Read = @Sendable () async -> Change<Key, Value>?

  // Not the store, whose end is the end of the sequence.
  let core: CacheCore<Value>
  let stream: AsyncStream<ChangeBuffer.Element>
  /// Reads the entry that comes first; nil for none.
  let initial: Read?

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    let core: CacheCore<Value>
    var base: AsyncStream<ChangeBuffer.Element>.Iterator
    let initial: Read?
    /// Whether the first entry is to be read.
    var readsInitial: Bool
    /// The version of that entry; changes up to it are left out.
    var first: UInt64 = 0
    /// The number of the next change if none is dropped.
    var expected = 1
    /// The change after those that were dropped.
    var held: ChangeBuffer.Element?

    /// Waits for the next change; returns nil at the end of the sequence.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async -> Change<Key, Value>? {
      if let change = await initialChange() { return change }
      while let (number, change) = await nextElement(isolation: actor) {
        if number > expected {
          held = (number, change)
          defer { expected = number }
          return Change(key: nil, kind: .missed(number - expected))
        }
        expected = number + 1
        if let sequence = change.sequence, sequence <= first { continue }
        // Nobody knows whether it was before or after the entry that was read.
        if case .cleared = change.what, change.sequence == nil { readsInitial = initial != nil }
        if let change = core.change(change, of: Key.self) { return change }
      }
      return nil
    }

    /// Waits for the next change; returns nil at the end of the sequence.
    public mutating func next() async -> Change<Key, Value>? { await next(isolation: nil) }

    nonisolated(nonsending) private mutating func initialChange() async -> Change<Key, Value>? {
      guard readsInitial else { return nil }
      readsInitial = false
      guard let change = await initial?() else { return nil }
      if case .set(let entry) = change.kind { first = entry.version.sequence }
      return change
    }

    private mutating func nextElement(
      isolation actor: isolated (any Actor)?
    ) async -> ChangeBuffer.Element? {
      if let element = held {
        held = nil
        return element
      }
      return await base.next(isolation: actor)
    }
  }

  /// Creates the iterator; call this once for each sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(
      core: core, base: stream.makeAsyncIterator(), initial: initial, readsInitial: initial != nil)
  }
}

extension Cache {
  /// Observes the changes to one entry.
  ///
  /// ```swift
  /// for await change in settings.changes(for: "theme", initial: true) { apply(change) }
  /// ```
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded. A longer key never has changes.
  ///   - initial: Whether the sequence begins with the entry that is there, fresh or stale, as
  ///     ``Change/Kind/set(_:)``; false by default. No change is lost or repeated between it and
  ///     those that follow. An entry that cannot be read is left out: reading it tells why.
  ///   - buffered: The number of changes to keep if the observer falls behind, 64 by default. Each
  ///     one holds its encoded value. A number below 1 is a programmer error.
  /// - Returns: The changes from now on, including ``Change/Kind/cleared`` for the whole cache, and
  ///   ``Change/Kind/invalidated(tag:)`` for any tag. For a closed store or a dropped cache, a
  ///   sequence that ends at once.
  /// - Complexity: While a cache is observed, each write to it copies the changed records that have
  ///   an observer. The observer decodes them. The number of observers of other keys and caches
  ///   makes no difference. A clear and an invalidated tag are reported to each observer.
  public func changes(
    for key: Key, initial: Bool = false, buffered: Int = 64
  ) -> Changes<Key, Value> {
    let read: Changes<Key, Value>.Read = { [weak store, core] in
      guard let store else { return nil }
      let entry = await store.run { Cache(store: store, core: core).presentEntry(for: key) }
      return entry.map { Change(key: key, kind: .set($0)) }
    }
    return Changes(
      core: core,
      stream: store.context.observations.stream(of: core, key: key.encoded(), buffered: buffered),
      initial: initial ? read : nil)
  }

  /// Observes the changes to all entries.
  ///
  /// - Parameter buffered: The number of changes to keep if the observer falls behind, 256 by
  ///   default. Each one holds its encoded value. A number below 1 is a programmer error.
  /// - Returns: The changes from now on. For a closed store or a dropped cache, a sequence that
  ///   ends at once.
  /// - Complexity: As ``changes(for:initial:buffered:)``.
  public func changes(buffered: Int = 256) -> Changes<Key, Value> {
    Changes(
      core: core,
      stream: store.context.observations.stream(of: core, key: nil, buffered: buffered),
      initial: nil)
  }
}

extension Cache {
  /// The entry of a key, fresh or stale; nil if it is absent or cannot be read.
  fileprivate func presentEntry(for key: Key) -> Entry<Value>? {
    do {
      switch try lookup(for: key) {
      case .fresh(let entry), .stale(let entry): return entry
      case .expired, .missing: return nil
      }
    } catch {
      return nil
    }
  }
}

/// The changes that an observer has not read yet.
final class ChangeBuffer: ChangeObserver {
  /// A change with its number, counted from 1, by which the observer sees that some were dropped.
  typealias Element = (number: Int, change: CommittedChange)

  private let continuation: AsyncStream<Element>.Continuation
  private let count = Atomic<Int>(0)

  init(_ continuation: AsyncStream<Element>.Continuation) { self.continuation = continuation }

  func report(_ change: CommittedChange) {
    continuation.yield((count.wrappingAdd(1, ordering: .relaxed).newValue, change))
  }

  func finish() { continuation.finish() }
}

extension Observations {
  /// The changes to a cache, or to one of its keys, from now on.
  func stream(
    of cache: any OpenCache, key: [UInt8]?, buffered: Int
  ) -> AsyncStream<ChangeBuffer.Element> {
    precondition(buffered >= 1, "a buffer for \(buffered) changes; at least 1 is needed")
    let (stream, continuation) = AsyncStream.makeStream(
      of: ChangeBuffer.Element.self, bufferingPolicy: .bufferingNewest(buffered))
    if let remove = add(ChangeBuffer(continuation), of: cache, key: key) {
      continuation.onTermination = { _ in remove() }
    } else {
      continuation.finish()
    }
    return stream
  }
}

extension CacheCore {
  /// Decodes a committed change; nil if its key or value cannot be decoded.
  fileprivate func change<Key: CacheKey>(
    _ change: CommittedChange, of type: Key.Type
  ) -> Change<Key, Value>? {
    let bytes = change.bytes.span.bytes
    let recordKey = bytes.extracting(0..<change.keyCount)
    func key() -> Key? {
      let offset = RecordKey.prefixCount(of: recordKey)
      return Key(encodedKey: recordKey.extracting(offset..<recordKey.byteCount))
    }
    switch change.what {
    case .cleared: return Change(key: nil, kind: .cleared)
    case .reopened: return Change(key: nil, kind: .missed(1))
    case .invalidated:
      return Change(
        key: nil, kind: .invalidated(tag: String(decoding: change.bytes, as: UTF8.self)))
    case .removed(let deletion):
      return key().map { Change(key: $0, kind: Change.Kind(deletion)) }
    case .set:
      let record = bytes.extracting(change.keyCount..<bytes.byteCount)
      do throws(StoreError) {
        let header = try self.record(record, under: recordKey)
        let entry = try entry(of: header, in: record, under: recordKey, at: clock.now())
        return key().map { Change(key: $0, kind: .set(entry)) }
      } catch {
        // The type cannot decode what it has encoded. Reading the entry reports the error.
        return nil
      }
    }
  }
}

extension Change.Kind {
  fileprivate init(_ deletion: RemovalCause) {
    switch deletion {
    case .removed: self = .removed
    case .expired: self = .expired
    case .evicted: self = .evicted
    }
  }
}
