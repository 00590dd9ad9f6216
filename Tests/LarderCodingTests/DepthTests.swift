import Foundation
@testable import Larder
import Testing

@testable import Specimens

/// Lists and objects nested deeper than 128 levels are refused at once.
///
/// "At once" means that deeper values are neither asked to encode themselves nor stored.
@Suite struct DepthTests {
  static let formats: [PayloadFormat] = [.binary, .json, .propertyList]

  // MARK: - Encoding

  @Test("128 levels round-trip, however they are made.", arguments: formats, Nest.Way.allCases)
  func limit(format: PayloadFormat, way: Nest.Way) throws {
    var bytes = ByteBuffer()
    try format.encode(Nest(way, levels: 128), into: &bytes)
    let depth = try format.decode(Depth.self, from: Array(bytes).span.bytes)
    #expect(depth.levels == 128)
    if format == .binary {
      let byTree = try encodedByTree(Nest(way, levels: 128))
      #expect(try decoded(Depth.self, from: byTree).levels == 128)
    }
  }

  @Test(
    "More levels are refused, and deeper values are not visited.", arguments: formats,
    Nest.Way.allCases)
  func overTheLimit(format: PayloadFormat, way: Nest.Way) {
    for levels in way.levelsOverTheLimit {
      let nest = Nest(way, levels: levels)
      #expect(
        refusal {
          var bytes = ByteBuffer()
          try format.encode(nest, into: &bytes)
        }, "\(levels)")
      // Once by the stream, and once by the tree.
      #expect(nest.work.visits <= 2 * 130, "\(levels)")
    }
  }

  @Test("The tree refuses too many levels without the stream's help.", arguments: Nest.Way.allCases)
  func treeOverTheLimit(way: Nest.Way) {
    for levels in way.levelsOverTheLimit {
      let nest = Nest(way, levels: levels)
      #expect(refusal { _ = try encodedByTree(nest) }, "\(levels)")
      #expect(nest.work.visits <= 130, "\(levels)")
    }
  }

  @Test(
    "Values that encode another value in their own place have a limit, too.", arguments: formats)
  func valuesInPlace(format: PayloadFormat) {
    final class InPlace: Encodable {
      let work = Nest.Work()

      func encode(to encoder: any Encoder) throws {
        try work.visit()
        var container = encoder.singleValueContainer()
        try container.encode(self)
      }
    }
    let value = InPlace()
    #expect(
      refusal {
        var bytes = ByteBuffer()
        try format.encode(value, into: &bytes)
      })
    #expect(value.work.visits <= 2 * 512)
  }

  @Test(
    "Lists of scalars count as a level, and a refused value leaves no bytes.", arguments: formats)
  func lists(format: PayloadFormat) throws {
    struct Lists<Inner: Encodable>: Encodable {
      var levels: Int
      var inner: Inner

      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for _ in 1..<levels { container = container.nestedUnkeyedContainer() }
        try container.encode(inner)
      }
    }
    func refuses(_ value: some Encodable) -> Bool {
      refusal {
        var bytes = ByteBuffer()
        bytes.append(UInt8(7))
        defer { #expect(Array(bytes).first == 7) }
        try format.encode(value, into: &bytes)
      }
    }
    #expect(!refuses(Lists(levels: 127, inner: [1, 2])))
    #expect(refuses(Lists(levels: 128, inner: [1, 2])))
    #expect(!refuses(Lists(levels: 127, inner: ["a": 1])))
    #expect(refuses(Lists(levels: 128, inner: ["a": 1])))
    #expect(!refuses(Lists(levels: 128, inner: Date(timeIntervalSinceReferenceDate: 0))))
    #expect(!refuses(Lists(levels: 128, inner: Data([1]))))
    #expect(!refuses(Lists(levels: 128, inner: UUID())))
  }

  @Test(
    "An error that a type throws itself is passed on unchanged.",
    arguments: [.binary, .json] as [PayloadFormat])
  func ownErrors(format: PayloadFormat) {
    struct Own: Error {}
    struct Failing: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(1)
        throw Own()
      }
    }
    #expect(throws: Own.self) {
      var bytes = ByteBuffer()
      try format.encode([Failing()], into: &bytes)
    }
  }

  @Test("Every kind of type can be measured without an error.")
  func typesOfAnyKind() throws {
    let values: [any Encodable] = [
      Widths(), Optionals(a: 1, c: [1, nil], h: ["a": nil]), Dog(name: "Rex", age: 3),
      Cat(name: "Tom", lives: 9), Expression.sum(.number(1), .named(name: "n", value: nil)),
      Interleaved(Array(1...9)), [1.5], ["a": ["b": [Decimal(1)]]],
      Backwards(
        a: [1], b: RoundTripTests.item, c: "c", d: ["x": "y"]), [1: "a"], Int128.max, [UInt128.max],
    ]
    for value in values { try DepthCounter.check(value, allowsNaN: false) }
  }

  private struct Price: Codable {
    var amount: Decimal?
    var others: [String: [Decimal]] = [:]
  }

  @Test("JSON refuses a Decimal that is not a number; what the other formats write can be read.")
  func notANumber() throws {
    func check<Value: Codable>(_ value: Value, isNaN: (Value) -> Bool) throws {
      for format in Self.formats {
        var bytes = ByteBuffer()
        guard format == .json else {
          try format.encode(value, into: &bytes)
          #expect(isNaN(try format.decode(Value.self, from: Array(bytes).span.bytes)))
          continue
        }
        #expect(throws: EncodingError.self) { try format.encode(value, into: &bytes) }
        #expect(bytes.count == 0)
      }
    }
    try check([Decimal(1), .nan]) { $0[1].isNaN }
    try check(Price(amount: .nan)) { $0.amount?.isNaN == true }
    try check(Price(amount: 1, others: ["a": [2, .nan]])) { $0.others["a"]?[1].isNaN == true }
    try check([1: Decimal.nan]) { $0[1]?.isNaN == true }
    var bytes = ByteBuffer()
    #expect(throws: EncodingError.self) {
      try PayloadFormat.json.encode(Decimal.nan, into: &bytes)
    }
    let largest = [Decimal.greatestFiniteMagnitude, .leastNonzeroMagnitude, -1]
    try PayloadFormat.json.encode(largest, into: &bytes)
    #expect(
      try PayloadFormat.json.decode([Decimal].self, from: Array(bytes).span.bytes) == largest)
  }

  /// Whether `body` throws the error for values nested too deeply.
  private func refusal(_ body: () throws -> Void) -> Bool {
    do {
      try body()
      return false
    } catch let error as EncodingError {
      return "\(error)".contains("Nested deeper than 128")
    } catch {
      return false
    }
  }

  // MARK: - Decoding

  @Test("Payloads of 128 levels are decoded, and deeper ones are refused before a type sees them.")
  func payloads() throws {
    for levels in [1, 127, 128, 129, 200, 513, 10_000, 1_000_000] {
      let arrays = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
      expectDepth(levels, .json, Array(arrays.utf8))
      let objects =
        String(repeating: #"{"a":"#, count: levels) + "1" + String(repeating: "}", count: levels)
      expectDepth(levels, .json, Array(objects.utf8))
      expectDepth(levels, .propertyList, propertyList(levels: levels))
      // Each list has one tagged element; the innermost list is empty.
      let last = [WireKind.list.rawValue, WireKind.tagged.rawValue, 0, 0, 0, 0]
      let list = [WireKind.list.rawValue, WireKind.tagged.rawValue, 1, 0, 0, 0]
      let lists = Array([[UInt8]](repeating: list, count: levels - 1).joined()) + last
      let size = withUnsafeBytes(of: UInt32(lists.count).littleEndian) { Array($0) }
      expectDepth(levels, .binary, [Binary.version] + size + lists + [0])
    }
  }

  private func expectDepth(
    _ levels: Int, _ format: PayloadFormat, _ bytes: [UInt8],
    at place: SourceLocation = #_sourceLocation
  ) {
    let found = outcome(format, bytes)
    #expect(found == (levels <= 128 ? "\(levels)" : "refused"), "\(levels)", sourceLocation: place)
  }

  /// The number of levels in a payload, "refused", or the text of another error.
  private func outcome(_ format: PayloadFormat, _ bytes: [UInt8]) -> String {
    do {
      return "\(try format.decode(Depth.self, from: bytes.span.bytes).levels)"
    } catch DecodingError.dataCorrupted(let context) {
      return context.debugDescription.contains("nested too deeply") ? "refused" : "\(context)"
    } catch {
      return "\(error)"
    }
  }

  @Test("Brackets in strings are not levels, whatever is escaped around them.")
  func bracketsInStrings() throws {
    let brackets = String(repeating: "[{", count: 300)
    for text in [
      brackets, "\"" + brackets, brackets + "\\", "\\\"" + brackets, "\\\\" + brackets,
      "\u{1}\u{2028}" + brackets + "\u{1F600}",
    ] {
      var bytes = ByteBuffer()
      try PayloadFormat.json.encode([text, text], into: &bytes)
      #expect(
        try PayloadFormat.json.decode([String].self, from: Array(bytes).span.bytes) == [text, text])
    }
    // The decoder refuses an unterminated string, and one that ends in a backslash.
    for text in [#"["\#(brackets)"#, #"["\#(brackets)\"#] {
      #expect(throws: DecodingError.self) {
        try PayloadFormat.json.decode([String].self, from: Array(text.utf8).span.bytes)
      }
    }
    // After a string, brackets are levels again.
    let behind = #"["\\",""# + "\\\"" + #"","# + String(repeating: "[", count: 200)
    #expect(
      outcome(.json, Array(behind.utf8) + Array(repeating: UInt8(ascii: " "), count: 100))
        == "refused")
  }

  @Test("A property list that is cyclic, malformed or not binary is refused.")
  func propertyLists() throws {
    // The second array refers to the first one.
    #expect(
      outcome(.propertyList, propertyList(levels: 2, innermost: [0xA1, 0, 0, 0, 0])) == "refused")

    let whole = propertyList(levels: 3)
    for offset in whole.indices {
      for value in [0, 1, 0x7F, 0x80, 0xAF, 0xDF, 0xFF] as [UInt8] {
        var changed = whole
        changed[offset] = value
        _ = outcome(.propertyList, changed)
      }
      _ = outcome(.propertyList, Array(whole[..<offset]))
    }
    let xml = PropertyListEncoder()
    xml.outputFormat = .xml
    let bytes = [UInt8](try xml.encode(["a": 1]))
    #expect(throws: DecodingError.self) {
      try PayloadFormat.propertyList.decode([String: Int].self, from: bytes.span.bytes)
    }
  }

  @Test("A long list of one level is decoded, and so is one whose elements are shared.")
  func wideLists() throws {
    for format in Self.formats {
      let value = (0..<3000).map { ["a": ["b": $0 % 7], "c": ["b": 1]] }
      var bytes = ByteBuffer()
      try format.encode(value, into: &bytes)
      let back = try format.decode([[String: [String: Int]]].self, from: Array(bytes).span.bytes)
      #expect(back == value)
    }
  }

  /// A binary property list of nested arrays, with references of four bytes.
  private func propertyList(levels: Int, innermost: [UInt8] = [0xA0]) -> [UInt8] {
    func bigEndian(_ number: Int, _ size: Int) -> [UInt8] {
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    for level in 1...levels {
      offsets.append(bytes.count)
      bytes += level < levels ? [0xA1] + bigEndian(level, 4) : innermost
    }
    let table = bytes.count
    for offset in offsets { bytes += bigEndian(offset, 4) }
    return bytes + Array(repeating: 0, count: 6) + [4, 4] + bigEndian(levels, 8)
      + bigEndian(0, 8) + bigEndian(table, 8)
  }
}

