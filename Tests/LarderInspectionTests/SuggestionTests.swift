import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// A misspelt command or key gets the one that was meant, if there is one like it.
@Suite struct SuggestionTests {
  @Test(
    "A word with at most two wrong letters, and fewer than half, is found.",
    arguments: [
      ("verfy", "verify"), ("vreify", "verify"), ("verifyy", "verify"), ("statz", "stats"),
      ("wyh", "why"), ("xx", nil), ("", nil), ("l", nil), ("completely", nil),
      ("expotr", "export"),
    ] as [(String, String?)])
  func words(word: String, meant: String?) {
    let words = ["ls", "why", "verify", "stats", "export", "import"]
    #expect(Suggestion.word(like: word, among: words) == meant)
  }

  @Test("Words of any length are compared at once, and a long one is like no other.")
  func longWords() {
    let long = String(repeating: "long", count: 16 << 10)
    #expect(Suggestion.word(like: long, among: [long + "x", "long"]) == nil)
    #expect(Suggestion.word(like: "long", among: [long, "logn"]) == "logn")
    let word = String(repeating: "word", count: 50)
    #expect(Suggestion.word(like: word, among: [word + "x", long]) == word + "x")
  }

  @Test("A missing key is answered with a key like it, but not if keys are redacted.")
  func keys() throws {
    let specimen = try Specimen()
    let inspection = try specimen.inspect()
    func message(_ key: String, _ style: Style = Style()) -> String? {
      do throws(InspectionError) {
        _ = try inspection.get(key, cache: nil, style: style)
        return nil
      } catch {
        return error.description
      }
    }
    #expect(message("frehs") == "frehs is missing; there is fresh")
    #expect(message("nothing like it") == "nothing like it is missing")
    #expect(message("43") == "43 is missing")
    #expect(message("fres\u{1B}[2J") == "fres\\u001b[2J is missing")
    var style = Style()
    style.isRedacted = true
    #expect(message("frehs", style) == "frehs is missing")
  }
}
