import Foundation
import LarderCoding

/// Which version of its type a cache writes, and how it reads older ones.
///
/// ```swift
/// let feed = try store.cache(
///   "feed", of: Feed.self,
///   schema: Schema(version: 3)
///     .reading(1, as: FeedV1.self) { Feed($0) }
///     .reading(2, as: FeedV2.self) { Feed($0) })
/// ```
///
/// Every record carries the version it was written with. A record of an older version that has a
/// reader is upgraded as it is read and stays on disk as it is, until ``Store/migrate(_:)`` writes
/// it anew; one without a reader is ``StoreError/undecodable(key:underlying:)``; a newer one is
/// ``StoreError/newerSchema(found:known:)`` and is kept for the program that wrote it.
public struct Schema<Value: Sendable>: Sendable {
  /// The version that is written: 0 to 4,294,967,295.
  public let version: Int

  /// How payloads of older versions become values, by version.
  private(set) var readers: [Int: @Sendable (_ coder: UInt8, RawSpan) throws -> Value] = [:]

  /// Makes a schema that writes `version` and reads only that.
  ///
  /// A version outside 0 to 4,294,967,295 is a programmer's error.
  public init(version: Int) {
    precondition(UInt32(exactly: version) != nil, "schema version \(version)")
    self.version = version
  }

  /// Reads payloads of an older version as `Old`, and makes today's value of them.
  ///
  /// - Parameters:
  ///   - version: The older version, below the schema's own; anything else is a programmer's error.
  ///   - type: The type that version was encoded from.
  ///   - upgrade: Makes the value. What it throws is the `underlying` error of
  ///     ``StoreError/undecodable(key:underlying:)``.
  /// - Returns: A schema that reads this older version too.
  public func reading<Old: Codable & Sendable>(
    _ version: Int, as type: Old.Type, _ upgrade: @escaping @Sendable (Old) throws -> Value
  ) -> Schema {
    precondition((0..<self.version).contains(version), "version \(version) is not an older one")
    let coders = Coder<Old>.readers
    var schema = self
    schema.readers[version] = { coder, payload in
      guard let reader = coders[coder] else { throw UnreadablePayload.coder(coder) }
      return try upgrade(try reader.decode(payload))
    }
    return schema
  }
}

/// Why a payload was not even tried to be decoded.
enum UnreadablePayload: LocalizedError, CustomStringConvertible {
  case coder(UInt8)
  case schema(Int)

  var errorDescription: String? { description }

  var description: String {
    switch self {
    case .coder(let code): "its coder, number \(code), does not produce values of this type"
    case .schema(let version): "there is no reader for schema version \(version)"
    }
  }
}
