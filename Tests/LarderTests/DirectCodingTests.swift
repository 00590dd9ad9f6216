import Foundation
import LarderBytes
import LarderCoding
import Testing

@testable import Larder

struct DirectSong: DirectCoding, Equatable {
  var id: UUID
  var title: String
  var subtitle: String?
  var url: URL

  init(id: UUID = UUID(), title: String, subtitle: String? = nil, url: URL) {
    (self.id, self.title, self.subtitle, self.url) = (id, title, subtitle, url)
  }

  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    title = try fields.read("title")
    subtitle = try fields.readIfPresent("subtitle")
    url = try fields.read("url")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.write(title, as: "title")
    fields.writeIfPresent(subtitle, as: "subtitle")
    fields.write(url, as: "url")
  }
}

@Suite struct DirectCodingTests {
  @Test func smoke() throws {
    let songs = try (0..<5).map { index in
      DirectSong(
        title: "t\(index)", subtitle: index % 2 == 0 ? nil : "s",
        url: try #require(URL(string: "http://a.b/\(index)")))
    }
    let route = DirectRoute<DirectSong>()
    var buffer = ByteBuffer()
    try route.encode(songs, into: &buffer)
    let bytes = Array(buffer)
    #expect(try Binary.decode([DirectSong].self, from: bytes.span.bytes) == songs)
    #expect(try route.decodeList(bytes.span.bytes) == songs)
    #expect(try route.decodeList(bytes.span.bytes) == songs)
    buffer.truncate(to: 0)
    try route.encode(songs[1], into: &buffer)
    let one = Array(buffer)
    #expect(try route.decode(one.span.bytes) == songs[1])
    #expect(try route.decode(one.span.bytes) == songs[1])
  }
}
