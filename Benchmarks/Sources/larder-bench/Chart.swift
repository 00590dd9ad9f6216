/// A chart with panels in rows and one legend.
struct Chart {
  var title: String
  /// The machine and the commit of the results.
  var source: String
  var series: [String] = []
  var panels: [any Panel]
  var columns = 1

  static let width = 960.0
  private static let margin = 24.0
  private static let gap = 28.0

  /// The chart as an SVG file, readable on light and dark backgrounds.
  func svg() -> String {
    var image = Image()
    image.text(title, at: (Self.margin, 34), "title")
    image.text(source, at: (Self.margin, 54), "small")
    var top = 72.0
    if !series.isEmpty { top = drawLegend(in: &image, at: top) + 8 }
    let room = Self.width - 2 * Self.margin - Self.gap * Double(columns - 1)
    let width = room / Double(columns)
    for start in stride(from: 0, to: panels.count, by: columns) {
      let row = panels[start..<min(start + columns, panels.count)]
      for (column, panel) in row.enumerated() {
        let left = Self.margin + Double(column) * (width + Self.gap)
        panel.draw(in: &image, left: left, top: top, width: width)
      }
      top += (row.map(\.height).max() ?? 0) + Self.gap
    }
    return image.file(width: Self.width, height: top)
  }

  /// Draws the legend in as many lines as it needs, and returns its lower end.
  private func drawLegend(in image: inout Image, at top: Double) -> Double {
    var (x, y) = (Self.margin, top)
    for (index, name) in series.enumerated() {
      let width = 30 + Image.width(of: name)
      if x > Self.margin, x + width > Self.width - Self.margin { (x, y) = (Self.margin, y + 20) }
      image.line((x, y + 6), (x + 24, y + 6), "s\(index) stroke")
      image.marker(index, at: (x + 12, y + 6))
      image.text(name, at: (x + 30, y + 10), "label")
      x += width + 22
    }
    return y + 20
  }
}

/// A part of a chart, with its own axes.
protocol Panel {
  var height: Double { get }
  func draw(in image: inout Image, left: Double, top: Double, width: Double)
}

// MARK: - Lines

/// Lines over an x axis, which is logarithmic by default.
struct LinePanel: Panel {
  typealias Point = (x: Double, y: Double)

  var title: String
  var xTitle: String
  var yTitle: String
  /// The ticks of the x axis and their labels.
  var xTicks: [(at: Double, label: String)]
  var isXLogarithmic = true
  var isYLogarithmic = false
  var yLabel: (Double) -> String
  /// The points of each line, with the index of its series in the legend.
  var lines: [(series: Int, points: [Point])]
  /// A horizontal line, such as a goal.
  var level: (at: Double, label: String)?

  let height = 330.0

  func draw(in image: inout Image, left: Double, top: Double, width: Double) {
    let values = lines.flatMap { $0.points.map(\.y) } + (level.map { [$0.at] } ?? [])
    let yAxis = isYLogarithmic ? Axis(logarithmic: values) : Axis(linear: values)
    let xs = xTicks.map(\.at)
    let xAxis = isXLogarithmic ? Axis(logarithmic: xs, ticks: xs) : Axis(linear: xs)
    let plot = (left: left + 66, top: top + 30, width: width - 78, bottom: top + height - 48)
    func position(_ point: Point) -> (x: Double, y: Double) {
      (
        plot.left + 8 + xAxis.share(of: point.x) * (plot.width - 16),
        plot.bottom - yAxis.share(of: point.y) * (plot.bottom - plot.top)
      )
    }
    image.text(title, at: (left, top + 14), "head")
    for tick in yAxis.ticks {
      let y = position((xTicks[0].at, tick)).y
      image.line((plot.left, y), (plot.left + plot.width, y), "grid")
      image.text(yLabel(tick), at: (plot.left - 8, y + 4), "label end")
    }
    for (value, label) in xTicks {
      let x = position((value, yAxis.ticks[0])).x
      image.line((x, plot.bottom), (x, plot.bottom + 5), "axis")
      image.text(label, at: (x, plot.bottom + 19), "label middle")
    }
    image.line((plot.left, plot.bottom), (plot.left + plot.width, plot.bottom), "axis")
    image.line((plot.left, plot.top), (plot.left, plot.bottom), "axis")
    image.text(xTitle, at: (plot.left + plot.width / 2, plot.bottom + 40), "label middle")
    image.text(yTitle, at: (left + 12, (plot.top + plot.bottom) / 2), "label middle", turned: true)
    if let level {
      let y = position((xTicks[0].at, level.at)).y
      image.line((plot.left, y), (plot.left + plot.width, y), "level")
      image.text(level.label, at: (plot.left + plot.width, y - 6), "label end")
    }
    for line in lines.reversed() {
      let positions = line.points.map(position)
      image.path(positions, "s\(line.series) stroke")
      for position in positions { image.marker(line.series, at: position) }
    }
  }
}

// MARK: - Bars

/// Horizontal bars, each with its name on the left and its value on the right.
struct BarPanel: Panel {
  var title: String
  var xTitle: String
  var bars: [(name: String, value: Double, goal: Double?)]
  /// A vertical line at the value of the other side.
  var level: (at: Double, label: String)

  private static let barHeight = 22.0

  var height: Double { 92 + Double(bars.count) * Self.barHeight }

  func draw(in image: inout Image, left: Double, top: Double, width: Double) {
    let axis = Axis(linear: bars.map(\.value) + [level.at])
    let names = 24 + (bars.map { Image.width(of: $0.name) }.max() ?? 0)
    let plot = (left: left + names, width: width - names - 48, top: top + 30)
    let bottom = plot.top + Double(bars.count) * Self.barHeight + 6
    func x(_ value: Double) -> Double { plot.left + axis.share(of: value) * plot.width }
    image.text(title, at: (left, top + 14), "head")
    for tick in axis.ticks {
      image.line((x(tick), plot.top), (x(tick), bottom), "grid")
      image.text(Axis.text(tick), at: (x(tick), bottom + 18), "label middle")
    }
    for (index, bar) in bars.enumerated() {
      let y = plot.top + Double(index) * Self.barHeight + 5
      image.text(bar.name, at: (plot.left - 8, y + 12), "label end")
      image.box(x: plot.left, y: y, width: x(bar.value) - plot.left, height: 15, "s0 fill")
      if let goal = bar.goal { image.line((x(goal), y - 2), (x(goal), y + 17), "goal") }
      let end = max(x(bar.value), bar.goal.map(x) ?? 0)
      image.text(decimals(bar.value, 3), at: (end + 6, y + 12), "label")
    }
    image.line((plot.left, plot.top), (plot.left, bottom), "axis")
    image.line((plot.left, bottom), (plot.left + plot.width, bottom), "axis")
    image.line((x(level.at), plot.top - 4), (x(level.at), bottom), "level")
    image.text(level.label, at: (x(level.at) - 6, plot.top + 2), "label end")
    image.text(xTitle, at: (plot.left + plot.width / 2, bottom + 40), "label middle")
  }
}
