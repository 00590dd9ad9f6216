package import Foundation

/// A type that has a ``WireKind`` of its own.
package protocol WireScalar {
  static var kind: WireKind { get }

  /// Appends the body.
  func append(to bytes: inout ByteBuffer)

  /// Appends the body of the value at `place`, without copying the value.
  static func append(at place: UnsafeRawPointer, to bytes: inout ByteBuffer)

  /// Reads the body at `offset`, which has the type's own kind, and moves `offset` behind it.
  static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Self

  /// Converts the value at `place`, which has another kind, and sets `end` to its body's end.
  static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Self
}

extension WireScalar {
  /// Reads the value at `place`, converting it if necessary, and sets `end` to its body's end.
  @inline(__always)
  package static func read(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Self {
    if place.kind != kind { return try converted(payload, place, end: &end) }
    end = place.offset
    return try body(in: payload.valueBytes, at: &end)
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Self {
    throw .mismatch(found: place.kind)
  }
}

extension WireScalar {
  package static func append(at place: UnsafeRawPointer, to bytes: inout ByteBuffer) {
    // Unsafe: the caller has a value of this type at `place`.
    append(unsafe place.assumingMemoryBound(to: InPlace<Self>.self).pointee, to: &bytes)
  }

  @inline(__always)
  private static func append(_ place: borrowing InPlace<Self>, to bytes: inout ByteBuffer) {
    place.value.append(to: &bytes)
  }
}

// MARK: - Numbers

package protocol WireInteger: WireScalar, FixedWidthInteger, BitwiseCopyable {}

extension WireInteger {
  package func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: self) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Self {
    let number: Self = try bytes.load(at: offset)
    offset += MemoryLayout<Self>.size
    return Self(littleEndian: number)
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Self {
    let number: Self?
    switch place.kind {
    case .int8: number = Self(exactly: try Int8.read(payload, place, end: &end))
    case .int16: number = Self(exactly: try Int16.read(payload, place, end: &end))
    case .int32: number = Self(exactly: try Int32.read(payload, place, end: &end))
    case .int64: number = Self(exactly: try Int64.read(payload, place, end: &end))
    case .int128: number = Self(exactly: try Int128.read(payload, place, end: &end))
    case .uint8: number = Self(exactly: try UInt8.read(payload, place, end: &end))
    case .uint16: number = Self(exactly: try UInt16.read(payload, place, end: &end))
    case .uint32: number = Self(exactly: try UInt32.read(payload, place, end: &end))
    case .uint64: number = Self(exactly: try UInt64.read(payload, place, end: &end))
    case .uint128: number = Self(exactly: try UInt128.read(payload, place, end: &end))
    case .float: number = Self(exactly: try Float.read(payload, place, end: &end))
    case .double: number = Self(exactly: try Double.read(payload, place, end: &end))
    default: throw .mismatch(found: place.kind)
    }
    guard let number else { throw .unsuitable("the number is out of range") }
    return number
  }
}

extension Int8: WireInteger { package static var kind: WireKind { .int8 } }
extension Int16: WireInteger { package static var kind: WireKind { .int16 } }
extension Int32: WireInteger { package static var kind: WireKind { .int32 } }
extension Int64: WireInteger { package static var kind: WireKind { .int64 } }
extension Int128: WireInteger { package static var kind: WireKind { .int128 } }
extension UInt8: WireInteger { package static var kind: WireKind { .uint8 } }
extension UInt16: WireInteger { package static var kind: WireKind { .uint16 } }
extension UInt32: WireInteger { package static var kind: WireKind { .uint32 } }
extension UInt64: WireInteger { package static var kind: WireKind { .uint64 } }
extension UInt128: WireInteger { package static var kind: WireKind { .uint128 } }

extension Int: WireScalar {
  package static var kind: WireKind { .int64 }

  package func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: Int64(self)) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Int {
    try fitting(try Int64.body(in: bytes, at: &offset))
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Int {
    try fitting(try Int64.converted(payload, place, end: &end))
  }

  private static func fitting(_ number: Int64) throws(Fault) -> Int {
    guard let number = Int(exactly: number) else {
      throw .unsuitable("the number is out of range")
    }
    return number
  }
}

extension UInt: WireScalar {
  package static var kind: WireKind { .uint64 }

  package func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: UInt64(self)) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> UInt {
    try fitting(try UInt64.body(in: bytes, at: &offset))
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> UInt {
    try fitting(try UInt64.converted(payload, place, end: &end))
  }

  private static func fitting(_ number: UInt64) throws(Fault) -> UInt {
    guard let number = UInt(exactly: number) else {
      throw .unsuitable("the number is out of range")
    }
    return number
  }
}

extension Double: WireScalar {
  package static var kind: WireKind { .double }

  package func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: bitPattern) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Double {
    Double(bitPattern: try UInt64.body(in: bytes, at: &offset))
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Double {
    if place.kind == .float { return Double(try Float.read(payload, place, end: &end)) }
    return Double(try Int128.read(payload, place, end: &end))
  }
}

extension Float: WireScalar {
  package static var kind: WireKind { .float }

  package func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: bitPattern) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Float {
    Float(bitPattern: try UInt32.body(in: bytes, at: &offset))
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Float {
    let wide = try Double.read(payload, place, end: &end)
    let number = Float(wide)
    guard number.isFinite || !wide.isFinite else {
      throw .unsuitable("the number is out of range")
    }
    return number
  }
}

extension Bool: WireScalar {
  package static var kind: WireKind { .bool }

  package func append(to bytes: inout ByteBuffer) { bytes.append(self ? 1 : 0) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Bool {
    let byte = try UInt8.body(in: bytes, at: &offset)
    guard byte <= 1 else { throw .malformed("a Boolean other than 0 or 1") }
    return byte == 1
  }
}

// MARK: - Strings, bytes and Foundation's types

extension String: WireScalar {
  package static var kind: WireKind { .string }

  package func append(to bytes: inout ByteBuffer) { bytes.append(text: self) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> String {
    try bytes.text(at: &offset)
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> String {
    if place.kind == .uuid { return try UUID.read(payload, place, end: &end).uuidString }
    guard place.kind == .url else { throw .mismatch(found: place.kind) }
    end = place.offset
    return try payload.valueBytes.text(at: &end)
  }
}

extension Data: WireScalar {
  package static var kind: WireKind { .data }

  package func append(to bytes: inout ByteBuffer) {
    bytes.append(varint: UInt64(count))
    withUnsafeBytes { bytes.append($0) }
  }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Data {
    Data(try bytes.run(at: &offset))
  }
}

extension URL: WireScalar {
  package static var kind: WireKind { .url }

  /// Whether the URL at `place` is stored as a string: one with a base is stored as an object.
  static func hasNoBase(at place: UnsafeRawPointer) -> Bool {
    // Unsafe: the caller has a URL at `place`.
    hasNoBase(unsafe place.assumingMemoryBound(to: InPlace<URL>.self).pointee)
  }

  @inline(__always)
  private static func hasNoBase(_ place: borrowing InPlace<URL>) -> Bool {
    place.value.baseURL == nil
  }

  /// Appends the URL, which must not have a base.
  package func append(to bytes: inout ByteBuffer) { bytes.append(text: relativeString) }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> URL {
    guard let url = URL(string: try bytes.text(at: &offset)) else {
      throw .unsuitable("the string is not a URL")
    }
    return url
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> URL {
    guard place.kind == .string else { throw .mismatch(found: place.kind) }
    end = place.offset
    return try body(in: payload.valueBytes, at: &end)
  }
}

extension UUID: WireScalar {
  package static var kind: WireKind { .uuid }

  package func append(to bytes: inout ByteBuffer) {
    withUnsafeBytes(of: uuid) { bytes.append($0) }
  }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> UUID {
    // Loading an integer is one checked read; its bytes in memory are those of the UUID, whose only
    // property they are. `UUID(uuid:)` takes each byte as an argument, which is ten times slower.
    let bits: UInt128 = try bytes.load(at: offset)
    offset += MemoryLayout<UInt128>.size
    return unsafe unsafeBitCast(bits, to: UUID.self)
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> UUID {
    guard place.kind == .string else { throw .mismatch(found: place.kind) }
    guard let uuid = UUID(uuidString: try String.read(payload, place, end: &end)) else {
      throw .unsuitable("the string is not a UUID")
    }
    return uuid
  }
}

extension Date: WireScalar {
  package static var kind: WireKind { .date }

  package func append(to bytes: inout ByteBuffer) {
    timeIntervalSinceReferenceDate.append(to: &bytes)
  }

  package static func body(in bytes: PayloadBytes, at offset: inout Int) throws(Fault) -> Date {
    Date(timeIntervalSinceReferenceDate: try Double.body(in: bytes, at: &offset))
  }

  package static func converted(
    _ payload: Payload, _ place: WirePlace, end: inout Int
  ) throws(Fault) -> Date {
    Date(timeIntervalSinceReferenceDate: try Double.read(payload, place, end: &end))
  }
}
