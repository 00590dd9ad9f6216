/// Writes SVG: lines, boxes and texts with style classes for light and dark backgrounds.
struct Image {
  typealias Point = (x: Double, y: Double)

  private var body = ""

  /// The approximate width of a label.
  static func width(of text: String) -> Double { Double(text.count) * 6.6 }

  mutating func text(_ text: String, at point: Point, _ style: String, turned: Bool = false) {
    let (x, y) = (Self.number(point.x), Self.number(point.y))
    let turn = turned ? " transform=\"rotate(-90 \(x) \(y))\"" : ""
    body += "<text x=\"\(x)\" y=\"\(y)\" class=\"\(style)\"\(turn)>\(Self.escaped(text))</text>\n"
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
      switch series % 4 {
      case 0: (0..<8).map { Self.octagon[$0] }.map { (x + 4.5 * $0.x, y + 4.5 * $0.y) }
      case 1: [(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)]
      case 2: [(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)]
      default: [(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)]
      }
    let coordinates = corners.map { "\(Self.number($0.x)) \(Self.number($0.y))" }
    body += "<path d=\"M\(coordinates.joined(separator: "L"))Z\" class=\"s\(series) fill\"/>\n"
  }

  private static let octagon: [Point] = [
    (1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7),
  ]

  func file(width: Double, height: Double) -> String {
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

  private static let light: Colors = (
    "#ffffff", "#1f2328", "#59636e", "#e1e5ea", "#cf222e",
    [
      "#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#7d6000", "#57606a", "#007a87",
      "#953800",
    ]
  )
  private static let dark: Colors = (
    "#0d1117", "#e6edf3", "#9198a1", "#2a313c", "#ff7b72",
    [
      "#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#ff7bc2", "#e3b341", "#a8b1bb", "#39c5cf",
      "#ffa657",
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
