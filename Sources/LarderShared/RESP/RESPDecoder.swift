/// Reads values of RESP2 and RESP3 from the bytes of a connection, in whatever pieces they arrive.
///
/// Nothing is allocated by a length that a server announces: strings and arrays grow with what has
/// arrived.
///
/// After a fault it is not known where the next value begins, so the connection is of no more use:
/// each further call throws the same fault.
package struct RESPDecoder: Sendable {
  /// What a server may send as one value; more is a fault.
  package struct Limits: Sendable {
    /// Arrays and maps within one another.
    package var depth = 8
    /// The elements of all arrays and maps together; a map's keys and values count each.
    package var elements = 1 << 18
    /// Bytes as they are sent.
    ///
    /// A record has at most 32 MiB of payload and a few KB before it.
    package var bytes = 33 << 20

    package init() {}
  }

  /// An array, map or the like whose elements are not all there.
  private struct Aggregate {
    enum Kind { case array, map, push, attribute }

    let kind: Kind
    var missing: Int
    var elements: [RESPValue] = []

    /// The value, if it is complete; nil for an attribute.
    var value: RESPValue? {
      switch kind {
      case .array: .array(elements)
      case .map: .map(elements)
      case .push: .push(elements)
      case .attribute: nil
      }
    }
  }

  /// A string whose length was announced.
  private struct Bulk {
    enum Kind { case string, verbatim, error }

    let kind: Kind
    /// The number of its bytes and of the line end after it.
    let count: Int
    var bytes: [UInt8] = []
  }

  private let limits: Limits
  private var bytesLeft: Int
  private var elementsLeft: Int
  /// The aggregates that are open, each within the one before it.
  private var open: [Aggregate] = []
  private var bulk: Bulk?
  /// The part of a line that has arrived, if a piece ended within it.
  private var line: [UInt8] = []
  private var fault: RESPFault?

  package init(limits: Limits = Limits()) {
    self.limits = limits
    (bytesLeft, elementsLeft) = (limits.bytes, limits.elements)
  }

  /// The room that the value takes which has arrived in part, in bytes.
  package var heldBytes: Int {
    line.capacity + (bulk?.bytes.capacity ?? 0)
      + open.reduce(0) { $0 + $1.elements.capacity * MemoryLayout<RESPValue>.stride }
  }

  /// Reads the next bytes, and gives each value that they complete to `body`.
  ///
  /// - Throws: ``RESPFault``. The values before the faulty one were given to `body`.
  /// - Complexity: O(*n*) in the number of bytes, however they are divided among calls.
  package mutating func decode(
    _ bytes: RawSpan, _ body: (RESPValue) -> Void
  ) throws(RESPFault) {
    if let fault { throw fault }
    do {
      var place = 0
      while place < bytes.byteCount {
        let part =
          bulk == nil
          ? try readLine(bytes, at: &place) : try readBulk(bytes, at: &place)
        if let part, let value = finish(part) { body(value) }
      }
    } catch {
      fault = error
      (open, bulk, line) = ([], nil, [])
      throw error
    }
  }
}

/// Why bytes are no value, or none that a client accepts.
package enum RESPFault: Error, Hashable {
  /// A value began with a byte that is no type: the other side speaks another protocol.
  case unknownType(UInt8)
  /// What follows a type is not as the protocol says.
  case malformed(String)
  /// A value exceeds one of the decoder's limits.
  case overLimit(String)
}

// MARK: - Lines

extension RESPDecoder {
  /// Reads up to the end of a line; returns the value that it completes.
  private mutating func readLine(
    _ bytes: RawSpan, at place: inout Int
  ) throws(RESPFault) -> RESPValue? {
    let start = place
    if line.isEmpty {
      let type = bytes.unsafeLoad(fromByteOffset: start, as: UInt8.self)
      guard "+-:$*_,#!=(%~>|".utf8.contains(type) else { throw .unknownType(type) }
    }
    while place < bytes.byteCount {
      place += 1
      guard bytes[place - 1] == UInt8(ascii: "\n") else { continue }
      try spend(place - start)
      guard !line.isEmpty else { return try readLine(bytes.extracting(start..<place)) }
      line.append(bytes.extracting(start..<place))
      let whole = line
      line.removeAll(keepingCapacity: whole.count < 1024)
      return try readLine(whole.span.bytes)
    }
    try spend(place - start)
    line.append(bytes.extracting(start..<place))
    return nil
  }

  private mutating func spend(_ count: Int) throws(RESPFault) {
    guard count <= bytesLeft else { throw .overLimit("a value of over \(limits.bytes) bytes") }
    bytesLeft -= count
  }

  /// Reads a line, which has its type and its end.
  private mutating func readLine(_ line: RawSpan) throws(RESPFault) -> RESPValue? {
    let end = line.byteCount - 2
    guard end > 0, line[end] == UInt8(ascii: "\r") else {
      throw .malformed("a line that does not end with CR LF")
    }
    let text = line.extracting(1..<end)
    for place in text.byteOffsets where text[place] == UInt8(ascii: "\r") {
      throw .malformed("a CR within a line")
    }
    switch Unicode.Scalar(line[0]) {
    case "+": return .string(Array(text))
    case "-": return .error(RESPError(Array(text)))
    case ":": return .integer(try integer(text))
    case ",": return .double(try double(text))
    case "(":
      let digits = text.byteCount > 0 && text[0] == UInt8(ascii: "-") ? text.extracting(1...) : text
      guard digits.isDecimal else { throw .malformed("a big number that is none") }
      return .string(Array(text))
    case "_":
      guard text.isEmpty else { throw .malformed("a null that is not empty") }
      return .null
    case "#":
      switch Array(text) {
      case Array("t".utf8): return .boolean(true)
      case Array("f".utf8): return .boolean(false)
      default: throw .malformed("a boolean that is neither t nor f")
      }
    case "$": return try beginBulk(.string, text)
    case "=": return try beginBulk(.verbatim, text)
    case "!": return try beginBulk(.error, text)
    case "*", "~": return try begin(.array, text)
    case "%": return try begin(.map, text)
    case ">": return try begin(.push, text)
    default: return try begin(.attribute, text)
    }
  }

