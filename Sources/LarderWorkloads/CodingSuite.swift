import Foundation
import Larder
import LarderBytes
import LarderCoding

/// Payloads encoded and decoded by Larder's binary coder, against Foundation's JSON, and against
/// making the same values by hand from bytes that lie ready, or copying as many bytes.
///
/// The values differ from one operation to the next: nothing that remembers the last one would look
/// better than it is.
struct CodingSuite {
  static let variants = 64
  let contests: [Contest]

  init(_ scale: Scale) throws {
    let operations = Self.operations(scale)
    var random = SplitMix64(seed: Scale.seed)
    var contests: [Contest] = []
    func add<Value>(_ payloads: PayloadsOf<Value>, _ goals: CodingGoals, weight: Int = 1) {
      contests += payloads.contests(operations * weight, goals)
    }
    // Goals for a time were set on a machine where JSON took 338 and 463 us for the feed items, 247
    // and 426 us for the characters, and 1372 and 2066 ns for the small struct.
    add(
      try Self.feedItems(&random),
      CodingGoals(
        encode: 1 / 20, decode: nil, directEncode: 1 / 80, directDecode: nil,
        floor: 1.4, directFloor: 1.05))
    add(
      try PayloadsOf("100 characters", floor: CharacterItem.floor) {
        (0..<100).map { _ in CharacterItem(&random) }
      },
      CodingGoals(
        encode: 18 / 247, decode: nil, directEncode: 5 / 247, directDecode: nil,
        floor: 1.4, directFloor: 1.05))
    add(
      try PayloadsOf("small struct", floor: Small.floor) { Small(&random) },
      CodingGoals(
        encode: 80 / 1372, decode: 150 / 2066, directEncode: 15 / 1372, directDecode: 55 / 2066),
      weight: 50)
    add(
      try PayloadsOf("100 KB of data", copied: Blob.byteCount) { Blob(&random) },
      CodingGoals(
        copyEncode: 1.1, copyDecode: 1.1, directCopyEncode: 1.05, directCopyDecode: 1.05))
    add(
      try PayloadsOf("2,000 numbers", copied: Numbers.byteCount) { Numbers(&random) },
      CodingGoals(
        copyEncode: 2, copyDecode: 4, directCopyEncode: 1.5, directCopyDecode: 3))
    self.contests = contests
  }

  static func operations(_ scale: Scale) -> Int { max(variants, scale.visited / 400) }

  static func feedItems(_ random: inout SplitMix64) throws -> PayloadsOf<[FeedItem]> {
    try PayloadsOf("100 feed items", floor: FeedItem.floor) {
      (0..<100).map { _ in FeedItem(&random) }
    }
  }
}

/// The largest ratios that are good enough: to JSON, to making the values, to copying the bytes.
struct CodingGoals {
  var encode: Double?
  var decode: Double?
  var directEncode: Double?
  var directDecode: Double?
  var floor: Double?
  var directFloor: Double?
  var copyEncode: Double?
  var copyDecode: Double?
  var directCopyEncode: Double?
  var directCopyDecode: Double?
}

/// The same values as Swift has them, as the binary coder writes them, and as JSON.
struct PayloadsOf<Value: Codable & Equatable & Sendable> {
  /// Makes a value from bytes of its strings, without a decoder.
  typealias Floor = (Value) -> () -> Value

  private let name: String
  private let coder = Coder<Value>.binary
  private var values: [Value] = []
  private var binary: [[UInt8]] = []
  private var direct: [[UInt8]] = []
  private var json: [Data] = []
  private var floor: [() -> Value] = []
  /// As many bytes as the value has; nil where it is not mostly bytes.
  private let copied: Int?

  init(
    _ name: String, floor: Floor? = nil, copied: Int? = nil, make: () -> Value
  ) throws {
    self.name = name
    self.copied = copied
    for _ in 0..<CodingSuite.variants {
      let value = make()
      var buffer = ByteBuffer()
      try Binary.encode(value, into: &buffer)
      let byCodable = Array(buffer)
      buffer.truncate(to: 0)
      try coder.encode(value, &buffer)
      let directly = Array(buffer)
      guard try Binary.decode(Value.self, from: byCodable.span.bytes) == value,
        try coder.decode(directly.span.bytes) == value, floor?(value)() ?? value == value
      else { throw WrongResults(description: "\(name) came back as something else") }
      values.append(value)
      binary.append(byCodable)
      direct.append(directly)
      json.append(try JSONEncoder().encode(value))
      if let floor { self.floor.append(floor(value)) }
    }
  }

