import Larder

/// A drawing of parts as rectangles whose areas are their sizes.
///
/// The parts are laid out by the squarified algorithm of Bruls, Huizing and van Wijk (2000).
struct Treemap {
  struct Part {
    let label: String
    let text: String
    let bytes: Int
    /// The address that the rectangle links to; nil for none.
    let address: String?
    /// Parts of the same group have the same shade.
    let group: Int
  }

  struct Area {
    var x: Double
    var y: Double
    var width: Double
    var height: Double
  }

  private static let width = 1000.0
  private static let height = 360.0
  private static let shades = 4

  private let parts: [Part]

  init(_ parts: [Part]) { self.parts = parts.filter { $0.bytes > 0 } }

  /// The drawing; nothing without a part.
  func markup(caption: String) -> Markup {
    guard !parts.isEmpty else { return "" }
    var drawn: Markup = ""
    for (part, area) in zip(parts, areas) { drawn += markup(of: part, in: area) }
    return """
      <svg class=treemap viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role=group \
      aria-label="\(caption)">
      \(drawn)</svg>

      """
  }

  private func markup(of part: Part, in area: Area) -> Markup {
    let title = "\(part.label): \(part.text)"
    let (x, y) = (area.x + 1, area.y + 1)
    let size = (max(area.width - 2, 0.5), max(area.height - 2, 0.5))
    // About 8 units for a character.
    let fitting = Int((area.width - 16) / 8.5)
    var text: Markup = ""
    if area.height >= 26, fitting >= 4 {
      text = "<text x=\"\(x)\" y=\"\(y)\" dx=8 dy=20>\(part.label.shortened(to: fitting))</text>"
      if area.height >= 48, fitting >= part.text.count {
        text += "<text class=size x=\"\(x)\" y=\"\(y)\" dx=8 dy=38>\(part.text)</text>"
      }
    }
    let body: Markup = """
      <title>\(title)</title><rect class="shade\(part.group % Self.shades)" x="\(x)" y="\(y)" \
      width="\(size.0)" height="\(size.1)"/>\(text)
      """
    guard let address = part.address else { return "<g>\(body)</g>\n" }
    return "<a href=\"\(address)\" aria-label=\"\(title)\">\(body)</a>\n"
  }

  /// The rectangles of the parts, in their order, which begins with the largest.
  var areas: [Area] {
    let total = parts.reduce(0.0) { $0 + Double($1.bytes) }
    let sizes = parts.map { Double($0.bytes) / total * Self.width * Self.height }
    var free = Area(x: 0, y: 0, width: Self.width, height: Self.height)
    var areas: [Area] = []
    var row: [Double] = []
    for size in sizes {
      let side = min(free.width, free.height)
      if !row.isEmpty, Self.worst(row + [size], along: side) > Self.worst(row, along: side) {
        areas += Self.place(row, in: &free)
        row = []
      }
      row.append(size)
    }
    return areas + Self.place(row, in: &free)
  }

  /// The ratio of the sides of the narrowest rectangle of a row.
  private static func worst(_ row: [Double], along side: Double) -> Double {
    let sum = row.reduce(0, +)
    guard sum > 0, side > 0, let most = row.max(), let least = row.min(), least > 0 else {
      return .infinity
    }
    return max(side * side * most / (sum * sum), sum * sum / (side * side * least))
  }

  /// Places a row along the shorter side of what is free, and takes it away from that.
  private static func place(_ row: [Double], in free: inout Area) -> [Area] {
    let sum = row.reduce(0, +)
    guard sum > 0 else { return [] }
    var areas: [Area] = []
    if free.width >= free.height {
      let width = free.height > 0 ? sum / free.height : 0
      var y = free.y
      for size in row {
        let height = width > 0 ? size / width : 0
        areas.append(Area(x: free.x, y: y, width: width, height: height))
        y += height
      }
      free.x += width
      free.width = max(free.width - width, 0)
    } else {
      let height = sum / free.width
      var x = free.x
      for size in row {
        let width = size / height
        areas.append(Area(x: x, y: free.y, width: width, height: height))
        x += width
      }
      free.y += height
      free.height = max(free.height - height, 0)
    }
    return areas
  }
}
