/// Writes SVG: lines, boxes and texts with style classes for light and dark backgrounds.
struct Image {
  typealias Point = (x: Double, y: Double)

  private typealias Extent = (text: String, x: ClosedRange<Double>, y: ClosedRange<Double>)

  private var body = ""
  /// The approximate place of each text.
  private var texts: [Extent] = []

  /// The approximate width of a text; of a label by default.
  static func width(of text: String, size: Double = 12) -> Double {
    Double(text.count) * 0.55 * size
  }

  mutating func text(_ text: String, at point: Point, _ style: String, turned: Bool = false) {
    texts.append(Self.extent(of: text, at: point, style, turned: turned))
    let (x, y) = (Self.number(point.x), Self.number(point.y))
    let turn = turned ? " transform=\"rotate(-90 \(x) \(y))\"" : ""
    body += "<text x=\"\(x)\" y=\"\(y)\" class=\"\(style)\"\(turn)>\(Self.escaped(text))</text>\n"
  }

  private static func extent(
    of text: String, at point: Point, _ style: String, turned: Bool
  ) -> Extent {
    let styles = style.split(separator: " ")
    let size = styles.contains("title") ? 18.0 : styles.contains("head") ? 14 : 12
    let width = width(of: text, size: size)
    let share = styles.contains("end") ? 1 : styles.contains("middle") ? 0.5 : 0.0
    // Along the text and across it. A turned text goes upwards.
    let along = -width * share...width * (1 - share)
    let across = -0.8 * size...0.25 * size
    guard turned else {
      return (
        text, point.x + along.lowerBound...point.x + along.upperBound,
        point.y + across.lowerBound...point.y + across.upperBound
      )
    }
    return (
      text, point.x + across.lowerBound...point.x + across.upperBound,
      point.y - along.upperBound...point.y - along.lowerBound
    )
  }

  mutating func line(_ from: Point, _ to: Point, _ style: String) { path([from, to], style) }

  mutating func path(_ points: [Point], _ style: String) {
    let coordinates = points.map { "\(Self.number($0.x)) \(Self.number($0.y))" }
    body += "<path d=\"M\(coordinates.joined(separator: "L"))\" class=\"\(style)\"/>\n"
  }

  mutating func box(x: Double, y: Double, width: Double, height: Double, _ style: String) {
    let numbers = [x, y, width, height].map(Self.number)
    body += "<rect x=\"\(numbers[0])\" y=\"\(numbers[1])\" width=\"\(numbers[2])\" "
    body += "height=\"\(numbers[3])\" class=\"\(style)\"/>\n"
  }

  /// Draws the marker of a line, so that lines can be distinguished without colors.
  mutating func marker(_ series: Int, at point: Point) {
    let (x, y) = point
    let corners: [Point] =
      switch series % 5 {
      case 0: (0..<8).map { Self.octagon[$0] }.map { (x + 4.5 * $0.x, y + 4.5 * $0.y) }
      case 1: [(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)]
      case 2: [(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)]
      case 3: [(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)]
      default: [(x, y + 5), (x + 5, y - 4), (x - 5, y - 4)]
      }
    let coordinates = corners.map { "\(Self.number($0.x)) \(Self.number($0.y))" }
    body += "<path d=\"M\(coordinates.joined(separator: "L"))Z\" class=\"s\(series) fill\"/>\n"
  }

  private static let octagon: [Point] = [
    (1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7),
  ]

  /// The image as an SVG file; a text that is not inside it is a programmer error.
  func file(width: Double, height: Double) -> String {
    for (text, x, y) in texts {
      precondition(
        x.lowerBound >= 0 && x.upperBound <= width && y.lowerBound >= 0 && y.upperBound <= height,
        "the text '\(text)' of a plot is cut")
    }
    let (width, height) = (Self.number(width), Self.number(height))
    return """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" \
      viewBox="0 0 \(width) \(height)">
      <style>
      \(Self.styles)
      </style>
      <rect width="\(width)" height="\(height)" class="ground"/>
      \(body)</svg>

      """
  }

  private static func number(_ value: Double) -> String { decimals(value, 1) }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
  }

  /// The style sheet; only the colors depend on the background.
  private static var styles: String {
    """
    text { font: 12px system-ui, sans-serif; }
    .title { font-size: 18px; font-weight: 600; }
    .head { font-size: 14px; font-weight: 600; }
    .end { text-anchor: end; }
    .middle { text-anchor: middle; }
    path { fill: none; stroke-width: 1; }
    .stroke { stroke-width: 2; }
    .level { stroke-dasharray: 5 4; stroke-width: 1.5; }
    .goal { stroke-width: 2.5; }
    \(colors(light))
    @media (prefers-color-scheme: dark) {
    \(colors(dark))
    }
    """
  }

  private typealias Colors = (
    ground: String, ink: String, quiet: String, grid: String, goal: String, series: [String]
  )

  // The colors of any two series are told apart: TidyTests compares those of the plots.
  private static let light: Colors = (
    "#ffffff", "#1f2328", "#59636e", "#e1e5ea", "#cf222e",
    [
      "#0969da", "#d4620a", "#1a7f37", "#8250df", "#d6409f", "#8f7a00", "#6e7781", "#00a0b0",
      "#7a1f1f",
    ]
  )
  private static let dark: Colors = (
    "#0d1117", "#e6edf3", "#9198a1", "#2a313c", "#ff7b72",
    [
      "#58a6ff", "#f0883e", "#3fb950", "#b083f0", "#ff7bc2", "#f2d94e", "#a8b1bb", "#2fd6d6",
      "#d94f4f",
    ]
  )

  private static func colors(_ colors: Colors) -> String {
    let series = colors.series.enumerated().map { index, color in
      ".s\(index).stroke { stroke: \(color); } .s\(index).fill { fill: \(color); }"
    }
    return """
      .ground { fill: \(colors.ground); }
      text { fill: \(colors.ink); } .small { fill: \(colors.quiet); }
      .grid { stroke: \(colors.grid); }
      .axis, .level { stroke: \(colors.quiet); }
      .goal { stroke: \(colors.goal); }
      \(series.joined(separator: "\n"))
      """
  }
}