  func contests(_ count: Int, _ goals: CodingGoals) -> [Contest] {
    func contest(
      _ name: String, _ goal: Double?, _ a: @escaping Contest.Run, _ b: @escaping Contest.Run
    ) -> Contest {
      Contest(name: name, operations: count, goal: goal, a: a, b: b)
    }
    let encode = encoding(count) { try Binary.encode(values[$0], into: &$1) }
    let encodeDirectly = encoding(count) { try coder.encode(values[$0], &$1) }
    let decode = decoding(count) { try Self.decode(binary[$0]) }
    let decodeDirectly = decoding(count) { try Self.decode(direct[$0], coder) }
    let toJSON = run(count) { try JSONEncoder().encode(values[$0]).count >= json[$0].count / 2 }
    let fromJSON = decoding(count) { try JSONDecoder().decode(Value.self, from: json[$0]) }
    var contests = [
      contest("encode \(name)", goals.encode, encode, toJSON),
      contest("encode \(name), directly", goals.directEncode, encodeDirectly, toJSON),
      contest("decode \(name)", goals.decode, decode, fromJSON),
      contest("decode \(name), directly", goals.directDecode, decodeDirectly, fromJSON),
    ]
    if !floor.isEmpty {
      let make = decoding(count) { floor[$0]() }
      contests += [
        contest("decode \(name), to making them", goals.floor, decode, make),
        contest(
          "decode \(name), directly, to making them", goals.directFloor, decodeDirectly, make),
      ]
    }
    if let copied {
      let copy = copying(copied, count)
      contests += [
        contest("encode \(name), to copying", goals.copyEncode, encode, copy),
        contest(
          "encode \(name), directly, to copying", goals.directCopyEncode, encodeDirectly, copy),
        contest("decode \(name), to copying", goals.copyDecode, decode, copy),
        contest(
          "decode \(name), directly, to copying", goals.directCopyDecode, decodeDirectly, copy),
      ]
    }
    return contests
  }

  private static func decode(_ bytes: [UInt8]) throws -> Value {
    try Binary.decode(Value.self, from: bytes.span.bytes)
  }

  private static func decode(_ bytes: [UInt8], _ coder: Coder<Value>) throws -> Value {
    try coder.decode(bytes.span.bytes)
  }

  // MARK: - Runs

  /// Does something with one value after the other.
  private func run(_ count: Int, _ body: @escaping (Int) throws -> Bool) -> Contest.Run {
    {
      try timed(expecting: count) {
        var right = 0
        for step in 0..<count where try body(step % CodingSuite.variants) { right += 1 }
        return right
      }
    }
  }

  private func encoding(
    _ count: Int, _ body: @escaping (Int, inout ByteBuffer) throws -> Void
  ) -> Contest.Run {
    {
      var buffer = ByteBuffer()
      return try timed(expecting: count) {
        var right = 0
        for step in 0..<count {
          let variant = step % CodingSuite.variants
          buffer.truncate(to: 0)
          try body(variant, &buffer)
          // The two routes may differ by what stands before a value.
          if abs(buffer.count - binary[variant].count) <= 2 * 100 { right += 1 }
        }
        return right
      }
    }
  }

  private func decoding(_ count: Int, _ body: @escaping (Int) throws -> Value) -> Contest.Run {
    run(count) { variant in
      let value = try body(variant)
      return withExtendedLifetime(value) { true }
    }
  }

  /// Copies bytes from and to places that change as those of the values do.
  private func copying(_ size: Int, _ count: Int) -> Contest.Run {
    let source = direct
    return {
      var buffer = ByteBuffer()
      return try timed(expecting: count) {
        var right = 0
        for step in 0..<count {
          buffer.truncate(to: 0)
          source[step % CodingSuite.variants].withUnsafeBytes { bytes in
            buffer.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(size)))
          }
          if buffer.count == size { right += 1 }
        }
        return right
      }
    }
  }
}
