/// A word, literal or sign of a Swift file; comments and spaces are not tokens.
struct Token {
  enum Kind { case word, number, string, regex, sign }

  var kind: Kind
  var text: String
  var line: Int
  var column: Int
  /// Whether the token is the first one of its line.
  var startsLine: Bool
  /// Whether there is a space, a line's end or a comment before the token.
  var hasSpaceBefore: Bool
  /// For a bracket, the index of the one that closes or opens it.
  var partner: Int?

  /// The word, without backticks.
  var name: String {
    text.hasPrefix("`") ? String(text.dropFirst().dropLast()) : text
  }

  func isSign(_ sign: String) -> Bool { kind == .sign && text == sign }
  func isWord(_ word: String) -> Bool { kind == .word && text == word }
}

/// A reason for which a file, or a type in it, is refused.
package struct Refusal: Error, Equatable, CustomStringConvertible {
  package var path: String
  package var line: Int
  package var column: Int
  package var reason: String

  init(_ path: String, _ token: Token?, _ reason: String) {
    self.init(path: path, line: token?.line ?? 1, column: token?.column ?? 1, reason: reason)
  }

  init(path: String, line: Int, column: Int, reason: String) {
    (self.path, self.line, self.column, self.reason) = (path, line, column, reason)
  }

  /// The refusal in the form of a compiler's error.
  package var description: String { "\(path):\(line):\(column): error: \(reason)" }

  /// The refusal in the form of a compiler's warning, for a type that is left out.
  func warning(leavingOut name: String) -> String {
    "\(path):\(line):\(column): warning: \(reason); \(name) is left out"
  }
}
