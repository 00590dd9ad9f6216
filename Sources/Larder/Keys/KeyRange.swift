import LarderEngine

/// Which keys of a cache, in the order of their bytes.
///
/// It is not a `Range<Key>`: `URL`, `Data` and `[UInt8]` are not `Comparable`, and `String`
/// compares by characters where a store compares bytes. A range whose ends are in the wrong order
/// is empty.
public struct KeyRange<Key: CacheKey>: Sendable {
  /// The first key's bytes.
  let lower: [UInt8]
  /// The bytes of the first key that is no longer in the range; nil if there is no such key.
  let upper: [UInt8]?

  /// Every key.
  public static var all: KeyRange { KeyRange(lower: [], upper: nil) }

  /// `lower` and everything above it.
  public static func from(_ lower: Key) -> KeyRange {
    KeyRange(lower: lower.encoded(), upper: nil)
  }

  /// Everything below `upper`, `upper` itself left out.
  public static func upTo(_ upper: Key) -> KeyRange {
    KeyRange(lower: [], upper: upper.encoded())
  }

  /// From `lower` on, below `upper`.
  public static func from(_ lower: Key, upTo upper: Key) -> KeyRange {
    KeyRange(lower: lower.encoded(), upper: upper.encoded())
  }
}

extension KeyRange where Key: PrefixKey {
  /// Every key whose bytes begin with `prefix`.
  public static func prefix(_ prefix: Key.Prefix) -> KeyRange {
    let bytes = Array(prefix)
    return KeyRange(lower: bytes, upper: EngineRange.successor(ofPrefix: bytes))
  }
}

extension KeyRange where Key: PrefixKey, Key.Prefix == String.UTF8View {
  /// Every key whose UTF-8 bytes begin with those of `prefix`.
  public static func prefix(_ prefix: String) -> KeyRange { .prefix(prefix.utf8) }
}
