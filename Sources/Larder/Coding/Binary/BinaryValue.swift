package import Foundation

/// The contents of a binary payload, decoded without knowing the value's type.
package indirect enum BinaryValue {
  case null
  case bool(Bool)
  case integer(Int128)
  /// An integer above the largest `Int128`.
  case large(UInt128)
  case float(Float)
  case double(Double)
  case date(Date)
  case uuid(UUID)
  case string(String)
  case data(Data)
  case url(String)
  case list([BinaryValue])
  /// The present fields of an object, or the entries of a map.
  case fields([(name: String, value: BinaryValue)])
}

extension Binary {
  /// Reads a whole payload; nil if it is malformed or bytes follow the value.
  ///
  /// - Complexity: O(n) in the bytes.
  package static func read(_ bytes: RawSpan) -> BinaryValue? {
    bytes.withUnsafeBytes { bytes in
      do throws(Fault) {
        let payload = try Payload(bytes)
        var end = headBytes
        let value = try payload.value(
          of: WireType(kind: .tagged, isOptional: false, argument: 0), at: &end, depth: 1)
        return payload.bytesLeft(from: end) == 0 ? value : nil
      } catch {
        // A malformed payload is never returned in part.
        return nil
      }
    }
  }
}

extension Payload {
  /// Reads a value of `type` and moves `offset` behind it; nil if it is absent.
  fileprivate func value(
    of type: WireType, at offset: inout Int, depth: Int
  ) throws(Fault) -> BinaryValue? {
    guard let place = try resolve(type, at: offset) else {
      offset += 1
      return nil
    }
    offset = place.offset
    switch place.kind {
    case .null: return .null
    case .bool: return .bool(try Bool.read(self, place, end: &offset))
    case .float: return .float(try Float.read(self, place, end: &offset))
    case .double: return .double(try Double.read(self, place, end: &offset))
    case .date: return .date(try Date.read(self, place, end: &offset))
    case .uuid: return .uuid(try UUID.read(self, place, end: &offset))
    case .string: return .string(try valueBytes.text(at: &offset))
    case .url: return .url(try valueBytes.text(at: &offset))
    case .data: return .data(try Data.read(self, place, end: &offset))
    case .list: return .list(try elements(of: place, at: &offset, depth: depth))
    case .map: return .fields(try entries(at: &offset, depth: depth))
    case .object: return .fields(try fields(of: place, at: &offset, depth: depth))
    case .uint128:
      let number = try UInt128.read(self, place, end: &offset)
      return Int128(exactly: number).map(BinaryValue.integer) ?? .large(number)
    default: return .integer(try Int128.read(self, place, end: &offset))
    }
  }

  private func elements(
    of list: WirePlace, at offset: inout Int, depth: Int
  ) throws(Fault) -> [BinaryValue] {
    try checkDepth(depth)
    let type = try elementType(of: list)
    var elements: [BinaryValue] = []
    for _ in 0..<(try count(at: &offset, minimum: minimumBytes(of: type))) {
      elements.append(try value(of: type, at: &offset, depth: depth + 1) ?? .null)
    }
    return elements
  }

  private func entries(
    at offset: inout Int, depth: Int
  ) throws(Fault) -> [(name: String, value: BinaryValue)] {
    try checkDepth(depth)
    let type = WireType(kind: .tagged, isOptional: false, argument: 0)
    var entries: [(name: String, value: BinaryValue)] = []
    var names: Set<String> = []
    for _ in 0..<(try count(at: &offset, minimum: 2)) {
      let name = try valueBytes.text(at: &offset)
      guard names.insert(name).inserted else { throw .malformed("a duplicate entry name") }
      entries.append((name, try value(of: type, at: &offset, depth: depth + 1) ?? .null))
    }
    return entries
  }

  private func fields(
    of object: WirePlace, at offset: inout Int, depth: Int
  ) throws(Fault) -> [(name: String, value: BinaryValue)] {
    let shape = try enter(object, depth: depth)
    var fields: [(name: String, value: BinaryValue)] = []
    for (name, type) in zip(shape.names, shape.types) {
      if let value = try value(of: type, at: &offset, depth: depth + 1) {
        fields.append((name, value))
      }
    }
    return fields
  }
}
