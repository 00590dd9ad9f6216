/// Reads JSON without loss: numbers keep their digits, and duplicate members are kept.
///
/// Members of an object are sorted by name.
struct JSONReader {
  private static let depthLimit = 512

  private let bytes: [UInt8]
  private var at = 0
  private var depth = 0

  /// The document in `bytes`; nil if they are not JSON.
  static func read(_ bytes: [UInt8]) -> JSONValue? {
    var reader = JSONReader(bytes: bytes)
    guard let value = reader.value() else { return nil }
    reader.skipSpace()
    return reader.at == bytes.count ? value : nil
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func value() -> JSONValue? {
    skipSpace()
    guard at < bytes.count else { return nil }
    switch bytes[at] {
    case UInt8(ascii: "{"): return nested { $0.object() }
    case UInt8(ascii: "["): return nested { $0.array() }
    case UInt8(ascii: "\""): return string().map(JSONValue.string)
    case UInt8(ascii: "n"): return skip("null") ? .null : nil
    case UInt8(ascii: "t"): return skip("true") ? .bool(true) : nil
    case UInt8(ascii: "f"): return skip("false") ? .bool(false) : nil
    default: return number()
    }
  }

  private mutating func nested(_ read: (inout JSONReader) -> JSONValue?) -> JSONValue? {
    at += 1
    depth += 1
    defer { depth -= 1 }
    return depth <= Self.depthLimit ? read(&self) : nil
  }

  private mutating func object() -> JSONValue? {
    var members: [(name: String, value: JSONValue)] = []
    skipSpace()
    if skip("}") { return .object([]) }
    while true {
      skipSpace()
      guard let name = string() else { return nil }
      skipSpace()
      guard skip(":"), let value = value() else { return nil }
      members.append((name, value))
      skipSpace()
      if skip("}") { return .object(members.sorted { $0.name < $1.name }) }
      guard skip(",") else { return nil }
    }
  }

  private mutating func array() -> JSONValue? {
    var elements: [JSONValue] = []
    skipSpace()
    if skip("]") { return .array([]) }
    while true {
      guard let element = value() else { return nil }
      elements.append(element)
      skipSpace()
      if skip("]") { return .array(elements) }
      guard skip(",") else { return nil }
    }
  }

  private mutating func skipSpace() {
    while at < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
  }

  private mutating func skip(_ word: StaticString) -> Bool {
    let end = at + word.utf8CodeUnitCount
    guard end <= bytes.count,
      bytes[at..<end].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: end - at))
    else { return false }
    at = end
    return true
  }
}

// MARK: - Numbers and strings

extension JSONReader {
  private mutating func number() -> JSONValue? {
    let start = at
    _ = skip("-")
    if !skip("0") {
      guard skipDigits() else { return nil }
    }
    if skip("."), !skipDigits() { return nil }
    if skip("e") || skip("E") {
      if !skip("+") { _ = skip("-") }
      guard skipDigits() else { return nil }
    }
    return .number(String(decoding: bytes[start..<at], as: UTF8.self))
  }

  private mutating func skipDigits() -> Bool {
    let start = at
    while at < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[at]) { at += 1 }
    return at > start
  }

  private mutating func string() -> String? {
    guard skip("\"") else { return nil }
    var text: [UInt8] = []
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      switch byte {
      case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let scalar = escape() else { return nil }
        text += Array(String(scalar).utf8)
      case 0..<0x20: return nil
      default: text.append(byte)
      }
    }
    return nil
  }

  private mutating func escape() -> Unicode.Scalar? {
    guard at < bytes.count else { return nil }
    at += 1
    switch bytes[at - 1] {
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "u"): return unicodeEscape()
    case let byte where "\"\\/".utf8.contains(byte): return Unicode.Scalar(byte)
    default: return nil
    }
  }

  private mutating func unicodeEscape() -> Unicode.Scalar? {
    guard let unit = codeUnit() else { return nil }
    guard UTF16.isLeadSurrogate(unit) else { return Unicode.Scalar(unit) }
    guard skip("\\u"), let trail = codeUnit(), UTF16.isTrailSurrogate(trail) else { return nil }
    return Unicode.Scalar(
      0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00))
  }

  private mutating func codeUnit() -> UInt16? {
    guard at + 4 <= bytes.count else { return nil }
    let digits = String(decoding: bytes[at..<(at + 4)], as: UTF8.self)
    guard let unit = UInt16(digits, radix: 16), !digits.hasPrefix("+") else { return nil }
    at += 4
    return unit
  }
}
