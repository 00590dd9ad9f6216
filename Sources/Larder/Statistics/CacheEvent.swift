/// Something that happened to one key of a cache, for a program that logs, traces or counts it.
///
/// ```swift
/// var options = Store.Options()
/// options.eventHandler = { event in
///   if case .read(.missing) = event.kind { misses.record(event.cache, event.key) }
/// }
/// ```
///
/// ``Statistics`` has the number of each event, and ``Cache/changes(buffered:)`` the saves and
/// removals, in their order and with keys of their type.
public struct CacheEvent: Sendable {
  /// What happened.
  public enum Kind: Sendable {
    /// A call has read the key, also one that then loads it. Scans are not reported.
    case read(ReadOutcome)
    /// A load of the key has ended, alone or with others, after a time by the store's clock. With
    /// an error, it has failed.
    case loaded(in: Duration, failure: (any Error)?)
    /// The store has deleted the entry by itself: its key and record had so many bytes.
    case deleted(Deletion, bytes: Int)
  }

  /// Why a store deletes an entry by itself, as in ``CacheStatistics/Deletions``.
  public enum Deletion: String, Sendable {
    /// A sweep found it expired or invalidated.
    case sweep
    /// ``Cache/validate(maxAge:)`` found it expired or unreadable.
    case validation
    /// The cache's budget had no room.
    case cacheBudget
    /// The store's budget, or that of its files, had no room.
    case storeBudget
  }

  /// The name of the cache.
  public let cache: String
  /// The key, as messages spell it: text as it is, other kinds as in ``KeyKind``'s form for tools.
  public let key: String
  /// What happened to it.
  public let kind: Kind
}

/// What a read of a key has found.
public enum ReadOutcome: String, Sendable {
  /// A fresh entry, on disk.
  case fresh
  /// A fresh value in memory.
  case memory
  /// A stale entry.
  case stale
  /// An entry that has expired or was invalidated.
  case expired
  /// No entry.
  case missing
  /// An error, which the call has thrown.
  case failed
}

extension CacheCounts {
  /// Counts an entry that the store has deleted by itself, and reports it.
  func deleted(
    _ change: RecordChanges.Change, _ cause: CacheEvent.Deletion, keyedBy keyKind: KeyKind
  ) {
    switch cause {
    case .sweep: swept.add(bytes: change.bytes)
    case .validation: validated.add(bytes: change.bytes)
    case .cacheBudget: evictedByOwnBudget.add(bytes: change.bytes)
    case .storeBudget: evictedByStoreBudget.add(bytes: change.bytes)
    }
    guard let report else { return }
    let key = change.key.span.bytes
    let userKey = key.extracting(RecordKey.prefixCount(of: key)...)
    report(
      CacheEvent(
        cache: name, key: keyKind.describe(userKey), kind: .deleted(cause, bytes: change.bytes)))
  }
}

extension CacheCore {
  /// Reports a read of a key.
  @inline(never) func report(_ outcome: ReadOutcome, of key: some CacheKey) {
    key.withEncoded { bytes in
      let key = keyKind.describe(bytes.bytes)
      counts.report?(CacheEvent(cache: name, key: key, kind: .read(outcome)))
    }
  }

  /// Reports what happened to the key of a record, if anyone listens.
  func report(_ kind: CacheEvent.Kind, of key: RecordKey) {
    counts.report?(CacheEvent(cache: name, key: describe(key.bytes.span.bytes), kind: kind))
  }
}
