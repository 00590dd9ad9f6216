import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// No text from a store becomes markup, and no address is read otherwise than it was written.
@Suite struct MarkupTests {
  @Test(
    "Interpolated texts are escaped, whatever they contain.",
    arguments: [
      ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;"), ("a\nb\tc", "a\\u000ab\\u0009c"),
      ("a\u{202E}b\u{2066}", "a\\u202eb\\u2066"), ("\u{1B}[31m", "\\u001b[31m"),
      // A mark that combines with a bracket hides it from comparisons of characters.
      ("<\u{338}b>\u{301}", "&lt;\u{338}b&gt;\u{301}"),
      ("\u{85}\u{2028}\u{FEFF}", "\\u0085\\u2028\\ufeff"),
    ])
  func escapes(text: String, expected: String) {
    let markup: Markup = "<td title=\"\(text)\">\(text)</td>"
    #expect(markup.text == "<td title=\"\(expected)\">\(expected)</td>")
  }

  @Test("Markup in markup is not escaped again, and blocks keep their lines.")
  func nesting() {
    let inner: Markup = "<i>\("<")</i>"
    #expect(
      ("<p>\(inner)\([inner, inner])</p>" as Markup).text
        == "<p><i>&lt;</i><i>&lt;</i><i>&lt;</i></p>")
    let lines = "a\r\nb\n\t<c\u{7}\n"
    #expect(("\(lines: lines)" as Markup).text == "a\\u000d\\u000ab\n\t&lt;c\\u0007\n")
  }

  @Test("A query is read as it was written, whatever its bytes are.")
  func queries() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<200 {
      var query = PageQuery()
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let scalars = (0..<Int.random(in: 0...6, using: &random)).compactMap { _ in
          Unicode.Scalar(UInt32.random(in: 0...0x3FF, using: &random))
        }
        query = query.with("n\(query.items.count)", String(String.UnicodeScalarView(scalars)))
      }
      #expect(try #require(PageQuery(query.text)) == query)
    }
    let form = try #require(PageQuery("a=1+2&b=%2B%26&a=3&c&d="))
    #expect(form["a"] == "1 2" && form.all("a") == ["1 2", "3"] && form["b"] == "+&")
    #expect(form["c"] == nil && form["d"] == nil)
    for text in ["a=%", "a=%4", "a=%zz", "%ff=1", "a=%C3"] { #expect(PageQuery(text) == nil) }
  }

  @Test(
    "Images are known by their first bytes, and drawings with scripts are not images.",
    arguments: [
      ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0], ImageKind.png),
      ([0xFF, 0xD8, 0xFF, 0xE0], .jpeg), (Array("GIF89a;".utf8), .gif),
      (Array("RIFF1234WEBPVP8".utf8), .webp), (Array("RIFF1234WAVE".utf8), nil),
      (Array("<svg onload=alert(1)>".utf8), nil), ([], nil), ([0x89, 0x50], nil),
    ] as [([UInt8], ImageKind?)])
  func images(bytes: [UInt8], kind: ImageKind?) {
    #expect(ImageKind(bytes) == kind)
  }

  @Test("The rectangles of a drawing have the areas of their parts, and no two overlap.")
  func treemap() throws {
    var random = SplitMix64(seed: 7)
    for count in [1, 2, 3, 17, 150] {
      let sizes = (0..<count).map { _ in Int.random(in: 1...10_000, using: &random) }.sorted(by: >)
      let areas = Treemap(
        sizes.map { .init(label: "", text: "", bytes: $0, address: nil, group: 0) }
      ).areas
      #expect(areas.count == count)
      let total = Double(sizes.reduce(0, +))
      for (size, area) in zip(sizes, areas) {
        #expect(abs(area.width * area.height - Double(size) / total * 360_000) < 1)
        #expect(area.x > -0.01 && area.x + area.width < 1000.01)
        #expect(area.y > -0.01 && area.y + area.height < 360.01)
      }
      for (number, a) in areas.enumerated() {
        for b in areas[(number + 1)...] {
          let width = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
          let height = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
          #expect(width < 0.01 || height < 0.01)
        }
      }
    }
    #expect(Treemap([]).areas.isEmpty)
  }
}
