public import Foundation

/// Encodes and decodes the values of a cache.
///
/// A cache writes with one coder. It reads each record with the coder that wrote it, which the
/// record names. So a cache can change its coder at any time, and older entries stay readable.
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
  /// Larder's binary format, for every `Codable` type; the default of a cache.
  ///
  /// It is faster than JSON and lossless: `Date` and `Double` keep every bit. Fields can be added,
  /// removed, reordered or made optional without a new schema version, as long as a field that may
  /// be missing is optional. Values of a ``DirectCoding`` type are coded without `Codable`, also
  /// within values of other types, which is faster.
  ///
  /// - Lists and objects can be nested 128 levels deep. Saving a deeper value throws
  ///   ``StoreError/encoding(key:underlying:)``.
  /// - Nested optionals are flattened, as in JSON: an `Int??` that is `.some(nil)` is read back as
  ///   nil.
  /// - `encode(to:)` is called a second time if it fills its containers out of order, or throws.
  ///   For the first value of a ``DirectCoding`` type it is called once, to compare the fields.
  public static var binary: Coder {
    direct()
      ?? Coder(
        format: .binary,
        encode: { try Binary.encode($0, into: &$1, parts: DirectParts.self) },
        decode: { try Binary.decode(Value.self, from: $0, parts: DirectParts.self) })
  }

  /// Foundation's JSON coders with their default strategies.
  ///
  /// JSON has no number that is infinite or not a number. Saving one throws
  /// ``StoreError/encoding(key:underlying:)``, also for a `Decimal`.
  ///
  /// Lists and objects can be nested 128 levels deep. A deeper value throws
  /// ``StoreError/encoding(key:underlying:)`` when it is saved, and
  /// ``StoreError/undecodable(key:underlying:)`` when it is read. A save calls `encode(to:)` twice,
  /// the first time to check it.
  public static var json: Coder { Coder(.json) }

  /// Foundation's property list coders, in the binary format.
  ///
  /// The top-level value cannot be a single number, string or date. Nesting is limited as in
  /// ``json``.
  public static var propertyList: Coder { Coder(.propertyList) }

  init(_ format: PayloadFormat) {
    self.init(
      format: format, encode: { try format.encode($0, into: &$1) },
      decode: { try format.decode(Value.self, from: $0) })
  }
}

extension Coder where Value == Data {
  /// Stores the bytes unchanged.
  public static var bytes: Coder {
    Coder(
      format: .bytes, encode: { value, buffer in value.withUnsafeBytes { buffer.append($0) } },
      decode: { $0.withUnsafeBytes { Data($0) } })
  }
}

extension Coder where Value == [UInt8] {
  /// Stores the bytes unchanged.
  public static var bytes: Coder {
    Coder(
      format: .bytes, encode: { $1.append($0.span.bytes) },
      decode: { [UInt8]($0) })
  }
}

extension Coder where Value: Codable {
  /// The coders that can decode a `Value`, by their code in a record.
  static var readers: [UInt8: Coder] {
    var readers: [UInt8: Coder] = [
      PayloadFormat.binary.rawValue: .binary, PayloadFormat.json.rawValue: .json,
      PayloadFormat.propertyList.rawValue: .propertyList,
    ]
    // Each cast succeeds only if `Value` is that very type; then raw bytes decode to a value too.
    if let raw = Coder<Data>.bytes as? Coder { readers[PayloadFormat.bytes.rawValue] = raw }
    if let raw = Coder<[UInt8]>.bytes as? Coder { readers[PayloadFormat.bytes.rawValue] = raw }
    return readers
  }
}
