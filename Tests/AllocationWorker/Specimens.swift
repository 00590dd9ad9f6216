import Foundation
package import Larder
package import Specimens

/// A value without references, so that making it allocates nothing.
private struct Numbers: DirectCoding {
  var id: UUID
  var parent: UUID?
  var date: Date
  var a: Int
  var b: Int32
  var c: UInt64
  var d: Int?
  var x: Double
  var y: Float
  var isOpen: Bool
}

private struct Texts: Codable {
  var title: String
  var author: String
  var note: String?
}

private enum Event: Codable {
  case opened(at: Double)
  case moved(x: Int, y: Int)
  case closed
}

/// A value that encodes others into buffers of their own while it is encoded.
private struct Overlapping: Codable {
  var others: Int
  var number = 1

  private enum CodingKeys: CodingKey { case number }

  init(others: Int) { self.others = others }

  init(from decoder: any Decoder) throws {
    others = 0
    number = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .number)
  }

  func encode(to encoder: any Encoder) throws {
    if others > 0 {
      var buffer = ByteBuffer()
      try PayloadFormat.binary.encode(Overlapping(others: others - 1), into: &buffer)
    }
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(number, forKey: .number)
  }
}

// The bytes of texts, as a decoder gets them.
private let longText = Array("a text that is too long to fit into a small string".utf8)
private let address = Array("https://example.com/images/1.png".utf8)
private let identifier = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))

private func text() -> String { String(decoding: longText, as: UTF8.self) }
private func url() -> URL {
  guard let url = URL(string: String(decoding: address, as: UTF8.self)) else { fatalError() }
  return url
}

private func numbers() -> Numbers {
  Numbers(
    id: identifier, parent: identifier, date: Date(timeIntervalSinceReferenceDate: 1.5), a: -1,
    b: 2, c: 3, d: 4, x: 1.5, y: 2.5, isOpen: true)
}

private func item() -> Item {
  Item(id: identifier, description: text(), location: nil, url: url())
}

private func event(_ number: Int) -> Event {
  switch number {
  case 0: .opened(at: 1)
  case 1: .moved(x: 1, y: 2)
  default: .closed
  }
}

extension Specimen {
  static let all: [Specimen] = [
    Specimen("numbers") { numbers() },
    Specimen("100 numbers") { (0..<100).map { _ in numbers() } },
    Specimen("numbers, directly", with: .binary) { numbers() },
    Specimen("100 numbers, directly", with: .binary) { (0..<100).map { _ in numbers() } },
    Specimen("100 items, directly", with: .binary) { (0..<100).map { _ in item() } },
    Specimen("texts") { Texts(title: text(), author: "short", note: text()) },
    Specimen("item") { item() },
    Specimen("100 items") { (0..<100).map { _ in item() } },
    Specimen("tree") {
      Node(value: 1, children: (2...3).map { Node(value: $0, children: []) })
    },
    Specimen("events") { (0..<3).map(event) },
    Specimen("8 at the same time") { Overlapping(others: 7) },
    Specimen("dictionary") { ["a": 1, "b": 2, "c": 3] },
    Specimen("1000 doubles") { Array(repeating: 1.5, count: 1000) },
    Specimen("100 strings") { (0..<100).map { _ in text() } },
    Specimen("string") { text() },
    Specimen("integer") { 7 },
    Specimen("data") { Data(longText) },
  ]
}

extension Numbers {
  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    parent = try fields.readIfPresent("parent")
    date = try fields.read("date")
    a = try fields.read("a")
    b = Int32(truncatingIfNeeded: try fields.read("b") as Int)
    c = UInt64(bitPattern: Int64(try fields.read("c") as Int))
    d = try fields.readIfPresent("d")
    x = try fields.read("x")
    y = Float(try fields.read("y") as Double)
    isOpen = try fields.read("isOpen")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(parent, as: "parent")
    fields.write(date, as: "date")
    fields.write(a, as: "a")
    fields.write(Int(b), as: "b")
    fields.write(Int(bitPattern: UInt(c)), as: "c")
    fields.writeIfPresent(d, as: "d")
    fields.write(x, as: "x")
    fields.write(Double(y), as: "y")
    fields.write(isOpen, as: "isOpen")
  }
}

extension Item: DirectCoding {
  package init(from fields: inout FieldReader) throws {
    self.init(
      id: try fields.read("id"), description: try fields.readIfPresent("description"),
      location: try fields.readIfPresent("location"), url: try fields.read("url"))
  }

  package func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(description, as: "description")
    fields.writeIfPresent(location, as: "location")
    fields.write(url, as: "url")
  }
}