// MARK: - Values

/// Nested lists or objects, made in one of several ways.
struct Nest: Encodable {
  enum Way: CaseIterable {
    /// A loop over nested containers, or over encoders for a superclass.
    case lists, objects, superLists, superObjects, superNamed
    /// Values that encode each other.
    case listValues, objectValues, ignoringErrors

    /// Only some ways have a case of a million levels, because its loop takes long.
    var levelsOverTheLimit: [Int] {
      switch self {
      case .objects, .superLists, .superNamed: [129, 200, 10_000]
      default: [129, 200, 10_000, 1_000_000]
      }
    }
  }

  /// Counts the visits of a value.
  final class Work {
    private(set) var visits = 0

    /// Ends an unlimited recursion before the stack overflows.
    func visit() throws {
      visits += 1
      if visits > 3000 { throw Endless() }
    }
  }

  struct Endless: Error {}

  let way: Way
  let levels: Int
  let work: Work

  init(_ way: Way, levels: Int, work: Work = Work()) {
    (self.way, self.levels, self.work) = (way, levels, work)
  }

  private var inner: Nest { Nest(way, levels: levels - 1, work: work) }

  func encode(to encoder: any Encoder) throws {
    try work.visit()
    switch way {
    case .lists:
      var list = encoder.unkeyedContainer()
      try loop {
        list = list.nestedUnkeyedContainer()
      } path: {
        list.codingPath
      }
      try list.encode(true)
    case .objects:
      var object = encoder.container(keyedBy: Key.self)
      try loop {
        object = object.nestedContainer(keyedBy: Key.self, forKey: .a)
      } path: {
        object.codingPath
      }
      try object.encode(true, forKey: .a)
    case .superLists:
      var list = encoder.unkeyedContainer()
      try loop {
        list = list.superEncoder().unkeyedContainer()
      } path: {
        list.codingPath
      }
      try list.encode(true)
    case .superObjects, .superNamed:
      var object = encoder.container(keyedBy: Key.self)
      try loop {
        let next = way == .superNamed ? object.superEncoder(forKey: .a) : object.superEncoder()
        object = next.container(keyedBy: Key.self)
      } path: {
        object.codingPath
      }
      try object.encode(true, forKey: .a)
    case .listValues, .ignoringErrors:
      var list = encoder.unkeyedContainer()
      guard levels > 1 else { return try list.encode(true) }
      do {
        try list.encode(inner)
      } catch {
        guard way == .ignoringErrors, !(error is Endless) else { throw error }
      }
    case .objectValues:
      var object = encoder.container(keyedBy: Key.self)
      guard levels > 1 else { return try object.encode(true, forKey: .a) }
      try object.encode(inner, forKey: .a)
    }
  }

  private enum Key: String, CodingKey { case a }

  /// Makes the levels after the first; throws if a coder stores far more than it allows.
  private func loop(_ step: () -> Void, path: () -> [any CodingKey]) throws {
    for level in 1..<levels {
      step()
      if level.isMultiple(of: 1000), path().count > 200 { throw Endless() }
    }
  }
}

/// The depth of nested lists and objects that have one element each.
struct Depth: Decodable {
  private(set) var levels = 0

  init(from decoder: any Decoder) throws {
    var next: (any Decoder)? = decoder
    while let decoder = next {
      next = nil
      // A decoder without a limit would continue for very long.
      guard levels <= 600 else { throw Nest.Endless() }
      if let object = tried({ try decoder.container(keyedBy: AnyKey.self) }) {
        levels += 1
        if let key = object.allKeys.first { next = try object.superDecoder(forKey: key) }
      } else if var list = tried({ try decoder.unkeyedContainer() }) {
        levels += 1
        if !list.isAtEnd { next = try list.superDecoder() }
      }
    }
  }

  private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }
}
