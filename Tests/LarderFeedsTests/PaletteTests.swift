import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Testing

/// A palette gives an application's own colors to genres, by position.
@Suite(.acceptance) struct PaletteTests {
  private let genres = (0..<6).map { Genre(id: 100 - $0, name: "Genre \($0)") }

  private func palette(_ colors: [String]) throws -> Palette<String> {
    var palette = Palette { $0 }
    try palette.setColors(colors)
    return palette
  }

  @Test("Every genre has a color.")
  func everyGenre() throws {
    let colored = try palette(["111111"]).colored(genres)

    #expect(colored.map(\.id) == genres.map(\.id))
    #expect(colored.map(\.name) == genres.map(\.name))
    #expect(colored.map(\.color) == Array(repeating: "111111", count: 6))
  }

  @Test("Each application's colors are its own.")
  func twoPalettes() throws {
    let first = try palette(["111111"])
    let second = try palette(["222222"])

    #expect(try first.color(at: 0) == "111111")
    #expect(try second.color(at: 0) == "222222")
  }

  @Test("Colors are assigned by position, in turn.")
  func inTurn() throws {
    let colored = try palette(["000000", "111111", "222222"]).colored(genres)

    #expect(
      colored.map(\.color) == ["000000", "111111", "222222", "000000", "111111", "222222"])
  }

  @Test("Valid colors are kept verbatim.")
  func keptVerbatim() throws {
    let colors = ["000000", "#ffffff", "#FFffFF", "abcDEF", "000000"]

    #expect(try palette(colors).colors == colors)
  }

  @Test(
    "An invalid color is refused, and the former colors stay.",
    arguments: [
      "mmmmmm", "", "#", "12345", "#12345", "1234567", "f##fff", "##ffffff", "ffffff#", " 12345",
      "\u{FF21}\u{FF21}\u{FF21}\u{FF21}\u{FF21}\u{FF21}", "12345\u{301}", "0x1234",
    ])
  func refused(text: String) throws {
    var palette = try palette(["111111"])

    let error = #expect(throws: PaletteError.self) {
      try palette.setColors(["222222", text, "333333"])
    }

    #expect(error == .invalidColor(text))
    #expect(palette.colors == ["111111"])
  }

  @Test("An empty palette is refused.")
  func empty() throws {
    var palette = Palette { $0 }

    #expect(throws: PaletteError.empty) { try palette.setColors([]) }
    #expect(throws: PaletteError.empty) { try palette.color(at: 0) }
    #expect(throws: PaletteError.empty) { try palette.colored(genres) }
    #expect(try palette.colored([]) == [])
  }

  @Test("A negative position is refused.")
  func negative() throws {
    let palette = try palette(["111111"])

    #expect(throws: PaletteError.negativePosition(-1)) { try palette.color(at: -1) }
  }

  @Test("The application's closure makes the colors.")
  func closure() throws {
    var palette = Palette { Int($0, radix: 16) }
    try palette.setColors(["0000ff"])

    #expect(try palette.color(at: 3) == 255)
  }

  @Test("Colors are not saved.")
  func notSaved() async throws {
    let bench = try Bench(.genres, ScriptedClient(.reply(200, Feed.genres.payload(1))))
    _ = try await bench.handles.load(nil, nil)

    let raw = try #require(try bench.recordText())

    // The record ends with its fields, in one shape: an integer and a text.
    #expect(raw.contains("Genre 1"))
    #expect(raw.hasSuffix("\u{1}\u{2}\u{5}\u{2}id\u{10}\u{4}name"))
  }
}
