import Foundation
import Larder
import LarderBytes
import LarderCoding

/// Payloads encoded and decoded by Larder's binary coder, against Foundation's JSON, and against
/// making the same values by hand from bytes that lie ready.
///
/// The values differ from one operation to the next: nothing that remembers the last one would look
/// better than it is.
struct CodingSuite {
  /// How many values are taken in turns.
  private static let variants = 64
  private let operations: Int
  private let rounds: [any Payloads]

  init(_ scale: Scale) throws {
    operations = max(Self.variants, scale.visited / 400)
    var random = SplitMix64(seed: Scale.seed)
    rounds = [
      try PayloadsOf("100 feed items", of: [FeedItem].self, floor: FeedItem.floor) {
        (0..<100).map { _ in FeedItem(&random) }
      },
      try PayloadsOf("100 characters", of: [Character].self, floor: Character.floor) {
        (0..<100).map { _ in Character(&random) }
      },
      try PayloadsOf("small struct", of: Small.self, weight: 50) { Small(&random) },
      try PayloadsOf("100 KB of data", of: Blob.self) { Blob(&random) },
      try PayloadsOf("2,000 numbers", of: Numbers.self) { Numbers(&random) },
    ]
  }

  var contests: [Contest] { rounds.flatMap { $0.contests(operations, variants: Self.variants) } }

  // MARK: - Payloads

  private protocol Payloads {
    func contests(_ operations: Int, variants: Int) -> [Contest]
  }

  /// The same values as Swift has them, as the binary coder writes them, and as JSON.
  private struct PayloadsOf<Value: Codable & Equatable & Sendable>: Payloads {
    /// Makes values from the binary coder's own strings, without a decoder.
    typealias Floor = (Value) throws -> () throws -> Value

    let name: String
    var weight = 1
    var values: [Value] = []
    var binary: [[UInt8]] = []
    var json: [Data] = []
    var floor: [() throws -> Value] = []

    init(
      _ name: String, of type: Value.Type, weight: Int = 1, floor: Floor? = nil,
      make: () -> Value
    ) throws {
      self.name = name
      self.weight = weight
      for _ in 0..<CodingSuite.variants {
        let value = make()
        var buffer = ByteBuffer()
        try Binary.encode(value, into: &buffer)
        let bytes = Array(buffer)
        guard try Self.decode(bytes) == value else { throw WrongResult(name: name) }
        values.append(value)
        binary.append(bytes)
        json.append(try JSONEncoder().encode(value))
        if let floor { self.floor.append(try floor(value)) }
      }
    }

    private static func decode(_ bytes: [UInt8]) throws -> Value {
      try Binary.decode(Value.self, from: bytes.span.bytes)
    }

    func contests(_ operations: Int, variants: Int) -> [Contest] {
      let count = operations * weight
      func run(_ body: @escaping (Int) throws -> Bool) -> Contest.Run {
        {
          try timed(expecting: count) {
            var right = 0
            for step in 0..<count where try body(step % variants) { right += 1 }
            return right
          }
        }
      }
      let buffer = Mutable(ByteBuffer())
      let coder = Coder<Value>.binary
      let encode = Contest(
        name: "encode \(name)", operations: count,
        a: run { index in
          buffer.value.truncate(to: 0)
          try Binary.encode(values[index], into: &buffer.value)
          return buffer.value.count == binary[index].count
        },
        b: run { index in try JSONEncoder().encode(values[index]).count >= json[index].count / 2 })
      let decodeBinary = run { index in
        let value = try Self.decode(binary[index])
        return withExtendedLifetime(value) { true }
      }
      let decode = Contest(
        name: "decode \(name)", operations: count, a: decodeBinary,
        b: run { index in
          let value = try JSONDecoder().decode(Value.self, from: json[index])
          return withExtendedLifetime(value) { true }
        })
      let direct = Contest(
        name: "encode \(name), directly", operations: count,
        a: run { index in
          buffer.value.truncate(to: 0)
          try coder.encode(values[index], &buffer.value)
          return buffer.value.count > 0
        },
        b: run { index in
          buffer.value.truncate(to: 0)
          try Binary.encode(values[index], into: &buffer.value)
          return buffer.value.count == binary[index].count
        })
      let directDecode = Contest(
        name: "decode \(name), directly", operations: count,
        a: run { index in
          let bytes = binary[index]
          let value = try coder.decode(bytes.span.bytes)
          return withExtendedLifetime(value) { true }
        },
        b: decodeBinary)
      guard !floor.isEmpty else { return [encode, decode, direct, directDecode] }
      let made = Contest(
        name: "decode \(name), to making them", operations: count, goal: 1.4, a: decodeBinary,
        b: run { index in
          let value = try floor[index]()
          return withExtendedLifetime(value) { true }
        })
      return [encode, decode, made, direct, directDecode]
    }
  }
}

