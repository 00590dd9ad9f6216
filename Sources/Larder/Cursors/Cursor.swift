/// A cursor over the entries, lookups or keys of a cache, in the order of their encoded keys.
///
/// ```swift
/// let cursor = try genres.entries()
/// while let item = try cursor.next() {
///   switch item.entry {
///   case .success(let entry): show(item.key, entry.value)
///   case .failure(let error): report(item.key, error)      // damaged; the scan continues
///   }
/// }
/// ```
///
/// ``Cache/entries(in:order:)``, ``Cache/lookups(in:states:order:)`` and ``Cache/keys(in:order:)``
/// make cursors. A cursor belongs to one thread. It reads a snapshot that is taken when it is
/// created. After 100,000 entries or 10 seconds, it continues on a new snapshot.
///
/// It is not a `Sequence`, because the iterator of a `Sequence` cannot throw.
public final class Cursor<Element> {
  private let step: () throws(StoreError) -> Element?

  init(_ step: @escaping () throws(StoreError) -> Element?) { self.step = step }

  /// Moves to the next element in the order of the scan and returns it; nil at the end.
  ///
  /// ```swift
  /// let keys = try genres.keys()
  /// while let key = try keys.next() { print(key) }
  /// ```
  ///
  /// - Returns: The element, or nil.
  /// - Throws: ``StoreError/undecodable(key:underlying:)`` for a stored key that is not valid for
  ///   the cache's key type; the next call continues after that key.
  ///   ``StoreError/corrupt(cache:key:file:)`` with an empty key if part of a file is damaged,
  ///   after all other elements were returned. ``StoreError/io(_:)``, ``StoreError/closed``.
  /// - Complexity: One step and one checksum for each entry that is returned or skipped, but for
  ///   ``Cache/keys(in:order:)`` no checksum if the payload is in a segment. For each
  ///   fresh or stale entry that ``Cache/entries(in:order:)`` or
  ///   ``Cache/lookups(in:states:order:)`` returns, one decode.
  public func next() throws -> Element? { try step() }
}

/// The states of the entries that a scan returns.
///
/// The states are the same as in ``Lookup``: a lifetime makes an entry fresh, then stale, then
/// expired.
public struct EntryStates: OptionSet, Sendable, Hashable {
  /// The states as bits.
  public let rawValue: UInt8

  /// Creates a set from bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Entries that are younger than the first limit of the lifetime.
  public static let fresh = EntryStates(rawValue: 1 << 0)
  /// Entries that are past their fresh time and have not expired.
  public static let stale = EntryStates(rawValue: 1 << 1)
  /// Entries that have expired and were not deleted yet.
  public static let expired = EntryStates(rawValue: 1 << 2)

  init(_ freshness: Freshness) {
    switch freshness {
    case .fresh: self = .fresh
    case .stale: self = .stale
    case .expired: self = .expired
    }
  }
}

/// The order in which a scan visits the encoded keys of its range.
public enum ScanOrder: Sendable, Hashable {
  /// From the lowest key to the highest.
  case ascending
  /// From the highest key to the lowest.
  ///
  /// It is slower than an ascending scan, which reads small entries ahead.
  case descending
}

// MARK: - Scanning a cache

