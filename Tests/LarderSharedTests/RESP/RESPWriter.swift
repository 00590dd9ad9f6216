import LarderShared
import LarderTestSupport

/// Writes values as a server sends them.
struct RESPWriter {
  private(set) var bytes: [UInt8] = []

  /// Writes a value in one of its spellings.
  mutating func append(_ value: RESPValue, spelling random: inout SplitMix64) {
    // An attribute, which describes the value.
    if random.below(8) == 0 { bytes += Array("|1\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n".utf8) }
    switch value {
    case .string(let text): append(text, spelling: &random)
    case .error(let error):
      let isLine = !error.bytes.contains { "\r\n".utf8.contains($0) }
      if isLine, random.below(2) == 0 {
        append("-", error.bytes)
      } else {
        append("!", bulk: error.bytes)
      }
    case .integer(let number): append(":\(number)")
    case .double(let number): append(",\(number)")
    case .boolean(let isTrue): append(isTrue ? "#t" : "#f")
    case .null: append(["_", "$-1", "*-1"][random.below(3)])
    case .array(let elements):
      append(["*", "~"][random.below(2)], elements, elements.count, &random)
    case .map(let elements): append("%", elements, elements.count / 2, &random)
    case .push(let elements): append(">", elements, elements.count, &random)
    }
  }

  private mutating func append(_ text: [UInt8], spelling random: inout SplitMix64) {
    let isNumber = !text.isEmpty && text.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    let isLine = !text.contains { "\r\n".utf8.contains($0) }
    switch random.below(4) {
    case 0 where isLine: append("+", text)
    case 1 where isNumber: append("(", text)
    case 2: append("=", bulk: Array("txt:".utf8) + text)
    default: append("$", bulk: text)
    }
  }

  private mutating func append(
    _ type: String, _ elements: [RESPValue], _ count: Int, _ random: inout SplitMix64
  ) {
    append("\(type)\(count)")
    for element in elements { append(element, spelling: &random) }
  }

  private mutating func append(_ type: String, bulk text: [UInt8]) {
    append("\(type)\(text.count)")
    bytes += text + Array("\r\n".utf8)
  }

  private mutating func append(_ type: String, _ text: [UInt8] = []) {
    bytes += Array(type.utf8) + text + Array("\r\n".utf8)
  }
}

/// What a decoder makes of bytes.
struct Decoded: Equatable {
  var values: [RESPValue] = []
  var fault: RESPFault?

  /// Decodes `bytes`, divided at `ends`.
  init(
    _ bytes: [UInt8], dividedAt ends: some Sequence<Int> = [],
    limits: RESPDecoder.Limits = RESPDecoder.Limits()
  ) {
    var decoder = RESPDecoder(limits: limits)
    var start = 0
    for end in Array(ends) + [bytes.count] {
      do throws(RESPFault) {
        try decoder.decode(bytes[start..<end].span.bytes) { values.append($0) }
      } catch {
        // A fault that has been found stays.
        guard fault == nil || fault == error else { fatalError("another fault") }
        fault = error
      }
      start = end
    }
  }
}
