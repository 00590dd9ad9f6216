import Testing

/// A line that breaks a rule.
struct Finding: CustomStringConvertible {
  let path: String
  let line: Int
  let text: String

  init(_ file: SourceFile, line index: Int, _ text: String) {
    path = file.path
    line = index + 1
    self.text = text
  }

  var description: String { "\(path):\(line): \(text)" }
}

/// A rule that checks one file at a time.
///
/// It is a value, so that the test of the repository and the test of a bad sample use the same
/// rule.
struct Rule: Sendable {
  let findings: @Sendable (SourceFile) -> [Finding]

  /// Records an issue for each line in `files` that breaks the rule.
  func expectHolds(
    in files: [SourceFile], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for finding in files.flatMap(findings) {
      Issue.record("\(finding)", sourceLocation: sourceLocation)
    }
  }

  /// The lines of `sample` that break the rule, counted from 1.
  func lines(brokenBy sample: String, at path: String) -> [Int] {
    findings(SourceFile(path: path, text: sample)).map(\.line)
  }
}

extension Rule {
  /// No line of code contains one of the `words`; comments and strings may.
  static func bans(_ words: [String], because reason: String) -> Rule {
    Rule { file in
      let words = words.filter(file.mentions)
      if words.isEmpty { return [] }
      return file.code.enumerated().flatMap { index, line in
        words.filter(line.containsWord).map {
          Finding(file, line: index, "'\($0)': \(reason)")
        }
      }
    }
  }
}

extension Substring {
  /// Whether `word` occurs as a whole word, not within a longer identifier.
  func containsWord(_ word: String) -> Bool { !places(ofWord: word).isEmpty }

  /// The UTF-8 offsets of `word` in the line.
  func places(ofWord word: String) -> [Int] {
    let line = Array(utf8)
    let word = Array(word.utf8)
    guard let first = word.first, let last = word.last, line.count >= word.count else { return [] }
    return (0...(line.count - word.count)).filter { start in
      let end = start + word.count
      guard line[start] == first, line[start..<end].elementsEqual(word) else { return false }
      if isIdentifierByte(first), start > 0, isIdentifierByte(line[start - 1]) { return false }
      return !(isIdentifierByte(last) && end < line.count && isIdentifierByte(line[end]))
    }
  }
}