extension Cache {
  /// Scans the keys in a range whose entries are fresh.
  ///
  /// ```swift
  /// let keys = try genres.keys(in: .prefix("rock/"))
  /// while let key = try keys.next() { print(key) }
  /// ```
  ///
  /// Keys of damaged entries, and of entries of a newer program, are included, because their state
  /// is unknown. Payloads in segments are not read, see <doc:LargeValues>: an entry whose payload
  /// is damaged there is included while it is fresh.
  ///
  /// - Parameters:
  ///   - range: The range of keys; all keys by default.
  ///   - order: The order of the keys; ascending by default.
  /// - Returns: A cursor before the first key. It decodes no values.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func keys(
    in range: KeyRange<Key> = .all, order: ScanOrder = .ascending
  ) throws -> Cursor<Key> {
    keys(of: try RecordWalk(self, range, .fresh, order, readsPayloads: false))
  }

  /// Scans the keys whose entries are fresh and have a tag.
  ///
  /// ```swift
  /// let keys = try pages.keys(tagged: "shop 7")
  /// while let key = try keys.next() { print(key) }
  /// ```
  ///
  /// There is no index of tags: the scan reads the entries of the whole range. As in
  /// ``keys(in:order:)``, keys of damaged entries, and of entries of a newer program, are included,
  /// because their tags are unknown.
  ///
  /// - Parameters:
  ///   - tag: A tag, 1 to 64 bytes of UTF-8; equal texts are one tag.
  ///   - range: The range of keys; all keys by default.
  ///   - order: The order of the keys; ascending by default.
  /// - Returns: A cursor before the first key. It decodes no values.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the tag is empty or too long,
  ///   ``StoreError/io(_:)``, ``StoreError/closed``.
  public func keys(
    tagged tag: String, in range: KeyRange<Key> = .all, order: ScanOrder = .ascending
  ) throws -> Cursor<Key> {
    keys(of: try RecordWalk(self, range, .fresh, tagged: tag, order, readsPayloads: false))
  }

  private func keys(of walk: RecordWalk<Key, Value>) -> Cursor<Key> {
    Cursor { () throws(StoreError) in
      try walk.next { _, _, _, _, _ throws(StoreError) in }?.key
    }
  }

  /// Counts the keys in a range whose entries are fresh.
  ///
  /// ```swift
  /// let count = try genres.count(in: .prefix("rock/"))
  /// ```
  ///
  /// Damaged entries and entries of a newer program count, as in ``keys(in:order:)``.
  ///
  /// - Parameter range: The range of keys; all keys by default.
  /// - Returns: The number of keys.
  /// - Throws: As ``Cursor/next()``.
  /// - Complexity: One step for each entry of the range, and one checksum if its payload is not in
  ///   a segment. Nothing is decoded.
  public func count(in range: KeyRange<Key> = .all) throws -> Int {
    let cursor = try keys(in: range)
    var count = 0
    while try cursor.next() != nil { count += 1 }
    return count
  }

  /// Scans the fresh entries in a range of keys.
  ///
  /// ```swift
  /// let entries = try genres.entries(in: .from("a", upTo: "c"))
  /// while let (key, entry) = try entries.next() {
  ///   print(key, try entry.get().savedAt)   // a damaged entry throws, the next one does not
  /// }
  /// ```
  ///
  /// Stale and expired entries are skipped, as in ``value(for:)``. An entry that cannot be read is
  /// returned as its error: a damaged one, one of a newer program, or a fresh one whose value does
  /// not decode.
  ///
  /// - Parameters:
  ///   - range: The range of keys; all keys by default.
  ///   - order: The order of the keys; ascending by default.
  /// - Returns: A cursor before the first entry.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func entries(
    in range: KeyRange<Key> = .all, order: ScanOrder = .ascending
  ) throws -> Cursor<(key: Key, entry: Result<Entry<Value>, StoreError>)> {
    entries(of: try RecordWalk(self, range, .fresh, order))
  }

  /// Scans the fresh entries that have a tag.
  ///
  /// ```swift
  /// let entries = try pages.entries(tagged: "shop 7")
  /// while let (key, entry) = try entries.next() {
  ///   print(key, try entry.get().tags)
  /// }
  /// ```
  ///
  /// There is no index of tags: the scan reads the entries of the whole range, and decodes those
  /// with the tag. An entry that cannot be read is returned as its error, as in
  /// ``entries(in:order:)``, because its tags are unknown.
  ///
  /// - Parameters:
  ///   - tag: A tag, 1 to 64 bytes of UTF-8; equal texts are one tag.
  ///   - range: The range of keys; all keys by default.
  ///   - order: The order of the keys; ascending by default.
  /// - Returns: A cursor before the first entry.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the tag is empty or too long,
  ///   ``StoreError/io(_:)``, ``StoreError/closed``.
  public func entries(
    tagged tag: String, in range: KeyRange<Key> = .all, order: ScanOrder = .ascending
  ) throws -> Cursor<(key: Key, entry: Result<Entry<Value>, StoreError>)> {
    entries(of: try RecordWalk(self, range, .fresh, tagged: tag, order))
  }

  private func entries(
    of walk: RecordWalk<Key, Value>
  ) -> Cursor<(key: Key, entry: Result<Entry<Value>, StoreError>)> {
    let core = core
    return Cursor { () throws(StoreError) in
      try walk.next { record, _, bytes, recordKey, now throws(StoreError) in
        try core.entry(of: record, in: bytes, under: recordKey, at: now)
      }
    }
  }

  /// Scans the entries in a range of keys that are in one of several states.
  ///
  /// ```swift
  /// let cursor = try pages.lookups(states: [.stale, .expired], order: .descending)
  /// while let item = try cursor.next() {
  ///   if case .success(.expired(let metadata)) = item.found { refresh(item.key, metadata) }
  /// }
  /// ```
  ///
  /// An expired entry is returned as its metadata, without its value. An entry whose state is
  /// unknown is always returned, as its error, also if `states` is empty: a damaged one, or one of
  /// a newer program. An entry in one of the states whose value does not decode is returned as its
  /// error, too.
  ///
  /// - Parameters:
  ///   - range: The range of keys; all keys by default.
  ///   - states: The states of the entries that are returned.
  ///   - order: The order of the keys; ascending by default.
  /// - Returns: A cursor before the first entry. It never returns ``Lookup/missing``.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func lookups(
    in range: KeyRange<Key> = .all, states: EntryStates, order: ScanOrder = .ascending
  ) throws -> Cursor<(key: Key, found: Result<Lookup<Value>, StoreError>)> {
    let walk = try RecordWalk(self, range, states, order)
    let core = core
    return Cursor { () throws(StoreError) in
      let item = try walk.next { record, freshness, bytes, recordKey, now throws(StoreError) in
        try core.lookup(record, freshness, in: bytes, under: recordKey, at: now)
      }
      return item.map { (key: $0.key, found: $0.entry) }
    }
  }
}
