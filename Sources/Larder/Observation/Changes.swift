/// A change to an entry or to a whole cache.
public struct Change<Key: CacheKey, Value: Sendable>: Sendable {
  /// The kind of a change.
  public enum Kind: Sendable {
    /// A value was saved, or its date was updated by ``Cache/touch(_:lifetime:validator:)``.
    case set(Value)
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
  }

  /// The key of the entry; nil for ``Kind/cleared`` and ``Kind/invalidated(tag:)``.
  public let key: Key?
  /// The kind of change, with the new value if one was saved.
  public let kind: Kind
}

/// An asynchronous sequence of the changes to a cache, in the order in which they took effect.
///
/// ```swift
/// for await change in feed.changes(for: id) {
///   if case .set(let value) = change.kind { show(value) }
/// }
/// ```
///
/// The sequence starts with the first write after it was requested. It reports only acknowledged
/// writes: a failed write is not reported, even if its changes turn out later to have taken effect.
/// The sequence ends when its task is cancelled, its cache is dropped or the store is closed.
///
/// Writers never wait for an observer. If an observer falls behind, the sequence keeps the newest
/// changes, up to its buffer size, and drops older ones. An observer that needs every state must
/// also read the cache. A sequence supports one loop; request another one for a second loop.
public struct Changes<Key: CacheKey, Value: Sendable>: AsyncSequence, Sendable {
  /// The sequence does not throw.
  public typealias Failure = Never

  let core: CacheCore<Value>
  let stream: AsyncStream<CommittedChange>

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    let core: CacheCore<Value>
    var base: AsyncStream<CommittedChange>.Iterator

    /// Waits for the next change; returns nil at the end of the sequence.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async -> Change<Key, Value>? {
      while let change = await base.next(isolation: actor) {
        if let change = core.change(change, of: Key.self) { return change }
      }
      return nil
    }

    /// Waits for the next change; returns nil at the end of the sequence.
    public mutating func next() async -> Change<Key, Value>? { await next(isolation: nil) }
  }

  /// Creates the iterator; call this once for each sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(core: core, base: stream.makeAsyncIterator())
  }
}

extension Cache {
  /// Observes the changes to one entry.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded. A longer key never has changes.
  ///   - buffered: The number of changes to keep if the observer falls behind, 64 by default. Each
  ///     one holds its encoded value. A number below 1 is a programmer error.
  /// - Returns: The changes from now on, including ``Change/Kind/cleared`` for the whole cache, and
  ///   ``Change/Kind/invalidated(tag:)`` for any tag. For a closed store or a dropped cache, a
  ///   sequence that ends at once.
  /// - Complexity: While a cache is observed, each write to it copies the changed records that have
  ///   an observer. The observer decodes them. The number of observers of other keys and caches
  ///   makes no difference. A clear and an invalidated tag are reported to each observer.
  public func changes(for key: Key, buffered: Int = 64) -> Changes<Key, Value> {
    Changes(
      core: core,
      stream: store.context.observations.stream(of: core, key: key.encoded(), buffered: buffered))
  }

  /// Observes the changes to all entries.
  ///
  /// - Parameter buffered: The number of changes to keep if the observer falls behind, 256 by
  ///   default. Each one holds its encoded value. A number below 1 is a programmer error.
  /// - Returns: The changes from now on. For a closed store or a dropped cache, a sequence that
  ///   ends at once.
  /// - Complexity: As ``changes(for:buffered:)``.
  public func changes(buffered: Int = 256) -> Changes<Key, Value> {
    Changes(
      core: core, stream: store.context.observations.stream(of: core, key: nil, buffered: buffered))
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
    case .invalidated:
      return Change(
        key: nil, kind: .invalidated(tag: String(decoding: change.bytes, as: UTF8.self)))
    case .removed(let deletion):
      return key().map { Change(key: $0, kind: Change.Kind(deletion)) }
    case .set:
      let record = bytes.extracting(change.keyCount..<bytes.byteCount)
      do throws(StoreError) {
        let header = try self.record(record, under: recordKey)
        let value = try value(of: header, in: record, under: recordKey)
        return key().map { Change(key: $0, kind: .set(value)) }
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
