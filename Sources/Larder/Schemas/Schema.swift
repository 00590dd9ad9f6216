import Foundation

/// The version of its value type that a cache writes, and how it reads older versions.
///
/// ```swift
/// let feed = try store.cache(
///   "feed", of: Feed.self,
///   schema: Schema(version: 3)
///     .reading(1, as: FeedV1.self) { Feed($0) }
///     .reading(2, as: FeedV2.self) { Feed($0) })
/// ```
///
/// Every record carries the version it was written with:
///
/// - A record of an older version with a reader is upgraded each time it is read. It stays on disk
///   unchanged until ``Store/migrate(_:)`` rewrites it.
/// - A record of an older version without a reader throws
///   ``StoreError/undecodable(key:underlying:)``.
/// - A record of a newer version throws ``StoreError/newerSchema(found:known:)``, and is kept for
///   the program that wrote it.
public struct Schema<Value: Sendable>: Sendable {
  /// The version that the cache writes: 0 to 4,294,967,295.
  public let version: Int

  /// The readers of older versions, by version.
  private(set) var readers: [Int: @Sendable (_ coder: UInt8, RawSpan) throws -> Value] = [:]

  /// Creates a schema that writes `version` and reads no older version.
  ///
  /// ```swift
  /// let genres = try store.cache("genres", of: [Genre].self, schema: Schema(version: 2))
  /// ```
  ///
  /// `version` must be 0 to 4,294,967,295; any other value is a programmer error.
  public init(version: Int) {
    precondition(
      UInt32(exactly: version) != nil, "schema version \(version) is outside 0 to \(UInt32.max)")
    self.version = version
  }

  /// Adds a reader that decodes an older version as `Old` and upgrades it to `Value`.
  ///
  /// ```swift
  /// let schema = Schema<Genre>(version: 2).reading(1, as: OldGenre.self) { old in
  ///   Genre(id: old.id, name: old.title)
  /// }
  /// let byID = try store.cache("by id", of: Genre.self, keyedBy: Int.self, schema: schema)
  /// ```
  ///
  /// - Parameters:
  ///   - version: The older version. It must be below ``version``; any other value is a programmer
  ///     error.
  ///   - type: The type that the older version was encoded from.
  ///   - upgrade: Converts an old value. An error it throws becomes the `underlying` error of
  ///     ``StoreError/undecodable(key:underlying:)``.
  /// - Returns: A schema that also reads this version.
  public func reading<Old: Codable & Sendable>(
    _ version: Int, as type: Old.Type, _ upgrade: @escaping @Sendable (Old) throws -> Value
  ) -> Schema {
    precondition(
      (0..<self.version).contains(version),
      "schema version \(version) is not below the schema's own version, \(self.version)")
    let coders = Coder<Old>.readers
    var schema = self
    schema.readers[version] = { coder, payload in
      guard let reader = coders[coder] else { throw UnreadablePayload.coder(coder) }
      return try upgrade(try reader.decode(payload))
    }
    return schema
  }
}

/// Why the store cannot decode a payload.
enum UnreadablePayload: LocalizedError, CustomStringConvertible {
  case coder(UInt8)
  case schema(Int)
  case compression
  case dataKey(UInt32)
  case seal

  var errorDescription: String? { description }

  var description: String {
    switch self {
    case .coder(let code): "its coder, number \(code), does not decode values of this type"
    case .schema(let version): "there is no reader for schema version \(version)"
    case .compression: "it cannot be decompressed"
    case .dataKey(let id): "the data key \(id), which sealed it, is lost"
    case .seal: "it was not sealed for this entry, or was changed since"
    }
  }
}

// An older program does not overwrite entries of a newer schema version. A cache that is opened
// with a lower schema version than it once had reads each key before it is saved; other caches do
// not.
//
// The save carries no condition: nobody writes an entry of a newer version between the read and the
// save, because one process has the store open, and a cache keeps its configuration until the store
// closes.

extension CacheCore {
  /// Throws if a save of `key` would replace an entry of a newer schema version or record format.
  ///
  /// `earlier` holds the changes that the same batch makes before. An entry that it removes is not
  /// replaced.
  func refuseNewerEntry(
    of key: some CacheKey, id: UInt64, after earlier: borrowing WriteBatch
  ) throws(StoreError) {
    guard mayHoldNewerEntries(id) else { return }
    try refuseNewerEntry(under: try recordKey(of: key, id: id), after: earlier)
  }

  /// The same for a record's key, whatever there may be.
  func refuseNewerEntry(
    under recordKey: RecordKey, after earlier: borrowing WriteBatch
  ) throws(StoreError) {
    var buffer = ValueBuffer(from: spareBuffer)
    do throws(StoreError) {
      _ = try record(under: recordKey, into: &buffer, readsPayload: false)
    } catch {
      // A damaged entry cannot be read by any program.
      if case .corrupt = error { return }
      guard earlier.hasRow(under: recordKey.bytes) else { throw error }
    }
  }
}