/// What closures share and change.
private final class Mutable {
  var value: ByteBuffer
  init(_ value: consuming ByteBuffer) { self.value = value }
}

struct WrongResult: Error {
  let name: String
}

// MARK: - Values

/// UTF-8 of a string, ready to become one.
private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

private struct FeedItem: DirectCoding, Equatable {
  var id: UUID
  var description: String?
  var location: String?
  var url: URL

  init(_ random: inout SplitMix64) {
    let bits = (random.next(), random.next())
    id = withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    description =
      random.next() % 4 == 0 ? nil : "A description of number \(random.next() % 1_000_000)"
    location = random.next() % 2 == 0 ? nil : "A location, \(random.next() % 10_000)"
    url = makeURL("https://a-url.example.com/images/\(id.uuidString).jpg")
  }

  private init(id: UUID, description: String?, location: String?, url: URL) {
    (self.id, self.description, self.location, self.url) = (id, description, location, url)
  }

  static func floor(_ items: [FeedItem]) -> () throws -> [FeedItem] {
    let parts = items.map { item in
      (
        item.id.uuid, item.description.map { Array($0.utf8) },
        item.location.map { Array($0.utf8) }, Array(item.url.absoluteString.utf8)
      )
    }
    return {
      var items: [FeedItem] = []
      items.reserveCapacity(parts.count)
      for part in parts {
        items.append(
          FeedItem(
            id: UUID(uuid: part.0), description: part.1.map(text), location: part.2.map(text),
            url: makeURL(text(part.3))))
      }
      return items
    }
  }
}

private struct Character: DirectCoding, Equatable {
  var id: Int
  var name, status, species, gender: String
  var image: URL

  init(_ random: inout SplitMix64) {
    id = Int(random.next() % 1000)
    name = "Character \(random.next() % 100_000_000)"
    status = random.next() % 2 == 0 ? "Alive" : "Dead"
    species = "Humanoid of dimension \(random.next() % 1000)"
    gender = "unknown"
    image = makeURL("https://example.com/api/character/avatar/\(random.next() % 1000).jpeg")
  }

  private init(_ id: Int, _ texts: [[UInt8]]) {
    self.id = id
    (name, status, species, gender) = (
      text(texts[0]), text(texts[1]), text(texts[2]), text(texts[3])
    )
    image = makeURL(text(texts[4]))
  }

  static func floor(_ characters: [Character]) -> () throws -> [Character] {
    let parts = characters.map { one in
      let texts = [one.name, one.status, one.species, one.gender, one.image.absoluteString]
      return (one.id, texts.map { Array($0.utf8) })
    }
    return {
      var characters: [Character] = []
      characters.reserveCapacity(parts.count)
      for part in parts { characters.append(Character(part.0, part.1)) }
      return characters
    }
  }
}

private struct Small: DirectCoding, Equatable {
  var id: Int
  var name: String

  init(_ random: inout SplitMix64) {
    id = Int(random.next() % 100_000)
    name = "Genre number \(random.next() % 100_000)"
  }
}

private struct Blob: DirectCoding, Equatable {
  var data: Data

  init(_ random: inout SplitMix64) {
    var words: [UInt64] = []
    for _ in 0..<12_800 { words.append(random.next()) }
    data = words.withUnsafeBytes { Data($0) }
  }
}

private struct Numbers: DirectCoding, Equatable {
  var doubles: [Double]
  var integers: [Int]

  init(_ random: inout SplitMix64) {
    doubles = (0..<1000).map { _ in Double.random(in: -1e6...1e6, using: &random) }
    integers = (0..<1000).map { _ in Int.random(in: -1_000_000...1_000_000, using: &random) }
  }
}

private func makeURL(_ text: String) -> URL {
  guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
  return url
}

extension FeedItem {
  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    description = try fields.readIfPresent("description")
    location = try fields.readIfPresent("location")
    url = try fields.read("url")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(description, as: "description")
    fields.writeIfPresent(location, as: "location")
    fields.write(url, as: "url")
  }
}

extension Character {
  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.read("name")
    status = try fields.read("status")
    species = try fields.read("species")
    gender = try fields.read("gender")
    image = try fields.read("image")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.write(name, as: "name")
    fields.write(status, as: "status")
    fields.write(species, as: "species")
    fields.write(gender, as: "gender")
    fields.write(image, as: "image")
  }
}

extension Small {
  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.read("name")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.write(name, as: "name")
  }
}

extension Blob {
  init(from fields: inout FieldReader) throws {
    data = try fields.read("data")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(data, as: "data")
  }
}

extension Numbers {
  init(from fields: inout FieldReader) throws {
    doubles = try fields.read("doubles")
    integers = try fields.read("integers")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(doubles, as: "doubles")
    fields.write(integers, as: "integers")
  }
}
