import Foundation
import LarderCoding

/// A property list of any shape, as the JSON that comes closest.
///
/// Dates become ISO 8601 texts, data `0x` and hex.
struct PropertyListTree: Decodable {
  private let json: JSONValue

  /// The property list in `bytes`; nil when they are none.
  static func read(_ bytes: [UInt8]) -> JSONValue? {
    do {
      let format = PayloadFormat.propertyList
      return try format.decode(PropertyListTree.self, from: bytes.span.bytes).json
    } catch {
      // What is no property list is shown in hex.
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

  /// What `body` gives, or nil: a decoder tells what it holds only by throwing.
  private static func tried<T>(_ body: () throws -> T) -> T? {
    do {
      return try body()
    } catch {
      // It is of another type; the next one is tried.
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
