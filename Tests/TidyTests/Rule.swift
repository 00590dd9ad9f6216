import Testing

/// One place that breaks a rule.
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

/// A rule about one file at a time.
///
/// It is a value, so that the test that applies it to the repository and the test that sees it
/// fail on a bad sample use the same one.
struct Rule: Sendable {
  let findings: @Sendable (SourceFile) -> [Finding]

  /// Fails the running test once per place in `files` that breaks the rule.
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
  /// No line of code has one of the `words`; comments and the text of strings do not count.
  static func bans(_ words: [String], because reason: String) -> Rule {
    Rule { file in
      file.code.enumerated().flatMap { index, line in
        words.filter(line.containsWord).map {
          Finding(file, line: index, "'\($0)': \(reason)")
        }
      }
    }
  }
}

extension Substring {
  /// Whether `word` occurs with no letter, digit or underscore running on at either end of it.
  func containsWord(_ word: String) -> Bool { !places(ofWord: word).isEmpty }

  /// Where `word` begins, counted in UTF-8 from the start of the line.
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
