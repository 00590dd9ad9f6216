/// A change of an entry, or of a whole cache.
public struct Change<Key: CacheKey, Value: Sendable>: Sendable {
  /// What happened.
  public enum Kind: Sendable {
    /// A value was saved, or stamped anew by ``Cache/touch(_:)``.
    case set(Value)
    /// The entry was removed, or deleted because it could not be read.
    case removed
    /// The entry was deleted because it had expired.
    ///
    /// That an entry expires is not told by itself: it is by whoever deletes it.
    case expired
    /// The entry was deleted to make room within a budget: see <doc:Budgets>.
    case evicted
    /// All entries of the cache were removed; there is no key.
    case cleared
  }

  /// The entry's key; nil for ``Kind/cleared``.
  public let key: Key?
  /// What happened to it.
  public let kind: Kind
}

/// The changes of a cache, one after the other, in the order in which they took effect.
///
/// ```swift
/// for await change in feed.changes(for: id) {
///   if case .set(let value) = change.kind { show(value) }
/// }
/// ```
///
/// It begins with what is written after it was asked for, and it tells what was acknowledged: a
/// write that failed is not in it, even if its changes turn out to be there later. It ends with its
/// task, and when the store is closed.
///
/// Writers never wait for a reader. A reader that falls behind keeps the newest changes, as many as
/// it was made for, and loses those before them; whoever needs every state reads the cache after
/// such a gap, and may compare. For one loop: ask again for a second one.
public struct Changes<Key: CacheKey, Value: Sendable>: AsyncSequence, Sendable {
  /// Reading changes does not fail.
  public typealias Failure = Never

  let core: CacheCore<Value>
  let stream: AsyncStream<CommittedChange>

  /// Goes over the changes.
  public struct Iterator: AsyncIteratorProtocol {
    let core: CacheCore<Value>
    var base: AsyncStream<CommittedChange>.Iterator

    /// Waits for the next change; nil when the task is cancelled or the store is closed.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async -> Change<Key, Value>? {
      while let change = await base.next(isolation: actor) {
        if let change = core.change(change, of: Key.self) { return change }
      }
      return nil
    }

    /// Waits for the next change; nil when the task is cancelled or the store is closed.
    public mutating func next() async -> Change<Key, Value>? { await next(isolation: nil) }
  }

  /// An iterator over the changes; there should be one.
  public func makeAsyncIterator() -> Iterator {
    Iterator(core: core, base: stream.makeAsyncIterator())
  }
}

extension Cache {
  /// The changes of one entry.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded; of a longer one there are no changes.
  ///   - buffered: How many changes are kept for a reader that falls behind: 1 or more, the newest.
  ///     64 by default. Each holds its encoded value. Less than 1 is a programmer's error.
  /// - Returns: The changes from now on, those of the whole cache among them
  ///   (``Change/Kind/cleared``). None, and an end, for a store that is closed.
  /// - Complexity: Every write of the store copies the changed records, while somebody observes
  ///   their cache; reading decodes them.
  public func changes(for key: Key, buffered: Int = 64) -> Changes<Key, Value> {
    Changes(
      core: core,
      stream: store.context.observations.stream(of: core, key: key.encoded(), buffered: buffered))
  }

  /// The changes of all entries.
  ///
  /// - Parameter buffered: How many changes are kept for a reader that falls behind: 1 or more, the
  ///   newest. 256 by default. Each holds its encoded value. Less than 1 is a programmer's error.
  /// - Returns: The changes from now on. None, and an end, for a store that is closed.
  /// - Complexity: As ``changes(for:buffered:)``.
  public func changes(buffered: Int = 256) -> Changes<Key, Value> {
    Changes(
      core: core, stream: store.context.observations.stream(of: core, key: nil, buffered: buffered))
  }
}

extension CacheCore {
  /// A change as users see it; nil if its value or key cannot be read as the cache's.
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
    case .removed(let deletion):
      return key().map { Change(key: $0, kind: Change.Kind(deletion)) }
    case .set:
      let record = bytes.extracting(change.keyCount..<bytes.byteCount)
      do throws(StoreError) {
        let header = try self.record(record, under: recordKey)
        let value = try value(of: header, in: record, under: recordKey)
        return key().map { Change(key: $0, kind: .set(value)) }
      } catch {
        // A type that encodes what it does not decode. Reading the entry says so.
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
