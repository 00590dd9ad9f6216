import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// A cache writes with the binary coder by default, and reads what other coders wrote.
@Suite struct BinaryCoderTests {
  private struct Song: Codable, Sendable, Equatable {
    var id: UUID
    var title: String
    var url: URL?
    var played: Date?
  }

  private func song(_ number: Int) -> Song {
    Song(
      id: UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number))),
      title: "Song \(number)", url: URL(string: "https://example.com/\(number)"),
      played: Date(timeIntervalSinceReferenceDate: 0.1 * Double(number)))
  }

  @Test("The binary coder is the default.")
  func isDefault() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.store.cache("songs", of: [Song].self).save([song(1)], for: "k")
    let row = try fixture.onlyRecord()
    #expect(try Record(row.value.span.bytes, under: row.key.span.bytes).coder == 1)
  }

  @Test(
    "A cache that changes from JSON to binary, or back, reads its older entries.",
    arguments: StoreKind.allCases)
  func readsJSON(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let yesterday = try fixture.store.cache("songs", of: [Song].self, coder: .json)
    try yesterday.save([song(1)], for: "old")
    try yesterday.save([song(1)], for: "both")

    try fixture.reopen()
    let today = try fixture.store.cache("songs", of: [Song].self)
    try today.save([song(2), song(3)], for: "new")
    try today.save([song(4)], for: "both")

    #expect(try today.value(for: "old") == [song(1)])
    #expect(try today.value(for: "new") == [song(2), song(3)])
    #expect(try today.value(for: "both") == [song(4)])
    // And back: a cache with the old coder reads the newer entries.
    try fixture.reopen()
    let back = try fixture.store.cache("songs", of: [Song].self, coder: .json)
    #expect(try back.value(for: "new") == [song(2), song(3)])
    #expect(try back.value(for: "old") == [song(1)])
  }

  @Test("Entries of an older schema are upgraded by its reader, whichever coder wrote them.")
  func olderVersions() throws {
    struct SongV1: Codable, Sendable { var name: String }
    struct Old: Error {}
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let coders: [String: Coder<SongV1>] = ["binary": .binary, "json": .json]
    for (name, coder) in coders {
      try fixture.store.cache("songs", of: SongV1.self, coder: coder)
        .save(SongV1(name: name), for: name)
      try fixture.reopen()
    }
    try fixture.store.cache("songs", of: SongV1.self).save(SongV1(name: ""), for: "empty")
    try fixture.reopen()

    let schema = Schema<Song>(version: 2).reading(1, as: SongV1.self) { old in
      guard !old.name.isEmpty else { throw Old() }
      return Song(id: song(7).id, title: old.name, url: nil, played: nil)
    }
    let songs = try fixture.store.cache("songs", of: Song.self, schema: schema)
    for name in coders.keys { #expect(try songs.value(for: name)?.title == name) }
    #expect { try songs.value(for: "empty") } throws: { error in
      guard case StoreError.undecodable(let key, let underlying) = error else { return false }
      return key.contains("empty") && underlying is Old
    }
  }

  @Test("The error for a missing field names the field.")
  func missingField() throws {
    struct Longer: Codable, Sendable {
      var title: String
      var artist: String
    }
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    try fixture.store.cache("songs", of: Song.self).save(song(1), for: "k")
    try fixture.reopen()
    let songs = try fixture.store.cache("songs", of: Longer.self)
    #expect { try songs.value(for: "k") } throws: { error in
      guard case StoreError.undecodable(_, DecodingError.keyNotFound(let key, _)) = error else {
        return false
      }
      return key.stringValue == "artist"
    }
  }

  @Test("A value that is too deep to encode is an error, and nothing is written.")
  func tooDeep() throws {
    struct Deep: Codable, Sendable {
      var inner: [Deep] = []
    }
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("deep", of: Deep.self)
    let deep = (0..<100).reduce(Deep()) { inner, _ in Deep(inner: [inner]) }
    #expect { try cache.save(deep, for: "k") } throws: { error in
      guard case StoreError.encoding = error else { return false }
      return true
    }
    #expect(try fixture.rows(in: .records).isEmpty)
  }
}
