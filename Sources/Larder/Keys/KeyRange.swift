/// A range of the keys of a cache, in the order of their encoded bytes.
///
/// A range whose lower bound is above its upper bound is empty.
///
/// It is not a `Range<Key>`: `URL`, `Data` and `[UInt8]` are not `Comparable`, and `String`
/// compares characters while a store compares bytes.
public struct KeyRange<Key: CacheKey>: Sendable {
  /// The inclusive lower bound, encoded.
  let lower: [UInt8]
  /// The exclusive upper bound, encoded; nil if the range has none.
  let upper: [UInt8]?

  /// All keys.
  public static var all: KeyRange { KeyRange(lower: [], upper: nil) }

  /// The keys from `lower`, which is included.
  ///
  /// ```swift
  /// try genres.remove(in: .from("k"))   // "k" and everything after it
  /// ```
  public static func from(_ lower: Key) -> KeyRange {
    KeyRange(lower: lower.encoded(), upper: nil)
  }

  /// The keys below `upper`, which is excluded.
  ///
  /// ```swift
  /// try genres.remove(in: .upTo("k"))   // everything before "k"
  /// ```
  public static func upTo(_ upper: Key) -> KeyRange {
    KeyRange(lower: [], upper: upper.encoded())
  }

  /// The keys from `lower`, which is included, up to `upper`, which is excluded.
  ///
  /// ```swift
  /// try genres.count(in: .from("a", upTo: "k"))   // without "k" itself
  /// ```
  public static func from(_ lower: Key, upTo upper: Key) -> KeyRange {
    KeyRange(lower: lower.encoded(), upper: upper.encoded())
  }
}

extension KeyRange where Key: PrefixKey {
  /// The keys whose encoded bytes begin with `prefix`.
  public static func prefix(_ prefix: Key.Prefix) -> KeyRange {
    let bytes = Array(prefix)
    return KeyRange(lower: bytes, upper: EngineRange.successor(ofPrefix: bytes))
  }
}

extension KeyRange where Key: PrefixKey, Key.Prefix == String.UTF8View {
  /// The keys whose UTF-8 bytes begin with the bytes of `prefix`.
  ///
  /// ```swift
  /// try genres.remove(in: .prefix("user 7/"))
  /// ```
  public static func prefix(_ prefix: String) -> KeyRange { .prefix(prefix.utf8) }
}