  private func integer(_ text: RawSpan) throws(RESPFault) -> Int64 {
    guard let number = Int64(String(decoding: Array(text), as: UTF8.self)) else {
      throw .malformed("an integer that is none")
    }
    return number
  }

  private func double(_ text: RawSpan) throws(RESPFault) -> Double {
    let text = String(decoding: Array(text), as: UTF8.self)
    switch text {
    case "inf": return .infinity
    case "-inf": return -.infinity
    case "nan", "-nan": return .nan
    default:
      // Swift also reads hexadecimal numbers and names.
      guard text.utf8.allSatisfy("0123456789+-.eE".utf8.contains), let number = Double(text) else {
        throw .malformed("a double that is none")
      }
      return number
    }
  }

  /// The number of bytes or elements that a line announces; nil for -1, the null of RESP2.
  private func count(_ text: RawSpan) throws(RESPFault) -> Int? {
    if text.byteCount == 2, text[0] == UInt8(ascii: "-"), text[1] == UInt8(ascii: "1") {
      return nil
    }
    guard text.isDecimal else { throw .malformed("a length that is none") }
    var count = 0
    for place in text.byteOffsets {
      // More digits would overflow; it is over each limit as it is.
      guard count < 1 << 40 else { return count }
      count = 10 * count + Int(text[place] - UInt8(ascii: "0"))
    }
    return count
  }
}

// MARK: - Strings

extension RESPDecoder {
  private mutating func beginBulk(
    _ kind: Bulk.Kind, _ text: RawSpan
  ) throws(RESPFault) -> RESPValue? {
    guard let count = try count(text) else {
      guard kind == .string else { throw .malformed("a length that is none") }
      return .null
    }
    try spend(count + 2)
    bulk = Bulk(kind: kind, count: count + 2)
    return nil
  }

  /// Reads a part of the string that has begun; returns it if that is all.
  private mutating func readBulk(
    _ bytes: RawSpan, at place: inout Int
  ) throws(RESPFault) -> RESPValue? {
    guard var bulk = bulk.take() else { return nil }
    let count = min(bulk.count - bulk.bytes.count, bytes.byteCount - place)
    bulk.bytes.append(bytes.extracting(place..<place + count))
    place += count
    guard bulk.bytes.count == bulk.count else {
      self.bulk = bulk
      return nil
    }
    guard bulk.bytes.removeLast() == UInt8(ascii: "\n"),
      bulk.bytes.removeLast() == UInt8(ascii: "\r")
    else { throw .malformed("a string that is not as long as it says") }
    switch bulk.kind {
    case .string: return .string(bulk.bytes)
    case .error: return .error(RESPError(bulk.bytes))
    case .verbatim:
      // Three letters say what the text is, as in `txt:`.
      guard bulk.bytes.count >= 4, bulk.bytes[3] == UInt8(ascii: ":") else {
        throw .malformed("a verbatim string without its type")
      }
      return .string(Array(bulk.bytes[4...]))
    }
  }
}

// MARK: - Arrays, maps and the like

extension RESPDecoder {
  private mutating func begin(
    _ kind: Aggregate.Kind, _ text: RawSpan
  ) throws(RESPFault) -> RESPValue? {
    guard kind != .push || open.isEmpty else { throw .malformed("a push within another value") }
    guard let count = try count(text) else {
      guard kind == .array else { throw .malformed("a length that is none") }
      return .null
    }
    let factor = kind == .map || kind == .attribute ? 2 : 1
    guard count <= elementsLeft / factor else {
      throw .overLimit("a value of over \(limits.elements) elements")
    }
    guard open.count < limits.depth else {
      throw .overLimit("a value within over \(limits.depth) others")
    }
    elementsLeft -= count * factor
    let aggregate = Aggregate(kind: kind, missing: count * factor)
    guard count == 0 else {
      open.append(aggregate)
      return nil
    }
    return aggregate.value
  }

  /// Puts a value into the aggregate that it belongs to.
  ///
  /// - Returns: The outermost value, if it is complete.
  private mutating func finish(_ part: RESPValue) -> RESPValue? {
    var part = part
    while let last = open.indices.last {
      open[last].elements.append(part)
      open[last].missing -= 1
      guard open[last].missing == 0, let value = open.removeLast().value else { return nil }
      part = value
    }
    (bytesLeft, elementsLeft) = (limits.bytes, limits.elements)
    return part
  }
}

extension RawSpan {
  /// The byte at an offset.
  fileprivate subscript(_ offset: Int) -> UInt8 {
    unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  fileprivate var isDecimal: Bool {
    !isEmpty && byteOffsets.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self[$0] }
  }
}

extension [UInt8] {
  fileprivate init(_ bytes: RawSpan) { self = bytes.withUnsafeBytes { Array($0) } }

  fileprivate mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append(contentsOf: $0) }
  }
}
