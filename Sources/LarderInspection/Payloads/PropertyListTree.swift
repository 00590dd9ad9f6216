import Foundation
import LarderCoding

/// Converts a property list of any shape to similar JSON.
///
/// Dates become ISO 8601 strings, and data `0x` and hex.
struct PropertyListTree: Decodable {
  private let json: JSONValue

  /// The property list in `bytes`; nil if they are not one.
  static func read(_ bytes: [UInt8]) -> JSONValue? {
    do {
      let format = PayloadFormat.propertyList
      return try format.decode(PropertyListTree.self, from: bytes.span.bytes).json
    } catch {
      // Not a property list; it is shown in hex.
      return nil
    }
  }

  init(from decoder: any Decoder) throws {
    if let object = Self.tried({ try decoder.container(keyedBy: Name.self) }) {
      let members = try object.allKeys.map {
        (name: $0.stringValue, value: try object.decode(Self.self, forKey: $0).json)
      }
      json = .object(members.sorted { $0.name < $1.name })
    } else if var array = Self.tried({ try decoder.unkeyedContainer() }) {
      var elements: [JSONValue] = []
      while !array.isAtEnd { elements.append(try array.decode(Self.self).json) }
      json = .array(elements)
    } else {
      json = try Self.scalar(in: try decoder.singleValueContainer())
    }
  }

  private static func scalar(
    in container: any SingleValueDecodingContainer
  ) throws -> JSONValue {
    if container.decodeNil() { return .null }
    if let text = tried({ try container.decode(String.self) }) { return .string(text) }
    if let truth = tried({ try container.decode(Bool.self) }) { return .bool(truth) }
    if let number = tried({ try container.decode(Int64.self) }) { return .integer(number) }
    if let number = tried({ try container.decode(UInt64.self) }) { return .integer(number) }
    if let date = tried({ try container.decode(Date.self) }) {
      return .string(Moment.text(date) ?? "\(date.timeIntervalSinceReferenceDate) s since 2001")
    }
    if let data = tried({ try container.decode(Data.self) }) { return .string(KeyForm.hex(data)) }
    return .real(try container.decode(Double.self))
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
