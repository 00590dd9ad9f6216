import Foundation
@testable import Larder

/// Decodes a whole payload with the containers of a `Decoder`, as types do.
///
/// Only the kind of the next value comes from the decoder's internals.
private struct Everything: Decodable {
  let value: BinaryValue

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }

  init(from decoder: any Decoder) throws {
    guard let kind = (decoder as? ValueDecoder)?.place.kind else { fatalError("\(decoder)") }
    let single = try decoder.singleValueContainer()
    switch kind {
    case .null:
      guard single.decodeNil() else { fatalError("a null that does not decode as nil") }
      value = .null
    case .bool: value = .bool(try single.decode(Bool.self))
    case .float: value = .float(try single.decode(Float.self))
    case .double: value = .double(try single.decode(Double.self))
    case .date: value = .date(try single.decode(Date.self))
    case .uuid: value = .uuid(try single.decode(UUID.self))
    case .string, .url:
      // Foundation does not accept every text of a payload as a URL.
      let text = try single.decode(String.self)
      value = kind == .url ? .url(text) : .string(text)
    case .data: value = .data(try single.decode(Data.self))
    case .list:
      var list = try decoder.unkeyedContainer()
      var elements: [BinaryValue] = []
      while !list.isAtEnd { elements.append(try list.decode(Everything.self).value) }
      value = .list(elements)
    case .map, .object:
      let container = try decoder.container(keyedBy: Name.self)
      value = .fields(
        try container.allKeys.map { key in
          (key.stringValue, try container.decode(Everything.self, forKey: key).value)
        })
    case .uint128:
      let number = try single.decode(UInt128.self)
      value = Int128(exactly: number).map(BinaryValue.integer) ?? .large(number)
    default: value = .integer(try single.decode(Int128.self))
    }
  }
}

/// `Binary.read` and decoders must agree on whether a payload is valid, and on its value.
///
/// Only `Binary.read` requires that no bytes follow the value.
func checkTree(of payload: [UInt8]) {
  let tree = Binary.read(payload.span.bytes)
  let decoded = tried { try decode(Everything.self, from: payload).value }
  switch (tree, decoded) {
  case (nil, nil): break
  case (let tree?, let decoded?):
    guard text(of: tree) == text(of: decoded) else { fatalError("\(tree) is not \(decoded)") }
  case (let tree?, nil): fatalError("a decoder refuses \(tree)")
  case (nil, let decoded?):
    guard valueEnd(in: payload, isBeforeShapes: true) else {
      fatalError("`Binary.read` refuses \(decoded)")
    }
  }
  // Skipping a value ends at the same offset as reading it.
  guard tree == nil || valueEnd(in: payload, isBeforeShapes: false) else {
    fatalError("skipping a value ends at another offset than reading it")
  }
}

/// Whether skipping the value ends before the shapes, or exactly at their start.
private func valueEnd(in payload: [UInt8], isBeforeShapes: Bool) -> Bool {
  payload.withUnsafeBytes { bytes in
    tried {
      let payload = try Payload(bytes)
      let place = try payload.tagged(at: Binary.headBytes)
      let left = payload.bytesLeft(from: try payload.end(of: place, depth: 1))
      return isBeforeShapes ? left > 0 : left == 0
    } ?? false
  }
}

/// The decoded shapes must encode to the same bytes.
func checkShapes(of payload: [UInt8]) {
  payload.withUnsafeBytes { bytes in
    guard let payload = tried({ try Payload(bytes) }) else { return }
    var table = ByteBuffer()
    table.append(UInt8(payload.shapes.count))
    for shape in payload.shapes {
      table.append(varint: UInt64(shape.names.count))
      for (name, type) in zip(shape.names, shape.types) {
        write(type, of: payload, to: &table)
        table.append(text: name)
        guard shape.index(of: name).map({ shape.names[$0] == name }) == true else {
          fatalError("no field \(name)")
        }
      }
    }
    let isSame = table.withBytes { $0.elementsEqual(bytes[payload.end...]) }
    guard isSame else { fatalError("other shapes: \(payload.shapes.map(\.names))") }
  }
}

private func write(_ type: WireType, of payload: Payload, to table: inout ByteBuffer) {
  table.append(type.kind.rawValue | (type.isOptional ? WireKind.optionalBit : 0))
  if type.kind == .object { table.append(UInt8(type.argument)) }
  if type.kind == .list {
    let place = WirePlace(kind: .list, argument: type.argument, offset: 0)
    guard let element = tried({ try payload.elementType(of: place) }) else {
      fatalError("a list without a type")
    }
    write(element, of: payload, to: &table)
  }
}
