// Prints how large the code is. Scripts/house compiles this together with the files of TidyTests
// that find code, comments and functions.

import Foundation

@main enum House {
  static func main() {
    let files = SourceTree.repository.files(under: "Sources")
    var (code, comments) = (0, 0)
    for (line, masked) in files.flatMap({ zip($0.lines, $0.code) }) {
      let text = line.drop(while: \.isWhitespace)
      if text.isEmpty { continue }
      // The mask hides comments and the text of strings.
      let isComment = masked.allSatisfy(\.isWhitespace) && text.starts { "/*".contains($0) }
      if isComment { comments += 1 } else { code += 1 }
    }
    row("files in Sources", files.count)
    row("lines of code: neither blank nor comment", code)
    row("lines of comments, per cent of both", comments * 100 / (code + comments))

    let functions = files.flatMap { FunctionMeasure($0).functions.map(\.lineCount) }.sorted()
    let lines = Double(functions.reduce(0, +))
    let mean = String(format: "%.1f", lines / Double(functions.count))
    let high = functions[functions.count * 95 / 100]
    row("lines of a function: mean, 95 %, longest", "\(mean), \(high), \(functions.last ?? 0)")

    let manifest = SourceTree.repository.file(at: "Package.swift")?.code ?? []
    row(
      "targets in Package.swift",
      manifest.count { line in
        [".target(", ".executableTarget(", ".testTarget(", ".plugin("].contains { target in
          // A product of the same kind names its targets.
          line.trimmingCharacters(in: .whitespaces).hasPrefix(target) && !line.contains("targets:")
        }
      })
    let inspection = files.filter { ["LarderInspection", "kvinspect"].contains($0.target) }
    row(
      "switches over the output style of kvinspect",
      inspection.flatMap(\.code).count { $0.contains("switch style.format") })
  }

  private static func row(_ name: String, _ value: some CustomStringConvertible) {
    print(name.padding(toLength: 44, withPad: " ", startingAt: 0), value)
  }
}

extension Substring {
  fileprivate func starts(_ isFirst: (Character) -> Bool) -> Bool { first.map(isFirst) ?? false }
}
