public import Foundation
package import LarderBytes
import LarderCoding

/// How a cache's values become bytes.
///
/// A cache writes with one coder and reads every record by the coder that the record names, so a
/// cache may change its coder at any time: old entries stay readable.
public struct Coder<Value: Sendable>: Sendable {
  let format: PayloadFormat
  package let encode: @Sendable (Value, inout ByteBuffer) throws -> Void
  package let decode: @Sendable (RawSpan) throws -> Value

  init(
    format: PayloadFormat, encode: @escaping @Sendable (Value, inout ByteBuffer) throws -> Void,
    decode: @escaping @Sendable (RawSpan) throws -> Value
  ) {
    self.format = format
    self.encode = encode
    self.decode = decode
  }
}

extension Coder where Value: Codable {
  /// Larder's own coder, for every `Codable` type: faster than JSON, and nothing is rounded.
  ///
  /// The default of a cache. A `Date` and a `Double` keep every bit. A field that was added,
  /// removed, reordered or made optional needs no new schema version, as long as a field that may
  /// be missing is optional. Lists and objects may be 128 deep within each other; what is deeper
  /// is ``StoreError/encoding(key:underlying:)``.
  ///
  /// A type whose `encode(to:)` fills its containers out of order, or fails, is asked to encode
  /// itself twice.
  ///
  /// An optional within an optional comes back flattened, as with JSON: of an `Int??`, `.some(nil)`
  /// comes back as nil.
  ///
  /// Values of a ``DirectCoding`` type, and arrays of them, go faster, by what that type says.
  public static var binary: Coder {
    direct() ?? Coder(.binary)
  }

  /// Foundation's JSON, with its default strategies.
  ///
  /// Lists and objects may be 128 deep within each other; what is deeper is
  /// ``StoreError/encoding(key:underlying:)``, or ``StoreError/undecodable(key:underlying:)`` when
  /// it is read. To find that out, a value is asked to encode itself twice.
  public static var json: Coder { Coder(.json) }

  /// Foundation's binary property list.
  ///
  /// Its top level cannot be a bare number, text or date. Its limit is that of ``json``.
  public static var propertyList: Coder { Coder(.propertyList) }

  init(_ format: PayloadFormat) {
    self.init(
      format: format, encode: { try format.encode($0, into: &$1) },
      decode: { try format.decode(Value.self, from: $0) })
  }
}

extension Coder where Value == Data {
  /// The bytes themselves, as they are.
  public static var bytes: Coder {
    Coder(
      format: .bytes, encode: { value, buffer in value.withUnsafeBytes { buffer.append($0) } },
      decode: { $0.withUnsafeBytes { Data($0) } })
  }
}

extension Coder where Value == [UInt8] {
  /// The bytes themselves, as they are.
  public static var bytes: Coder {
    Coder(
      format: .bytes, encode: { $1.append($0.span.bytes) },
      decode: { $0.withUnsafeBytes { Array($0) } })
  }
}

extension Coder where Value: Codable {
  /// Every coder that can read a record of `Value`, by the byte that the record names it with.
  static var readers: [UInt8: Coder] {
    var readers: [UInt8: Coder] = [
      PayloadFormat.binary.rawValue: .binary, PayloadFormat.json.rawValue: .json,
      PayloadFormat.propertyList.rawValue: .propertyList,
    ]
    // The casts hold exactly when `Value` is the type named; then raw bytes are a value too.
    if let raw = Coder<Data>.bytes as? Coder { readers[PayloadFormat.bytes.rawValue] = raw }
    if let raw = Coder<[UInt8]>.bytes as? Coder { readers[PayloadFormat.bytes.rawValue] = raw }
    return readers
  }
}
