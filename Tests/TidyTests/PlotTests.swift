import Foundation
import Testing

/// The committed plots of the benchmarks can be read.
@Suite struct PlotTests {
  private static let folder = "Benchmarks/Results"
  static let paths = SourceTree.repository.files.map(\.path).filter {
    $0.hasPrefix("\(folder)/") && $0.hasSuffix(".svg")
  }

  @Test("There are plots.")
  func plots() { #expect(Self.paths.count >= 4) }

  @Test("Each text is inside its picture.", arguments: paths)
  func texts(path: String) throws {
    let plot = try #require(SourceTree.repository.file(at: path))
    #expect(try Self.cutTexts(in: plot.text) == [])
  }

  @Test("The colors of any two series differ clearly.", arguments: paths)
  func colors(path: String) throws {
    let plot = try #require(SourceTree.repository.file(at: path))
    #expect(try Self.similarColors(in: plot.text) == [])
  }

  @Test("The rules detect a cut text and two similar colors.")
  func violations() throws {
    let text = """
      <svg width="960.0" height="816.0">
      .s0.stroke { stroke: #bc4c00; } .s1.stroke { stroke: #953800; }
      .s2.stroke { stroke: #0969da; }
      <text x="949.0" y="82.0" class="label">LMDB</text>
      <text x="949.0" y="82.0" class="label end">LMDB</text>
      <text x="940.0" y="82.0" class="label middle">a &lt; b</text>
      <text x="36.0" y="816.0" class="label">low</text>
      <text x="12.0" y="30.0" class="label middle" transform="rotate(-90 12.0 30.0)">time</text>
      <text x="12.0" y="30.0" class="middle" transform="rotate(-90 12.0 30.0)">a long text</text>
      """
    #expect(try Self.cutTexts(in: text) == ["LMDB", "low", "a long text"])
    #expect(try Self.similarColors(in: text) == ["#bc4c00 and #953800"])
  }

  // MARK: - Texts

  /// The texts that are not within the picture, by an estimate of their widths.
  private static func cutTexts(in svg: String) throws -> [String] {
    let size = try #require(svg.firstMatch(of: /width="([0-9.]+)" height="([0-9.]+)"/))
    let (width, height) = (try number(size.1), try number(size.2))
    let tag = /<text x="([-0-9.]+)" y="([-0-9.]+)" class="([a-z ]+)"( transform="[^"]*")?>([^<]*)</
    return try svg.matches(of: tag).compactMap { match -> String? in
      let styles = match.3.split(separator: " ")
      let size = styles.contains("title") ? 18.0 : styles.contains("head") ? 14 : 12
      let text = String(match.5).replacing("&lt;", with: "<").replacing("&amp;", with: "&")
      let length = Double(text.count) * 0.55 * size
      let before =
        length * (styles.contains("end") ? 1 : styles.contains("middle") ? 0.5 : 0)
      let (x, y) = (try number(match.1), try number(match.2))
      let (left, right, top, bottom) =
        match.4 == nil
        ? (x - before, x + length - before, y - 0.8 * size, y + 0.25 * size)
        : (x - 0.8 * size, x + 0.25 * size, y + before - length, y + before)
      return left >= 0 && right <= width && top >= 0 && bottom <= height ? nil : text
    }
  }

  private static func number(_ text: Substring) throws -> Double {
    try #require(Double(text), "\(text) is not a number")
  }

  // MARK: - Colors

  /// The pairs of series whose colors are nearer than 30 in the color space CIELAB.
  private static func similarColors(in svg: String) throws -> [String] {
    // First for a light background, then for a dark one.
    let schemes = svg.components(separatedBy: "@media")
    return try schemes.flatMap { scheme -> [String] in
      let colors = try scheme.matches(of: /\.s[0-9]+\.stroke { stroke: #([0-9a-f]{6}); }/).map {
        (text: String($0.1), lab: try lab($0.1))
      }
      return colors.indices.flatMap { index in
        colors[..<index].filter { distance($0.lab, colors[index].lab) < 30 }.map {
          "#\($0.text) and #\(colors[index].text)"
        }
      }
    }
  }

  private static func distance(_ one: SIMD3<Double>, _ other: SIMD3<Double>) -> Double {
    let difference = one - other
    return (difference * difference).sum().squareRoot()
  }

  /// The color in CIELAB, for white of D65.
  private static func lab(_ hex: Substring) throws -> SIMD3<Double> {
    let bits = try #require(Int(hex, radix: 16))
    let parts = [16, 8, 0].map { shift in
      let part = Double(bits >> shift & 255) / 255
      return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
    }
    let rows = [
      [0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505],
    ]
    let xyz = rows.enumerated().map { index, row in
      let sum = zip(row, parts).map { $0 * $1 }.reduce(0, +) / [0.95047, 1, 1.08883][index]
      return sum > 0.008856 ? cbrt(sum) : 7.787 * sum + 16 / 116
    }
    return SIMD3(116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2]))
  }
}
