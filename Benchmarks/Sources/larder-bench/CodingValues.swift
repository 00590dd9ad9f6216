import Foundation
import Larder

// The values that are encoded and decoded, and for each a `floor`: it makes the value from prepared
// bytes, without a decoder, which is the least time a decoder could take.

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

extension FeedItem {
  private init(id: UUID, description: String?, location: String?, url: URL) {
    (self.id, self.description, self.location, self.url) = (id, description, location, url)
  }

  static func floor(_ items: [FeedItem]) -> () -> [FeedItem] {
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

struct CharacterItem: DirectCoding, Equatable {
  var id: Int
  var name, status, species, gender: String
  var image: URL

  init(_ random: inout WorkloadRandom) {
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

  static func floor(_ characters: [CharacterItem]) -> () -> [CharacterItem] {
    let parts = characters.map { one in
      let texts = [one.name, one.status, one.species, one.gender, one.image.absoluteString]
      return (one.id, texts.map { Array($0.utf8) })
    }
    return {
      var characters: [CharacterItem] = []
      characters.reserveCapacity(parts.count)
      for part in parts { characters.append(CharacterItem(part.0, part.1)) }
      return characters
    }
  }
}

struct Small: DirectCoding, Equatable {
  var id: Int
  var name: String

  init(_ random: inout WorkloadRandom) {
    id = Int(random.next() % 100_000)
    name = "Genre number \(random.next() % 100_000)"
  }

  init(id: Int, name: String) { (self.id, self.name) = (id, name) }

  static func floor(_ value: Small) -> () -> Small {
    let bytes = Array(value.name.utf8)
    return { Small(id: value.id, name: text(bytes)) }
  }
}

struct Blob: DirectCoding, Equatable {
  static let byteCount = 12_800 * 8
  var data: Data

  init(_ random: inout WorkloadRandom) {
    var words: [UInt64] = []
    for _ in 0..<(Blob.byteCount / 8) { words.append(random.next()) }
    data = words.withUnsafeBytes { Data($0) }
  }
}

struct Numbers: DirectCoding, Equatable {
  static let byteCount = 2 * 1000 * 8
  var doubles: [Double]
  var integers: [Int]

  init(_ random: inout WorkloadRandom) {
    doubles = (0..<1000).map { _ in Double.random(in: -1e6...1e6, using: &random) }
    integers = (0..<1000).map { _ in Int.random(in: -1_000_000...1_000_000, using: &random) }
  }
}

extension CharacterItem {
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
