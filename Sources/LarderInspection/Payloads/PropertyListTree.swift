import Foundation
import Larder

/// Converts a property list of any shape to similar JSON.
///
/// Data becomes `0x` and hex.
struct PropertyListTree: Decodable {
  private let value: Value

  /// A part of a property list, with its dates as they are.
  private indirect enum Value {
    case json(JSONValue)
    case date(Date)
    case list([Value])
    case members([(name: String, value: Value)])
  }

  /// The property list in `bytes`; nil if they are not one.
  static func read(_ bytes: [UInt8], dates: DateForm = .text) -> JSONValue? {
    do {
      let format = PayloadFormat.propertyList
      let tree = try format.decode(PropertyListTree.self, from: bytes.span.bytes)
      return json(tree.value, dates)
    } catch {
      // Not a property list; it is shown in hex.
      return nil
    }
  }

  private static func json(_ value: Value, _ dates: DateForm) -> JSONValue {
    switch value {
    case .json(let value): value
    case .date(let date): dates.json(date)
    case .list(let elements): .array(elements.map { json($0, dates) })
    case .members(let members): .object(members.map { ($0.name, json($0.value, dates)) })
    }
  }

  init(from decoder: any Decoder) throws {
    if let object = Self.tried({ try decoder.container(keyedBy: Name.self) }) {
      let members = try object.allKeys.map {
        (name: $0.stringValue, value: try object.decode(Self.self, forKey: $0).value)
      }
      value = .members(members.sorted { $0.name < $1.name })
    } else if var array = Self.tried({ try decoder.unkeyedContainer() }) {
      var elements: [Value] = []
      while !array.isAtEnd { elements.append(try array.decode(Self.self).value) }
      value = .list(elements)
    } else {
      value = try Self.scalar(in: try decoder.singleValueContainer())
    }
  }

  private static func scalar(
    in container: any SingleValueDecodingContainer
  ) throws -> Value {
    if container.decodeNil() { return .json(.null) }
    if let text = tried({ try container.decode(String.self) }) { return .json(.string(text)) }
    if let truth = tried({ try container.decode(Bool.self) }) { return .json(.bool(truth)) }
    if let number = tried({ try container.decode(Int64.self) }) { return .json(.integer(number)) }
    if let number = tried({ try container.decode(UInt64.self) }) { return .json(.integer(number)) }
    if let date = tried({ try container.decode(Date.self) }) { return .date(date) }
    if let data = tried({ try container.decode(Data.self) }) {
      return .json(.string(KeyForm.hex(data)))
    }
    return .json(.real(try container.decode(Double.self)))
  }

  /// The result of `body`, or nil if it throws, because the value has another type.
  private static func tried<T>(_ body: () throws -> T) -> T? {
    do {
      return try body()
    } catch {
      // The caller tries the next type.
      return nil
    }
  }

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }
}
