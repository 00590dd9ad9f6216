import Foundation
import LarderFeeds
import Testing

@testable import Larder

/// The models are coded directly, under the names that `Codable` gives their fields.
@Suite struct DirectModelTests {
  private func expectDirect<T: DirectCoding & Equatable>(
    _ values: [T], at place: SourceLocation = #_sourceLocation
  ) throws {
    var buffer = ByteBuffer()
    try Coder<[T]>.binary.encode(values, &buffer)
    let direct = Array(buffer)
    #expect(direct[6] == WireKind.object.rawValue, "objects of one shape", sourceLocation: place)
    #expect(
      try Binary.decode([T].self, from: direct.span.bytes) == values, sourceLocation: place)
    buffer.truncate(to: 0)
    try Binary.encode(values, into: &buffer)
    let byCodable = Array(buffer)
    let route = DirectRoute<T>()
    for bytes in [direct, byCodable, direct] {
      #expect(
        try bytes.withUnsafeBytes { try route.readList($0) } == values, sourceLocation: place)
    }
  }

  @Test("Every model reads and writes the payloads of Codable directly.")
  func everyModel() throws {
    let url = try #require(URL(string: "https://example.com/a%20b.png"))
    let id = UUID()
    try expectDirect([Genre(id: 1, name: "News"), Genre(id: -2, name: "")])
    try expectDirect([
      FeedItem(id: id, description: "a", location: "b", imageURL: url),
      FeedItem(id: id, imageURL: url),
    ])
    try expectDirect([
      FeedImage(id: id, description: "a", location: "b", url: url), FeedImage(id: id, url: url),
    ])
    try expectDirect([
      MediaItem(
        trackName: "a", artistName: "b", collectionName: "c", artworkUrl100: "d",
        artworkUrl60: "e", previewURL: "f"),
      MediaItem(trackName: "", artistName: "", collectionName: ""),
    ])
    try expectDirect([
      CharacterItem(
        id: 1, name: "a", status: "b", species: "c", origin: "d", imageURL: url)
    ])
  }
}
