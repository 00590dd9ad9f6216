package import Foundation

/// The payloads of all feeds, which are invented and the same in every run.
package enum Payloads {
  package static let genreCount = 120
  package static let characterPages = 42
  package static let charactersPerPage = 100

  package struct Genre: Encodable, Sendable {
    package var id: Int
    package var name: String
    package var parent: Int?

    enum CodingKeys: String, CodingKey {
      case id, name
      case parent = "parent_id"
    }
  }

  package struct CharacterItem: Encodable, Sendable {
    package struct Place: Encodable, Sendable {
      package var name: String
      package var url: String
    }
    package var id: Int
    package var name: String
    package var status: String
    package var species: String
    package var type: String
    package var gender: String
    package var origin: Place
    package var location: Place
    package var image: String
    package var episode: [String]
    package var url: String
    package var created: String
  }

  /// The genres in the order in which the server sends them.
  package static let genres: [Genre] = (0..<genreCount).map { index in
    let first = fields[index % fields.count]
    let second = topics[(index / fields.count + index) % topics.count]
    let isRoot = index % fields.count == 0
    return Genre(
      id: 300 + index, name: "\(first) \(second)",
      parent: isRoot ? nil : 300 + index - index % fields.count)
  }

  /// The characters of a page, numbered from 1; empty beyond the last page.
  package static func characters(page: Int) -> [CharacterItem] {
    guard (1...characterPages).contains(page) else { return [] }
    let first = (page - 1) * charactersPerPage + 1
    return (first..<(first + charactersPerPage)).map(character)
  }

  package static func genresJSON() throws -> Data {
    struct Root: Encodable {
      var genres: [Genre]
      var took_ms = 4
    }
    return try encode(Root(genres: genres))
  }

  package static func charactersJSON(page: Int) throws -> Data {
    struct Root: Encodable {
      struct Pages: Encodable {
        var count: Int
        var pages: Int
        var next: String?
        var prev: String?
      }
      var info: Pages
      var results: [CharacterItem]
    }
    func link(_ page: Int) -> String? {
      (1...characterPages).contains(page) ? "\(host)/api/character?page=\(page)" : nil
    }
    let info = Root.Pages(
      count: characterPages * charactersPerPage, pages: characterPages, next: link(page + 1),
      prev: link(page - 1))
    return try encode(Root(info: info, results: characters(page: page)))
  }

  private static func character(_ id: Int) -> CharacterItem {
    let origin = places[id % places.count]
    let seconds = id % 60
    return CharacterItem(
      id: id, name: "\(titles[id % titles.count]) \(names[(id / titles.count) % names.count])",
      status: ["Alive", "Dead", "unknown"][id % 3],
      species: ["Human", "Alien", "Humanoid", "Robot"][id % 4],
      type: id % 5 == 0 ? "Parasite" : "", gender: ["Female", "Male", "unknown"][id % 3],
      origin: CharacterItem.Place(
        name: origin, url: origin == "unknown" ? "" : "\(host)/api/location/\(id % 20 + 1)"),
      location: CharacterItem.Place(
        name: "Orbit Dock \(id % 9)", url: "\(host)/api/location/\(id % 9 + 40)"),
      image: "\(host)/api/character/avatar/\(id).jpeg",
      episode: (0...(id % 4)).map { "\(host)/api/episode/\($0 + 1)" },
      url: "\(host)/api/character/\(id)",
      created: "2019-02-11T08:15:\(seconds < 10 ? "0" : "")\(seconds).120Z")
  }

  static func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(value)
  }

  private static let host = "https://api.example.org"
  private static let fields = [
    "Urban", "Maritime", "Personal", "Quiet", "Practical", "Lost", "Northern", "Small", "Modern",
    "Outdoor", "Hidden", "Weekly",
  ]
  private static let topics = [
    "Beekeeping", "History", "Finance", "Sleep Science", "Carpentry", "Languages", "Cooking",
    "Astronomy", "Mysteries", "Railways", "Gardens", "Radio Drama", "Chess", "Folk Music",
  ]
  private static let titles = ["Gardener", "Doctor", "Captain", "Baker", "Archivist", "Pilot"]
  private static let names = [
    "of Rust", "Lint", "Ferrum", "Quill", "Thistle", "Marrow", "Sparrow", "Dusk", "Umber",
  ]
  private static let places = ["Station Ferrum", "Lindhaven", "unknown", "Quay 7", "North Ridge"]
}
