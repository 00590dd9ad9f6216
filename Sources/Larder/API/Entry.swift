public import Foundation

/// A stored value, with its date, age and origin.
public struct Entry<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value
  /// The date it was saved, from the store's clock, stored without rounding.
  public let savedAt: Date
  /// Its age when it was read; negative if it was saved in the future.
  ///
  /// At most 2^63 seconds in each direction; that many if its date is not a number.
  public var age: Duration { Duration(from: savedAt, to: readAt) }
  package let readAt: Date
  /// Where it was read from.
  public let origin: Origin
  /// The version of the value, for a ``Condition``.
  public let version: Version
  /// The validator that it was saved or touched with; nil if it has none.
  public let validator: Validator?
  /// The tags that it was saved with, in Unicode normalization form C.
  public let tags: [String]
  /// The lifetime that it was saved or touched with; nil if the cache's applies.
  ///
  /// Limits in days of a calendar are in seconds here, counted from ``savedAt``.
  public var lifetime: Lifetime? { ownLifetime?.lifetime }
  // In seconds, because a `Lifetime` takes long to copy.
  let ownLifetime: OwnLifetime?
}

extension Entry {
  /// An entry that no store has read, for previews and tests.
  ///
  /// Tags and lifetime are as if they had been saved and read.
  package init(
    value: Value, savedAt: Date, readAt: Date, origin: Origin, lifetime: Lifetime?,
    validator: Validator?, tags: [String]
  ) {
    self.init(
      value: value, savedAt: savedAt, readAt: readAt, origin: origin, version: .unsaved,
      validator: validator, tags: tags.map(\.precomposedStringWithCanonicalMapping),
      ownLifetime: lifetime.map { OwnLifetime($0, from: savedAt) })
  }
}

extension Entry {
  /// The same entry with its value in another type.
  func with<Other: Sendable>(value: Other) -> Entry<Other> {
    Entry<Other>(
      value: value, savedAt: savedAt, readAt: readAt, origin: origin, version: version,
      validator: validator, tags: tags, ownLifetime: ownLifetime)
  }
}

/// Where a value came from.
public struct Origin: Sendable, Hashable {
  private enum Place {
    case memory, disk, shared, loaded
  }

  private let place: Place

  /// From memory: decoded when it was read from disk before, or in a store in memory.
  public static let memory = Origin(place: .memory)
  /// From the store's directory.
  public static let disk = Origin(place: .disk)
  /// From the tier that several machines share; see the product `LarderShared`.
  public static let shared = Origin(place: .shared)
  /// From the closure that loads the values of a cache.
  public static let loaded = Origin(place: .loaded)
}

extension Origin: CustomStringConvertible {
  /// The name of the place: `memory`, `disk`, `shared`, `loaded`.
  public var description: String { "\(place)" }
}

/// Information about an entry, without its value.
public struct EntryMetadata: Sendable, Hashable {
  /// The date it was saved, from the store's clock, stored without rounding.
  public let savedAt: Date
  /// Its age when it was read; negative if it was saved in the future.
  ///
  /// At most 2^63 seconds in each direction; that many if its date is not a number.
  public var age: Duration { Duration(from: savedAt, to: readAt) }
  let readAt: Date
  /// The size of its encoded value as it is stored, in bytes; less than it was if it is compressed.
  public let payloadBytes: Int
  /// The version of the value, for a ``Condition``.
  public let version: Version
  /// The validator that it was saved or touched with; nil if it has none or was invalidated.
  ///
  /// If the server confirms it, ``Cache/touch(_:lifetime:validator:)`` makes the entry fresh again.
  public let validator: Validator?
  /// Whether it has ended because one of its tags was invalidated.
  ///
  /// Such an entry cannot be touched; see ``Store/invalidate(tag:durability:)``.
  public let isInvalidated: Bool
}

extension EntryMetadata {
  /// Metadata that no store has read, for previews and tests.
  package init(
    savedAt: Date, readAt: Date, payloadBytes: Int, validator: Validator?, isInvalidated: Bool
  ) {
    self.init(
      savedAt: savedAt, readAt: readAt, payloadBytes: payloadBytes, version: .unsaved,
      validator: isInvalidated ? nil : validator, isInvalidated: isInvalidated)
  }
}

/// The state of a key in a cache, with its entry if there is one.
public enum Lookup<Value: Sendable>: Sendable {
  /// The entry is younger than the first limit of the cache's lifetime.
  case fresh(Entry<Value>)
  /// The entry is past its fresh time but not expired; use it if no newer value is available.
  case stale(Entry<Value>)
  /// The entry is too old, by its lifetime or by the maximum age of the call, or was invalidated.
  ///
  /// The value is not decoded.
  case expired(EntryMetadata)
  /// The cache has no entry for the key.
  case missing
}
