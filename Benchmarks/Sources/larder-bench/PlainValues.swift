import Foundation

// The values of the suites `feeds` and `coding` as types that are only `Codable`, as most types of
// an application are. A type that is `DirectCoding` is coded directly, also within another type, so
// it cannot show what `Codable` takes.

struct PlainFeedItem: Codable, Equatable, Sendable {
  var id: UUID
  var description: String?
  var location: String?
  var url: URL

  init(_ item: FeedItem) {
    (id, description, location, url) = (item.id, item.description, item.location, item.url)
  }
}

struct PlainCharacter: Codable, Equatable, Sendable {
  var id: Int
  var name, status, species, gender: String
  var image: URL

  init(_ item: CharacterItem) {
    (id, name, status, species) = (item.id, item.name, item.status, item.species)
    (gender, image) = (item.gender, item.image)
  }
}

struct PlainSmall: Codable, Equatable, Sendable {
  var id: Int
  var name: String

  init(_ value: Small) { (id, name) = (value.id, value.name) }
}

struct PlainBlob: Codable, Equatable, Sendable {
  var data: Data

  init(_ value: Blob) { data = value.data }
}

struct PlainNumbers: Codable, Equatable, Sendable {
  var doubles: [Double]
  var integers: [Int]

  init(_ value: Numbers) { (doubles, integers) = (value.doubles, value.integers) }
}
