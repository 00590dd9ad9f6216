import Larder

/// A payload in a form that can be shown without the program's types.
enum PayloadView {
  case json(JSONValue)
  case text(String)
  /// All bytes, of which a text has at most so many.
  case hex([UInt8], shown: Int = .max)
  case size(Int)
  case nothing

  /// The bytes that are shown of a payload, unless all are asked for.
  private static let shownBytes = 2048

  /// Reads a payload according to the coder that wrote it.
  init(_ payload: [UInt8], coder: UInt8, as form: ValueForm) {
    let format = PayloadFormat(rawValue: coder)
    switch form {
    case .none: self = .nothing
    case .size: self = .size(payload.count)
    case .hex: self = .hex(payload)
    case .json:
      let value: JSONValue? =
        switch format {
        case .binary: BinaryTree.read(payload)
        case .propertyList: PropertyListTree.read(payload)
        default: JSONReader.read(payload)
        }
      self = value.map(PayloadView.json) ?? .hex(payload)
    case .auto:
      let value: JSONValue? =
        switch format {
        case .binary: BinaryTree.read(payload)
        case .json: JSONReader.read(payload)
        case .propertyList: PropertyListTree.read(payload)
        default: nil
        }
      if let value {
        self = .json(value)
      } else if format == .bytes || format == .json, let text = Self.printable(payload) {
        self = .text(text)
      } else {
        self = .hex(payload, shown: Self.shownBytes)
      }
    }
  }

  private static func printable(_ bytes: [UInt8]) -> String? {
    guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else { return nil }
    let isPrintable = text.unicodeScalars.allSatisfy { scalar in
      scalar == "\n" || scalar == "\t" || scalar.isSafeOnTerminal
    }
    return isPrintable ? text : nil
  }
}

extension PayloadView {
  /// Writes the payload with a final newline; writes nothing for `size` and `nothing`.
  func write(to output: inout some TextOutputStream) {
    switch self {
    case .json(let value):
      value.writePretty(to: &output)
      output.write("\n")
    case .text(let text): output.write(text.hasSuffix("\n") ? text : text + "\n")
    case .hex(let bytes, let shown):
      Self.dump(bytes.prefix(shown), to: &output)
      guard bytes.count > shown else { return }
      let rest = Amount.text(bytes.count - shown)
      output.write("... and \(rest) bytes more: --values hex shows all, --raw writes them\n")
    case .size, .nothing: break
    }
  }

  /// Writes sixteen bytes per line: their offset, hex digits and ASCII characters.
  private static func dump(_ bytes: ArraySlice<UInt8>, to output: inout some TextOutputStream) {
    for start in stride(from: 0, to: bytes.count, by: 16) {
      let row = bytes[start..<min(start + 16, bytes.count)]
      let offset = String(start, radix: 16)
      var line = String(repeating: "0", count: max(0, 8 - offset.count)) + offset + " "
      for (index, byte) in row.enumerated() {
        let digits = String(byte, radix: 16)
        line += (index == 8 ? "  " : " ") + (digits.count == 1 ? "0" : "") + digits
      }
      line += String(repeating: " ", count: max(0, 60 - line.count))
      line += row.map { (0x20...0x7E).contains($0) ? String(Unicode.Scalar($0)) : "." }.joined()
      output.write(line + "\n")
    }
  }
}
