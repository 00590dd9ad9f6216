import Foundation
import LarderBytes

/// A value that has a kind of its own.
protocol WireScalar {
  static var kind: Kind { get }

  /// Appends the body.
  func append(to bytes: inout ByteBuffer)

  /// Reads the value at `place`, and says where its body ends.
  static func read(
    _ payload: Payload, _ place: Place, end: inout Int
  ) throws(Fault) -> Self
}

// MARK: - Numbers

protocol WireInteger: WireScalar, FixedWidthInteger, BitwiseCopyable {}

extension WireInteger {
  func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: self) }

  static func read(
    _ payload: Payload, _ place: Place, end: inout Int
  ) throws(Fault) -> Self {
    if place.kind == kind {
      end = place.offset + kindWidth
      return Self(littleEndian: try payload.load(Self.self, at: place.offset))
    }
    return try readOther(payload, place, end: &end)
  }

  private static var kindWidth: Int { MemoryLayout<Self>.size }

  private static func readOther(
    _ payload: Payload, _ place: Place, end: inout Int
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
    guard let number else { throw .unfit("the number does not fit") }
    return number
  }
}

extension Int8: WireInteger { static var kind: Kind { .int8 } }
extension Int16: WireInteger { static var kind: Kind { .int16 } }
extension Int32: WireInteger { static var kind: Kind { .int32 } }
extension Int64: WireInteger { static var kind: Kind { .int64 } }
extension Int128: WireInteger { static var kind: Kind { .int128 } }
extension UInt8: WireInteger { static var kind: Kind { .uint8 } }
extension UInt16: WireInteger { static var kind: Kind { .uint16 } }
extension UInt32: WireInteger { static var kind: Kind { .uint32 } }
extension UInt64: WireInteger { static var kind: Kind { .uint64 } }
extension UInt128: WireInteger { static var kind: Kind { .uint128 } }

extension Int: WireScalar {
  static var kind: Kind { .int64 }

  func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: Int64(self)) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Int {
    guard let number = Int(exactly: try Int64.read(payload, place, end: &end)) else {
      throw .unfit("the number does not fit")
    }
    return number
  }
}

extension UInt: WireScalar {
  static var kind: Kind { .uint64 }

  func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: UInt64(self)) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> UInt {
    guard let number = UInt(exactly: try UInt64.read(payload, place, end: &end)) else {
      throw .unfit("the number does not fit")
    }
    return number
  }
}

extension Double: WireScalar {
  static var kind: Kind { .double }

  func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: bitPattern) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Double {
    switch place.kind {
    case .double:
      end = place.offset + 8
      return Double(bitPattern: UInt64(littleEndian: try payload.load(at: place.offset)))
    case .float: return Double(try Float.read(payload, place, end: &end))
    default: return Double(try Int128.read(payload, place, end: &end))
    }
  }
}

extension Float: WireScalar {
  static var kind: Kind { .float }

  func append(to bytes: inout ByteBuffer) { bytes.append(littleEndian: bitPattern) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Float {
    if place.kind == .float {
      end = place.offset + 4
      return Float(bitPattern: UInt32(littleEndian: try payload.load(at: place.offset)))
    }
    let wide = try Double.read(payload, place, end: &end)
    let number = Float(wide)
    guard number.isFinite || !wide.isFinite else { throw .unfit("the number does not fit") }
    return number
  }
}

extension Bool: WireScalar {
  static var kind: Kind { .bool }

  func append(to bytes: inout ByteBuffer) { bytes.append(self ? 1 : 0) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Bool {
    guard place.kind == .bool else { throw .mismatch(found: place.kind) }
    let byte: UInt8 = try payload.load(at: place.offset)
    guard byte <= 1 else { throw .malformed("a truth value that is neither 0 nor 1") }
    end = place.offset + 1
    return byte == 1
  }
}

// MARK: - Texts, bytes, and what Foundation has

extension String: WireScalar {
  static var kind: Kind { .string }

  func append(to bytes: inout ByteBuffer) { bytes.append(text: self) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> String {
    if place.kind == .uuid { return try UUID.read(payload, place, end: &end).uuidString }
    guard place.kind == .string || place.kind == .url else {
      throw .mismatch(found: place.kind)
    }
    end = place.offset
    return try payload.text(at: &end)
  }
}

extension Data: WireScalar {
  static var kind: Kind { .data }

  func append(to bytes: inout ByteBuffer) {
    bytes.append(varint: UInt64(count))
    withUnsafeBytes { bytes.append($0) }
  }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Data {
    guard place.kind == .data else { throw .mismatch(found: place.kind) }
    end = place.offset
    return Data(try payload.run(at: &end))
  }
}

extension URL: WireScalar {
  static var kind: Kind { .url }

  /// Only for URLs without a base.
  func append(to bytes: inout ByteBuffer) { bytes.append(text: relativeString) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> URL {
    guard place.kind == .url || place.kind == .string else {
      throw .mismatch(found: place.kind)
    }
    end = place.offset
    guard let url = URL(string: try payload.text(at: &end)) else { throw .unfit("no URL") }
    return url
  }
}

extension UUID: WireScalar {
  static var kind: Kind { .uuid }

  func append(to bytes: inout ByteBuffer) {
    withUnsafeBytes(of: uuid) { bytes.append($0) }
  }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> UUID {
    if place.kind == .string {
      guard let uuid = UUID(uuidString: try String.read(payload, place, end: &end)) else {
        throw .unfit("no UUID")
      }
      return uuid
    }
    guard place.kind == .uuid else { throw .mismatch(found: place.kind) }
    end = place.offset + 16
    // The number has the bytes in their order in memory.
    let bits: UInt128 = try payload.load(at: place.offset)
    return withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}

extension Date: WireScalar {
  static var kind: Kind { .date }

  func append(to bytes: inout ByteBuffer) { timeIntervalSinceReferenceDate.append(to: &bytes) }

  static func read(_ payload: Payload, _ place: Place, end: inout Int) throws(Fault) -> Date {
    var place = place
    if place.kind == .date { place.kind = .double }
    return Date(timeIntervalSinceReferenceDate: try Double.read(payload, place, end: &end))
  }
}
