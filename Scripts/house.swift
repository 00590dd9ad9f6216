// Prints how large the code is. Scripts/house compiles this together with the files of TidyTests
// that find code, comments and functions.
//
// It reads text, and knows no types. A function is a `func`, an `init`, a `deinit` or a
// `subscript`, and in C++ a block after a parameter list; computed properties and closures are not
// counted by themselves. Its lines include blank ones and comments. A nested function counts for
// itself and for the one around it.

import Foundation

@main enum House {
  /// Folders with fewer lines of code have no row of their own.
  static let smallestPart = 500

  static func main() {
    let files = SourceTree.repository.files(under: "Sources")
    let sizes = files.map(Size.init)
    let code = sizes.map(\.code).reduce(0, +)
    let comments = sizes.map(\.comments).reduce(0, +)
    row("files in Sources", files.count)
    row("lines of code: neither blank nor comment", code)
    row("lines of comments, per cent of both", rounded(comments * 100, by: code + comments))
    let types = sizes.map(\.types).reduce(0, +)
    row("types for 1,000 lines of code", rounded(types * 1000, by: code))

    let functions = files.flatMap(functionLines).sorted()
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

    print("\nlines of code by folder, from \(smallestPart) on:")
    var parts: [String: Int] = [:]
    for size in sizes {
      for folder in size.folders { parts[folder, default: 0] += size.code }
    }
    for (folder, code) in parts.sorted(by: { $0.key < $1.key }) where code >= smallestPart {
      row("  " + folder, code)
    }
  }

  /// The lines of each function of a file.
  private static func functionLines(of file: SourceFile) -> [Int] {
    let keywords: Set<Substring> =
      file.isSwift
      ? ["func", "init", "deinit", "subscript"] : ["if", "else", "for", "while", "switch", "catch"]
    return FunctionMeasure(file).functions
      .filter { function in
        words(of: file.code[function.firstLine]).contains(where: keywords.contains) == file.isSwift
      }
      .map(\.lineCount)
  }

  private static func rounded(_ number: Int, by divisor: Int) -> Int {
    (number + divisor / 2) / divisor
  }

  private static func row(_ name: String, _ value: some CustomStringConvertible) {
    print(name.padding(toLength: 52, withPad: " ", startingAt: 0), value)
  }
}

private func words(of line: Substring) -> [Substring] {
  line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
}

/// The size of a file.
private struct Size {
  var code = 0
  var comments = 0
  var types = 0
  /// The folders around the file, below `Sources`.
  var folders: [String] = []

  init(_ file: SourceFile) {
    for (line, masked) in zip(file.lines, file.code) {
      let text = line.drop(while: \.isWhitespace)
      if text.isEmpty { continue }
      // The mask hides comments and the text of strings.
      let isComment = masked.allSatisfy(\.isWhitespace) && text.first.map("/*".contains) == true
      if isComment { comments += 1 } else { code += 1 }
      if declaresType(masked) { types += 1 }
    }
    var folder = ""
    for part in file.path.split(separator: "/").dropFirst().dropLast() {
      folder += (folder.isEmpty ? "" : "/") + part
      folders.append(folder)
    }
  }

  /// Whether a type is declared on a line, with a body.
  private func declaresType(_ line: Substring) -> Bool {
    let words = words(of: line)
    let keywords: Set<Substring> = ["struct", "class", "enum", "actor", "protocol"]
    guard let place = words.firstIndex(where: keywords.contains), line.last != ";" else {
      return false
    }
    return place + 1 < words.count && !["func", "var", "let"].contains(words[place + 1])
  }
}
