import Larder

/// A JSON document to be written.
indirect enum JSONValue: Sendable {
  case null
  case bool(Bool)
  /// A number, with its text.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([(name: String, value: JSONValue)])

  static func integer(_ number: some BinaryInteger) -> JSONValue { .number("\(number)") }

  /// The shortest text that parses to the same number; null for infinity and NaN.
  static func real(_ number: Double) -> JSONValue {
    number.isFinite ? .number("\(number)") : .null
  }

  static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
}

extension JSONValue {
  /// Writes the document on one line.
  func write(to output: inout some TextOutputStream) { write(to: &output, indent: nil) }

  /// Writes the document on several lines, all but the first indented by `indent` spaces.
  func writePretty(to output: inout some TextOutputStream, indent: Int = 0) {
    write(to: &output, indent: indent)
  }

  private func write(to output: inout some TextOutputStream, indent: Int?) {
    switch self {
    case .null: output.write("null")
    case .bool(let value): output.write(value ? "true" : "false")
    case .number(let text): output.write(text)
    case .string(let text): Self.write(text, to: &output)
    case .array(let elements):
      Self.writeList(elements, in: ("[", "]"), indent: indent, to: &output) {
        element, output, inner in
        element.write(to: &output, indent: inner)
      }
    case .object(let members):
      Self.writeList(members, in: ("{", "}"), indent: indent, to: &output) {
        member, output, inner in
        Self.write(member.name, to: &output)
        output.write(inner == nil ? ":" : ": ")
        member.value.write(to: &output, indent: inner)
      }
    }
  }

  private static func writeList<Element, Output: TextOutputStream>(
    _ elements: [Element], in brackets: (String, String), indent: Int?, to output: inout Output,
    _ write: (Element, inout Output, Int?) -> Void
  ) {
    output.write(brackets.0)
    let inner = indent.map { $0 + 2 }
    for (index, element) in elements.enumerated() {
      if index > 0 { output.write(",") }
      if let inner { output.write("\n" + String(repeating: " ", count: inner)) }
      write(element, &output, inner)
    }
    if let indent, !elements.isEmpty {
      output.write("\n" + String(repeating: " ", count: indent))
    }
    output.write(brackets.1)
  }

  /// Writes a string, escaping characters that could control a terminal.
  private static func write(_ text: String, to output: inout some TextOutputStream) {
    // Most texts are plain, and looking up each character's category is slow.
    if text.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }) {
      output.write("\"")
      output.write(text)
      return output.write("\"")
    }
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case "\t": quoted += "\\t"
      case "\r": quoted += "\\r"
      case _ where scalar.isSafeOnTerminal: quoted.unicodeScalars.append(scalar)
      default: quoted += scalar.escaped
      }
    }
    output.write(quoted + "\"")
  }
}
