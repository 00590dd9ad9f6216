import Larder

/// Coding of types that the coder has no fast way for, against JSON.
///
/// The values differ from one operation to the next, so that caching the last one gains nothing.
struct UntunedSuite {
  private(set) var contests: [Contest] = []
  private var random = WorkloadRandom(seed: Scale.seed)
  private let count: Int

  init(_ scale: Scale) throws {
    count = max(CodingSuite.variants, scale.visited / 800)
    let activities = try PayloadsOf("50 enums with payloads") {
      list(of: 50) { Untuned.Activity(&random) }
    }
    // As a cache codes an enum that is only `Codable`. This one is coded directly by a cache.
    let payloads = activities.binary
    contests += activities.untuned(
      count,
      encode: activities.encoding(count) { try Binary.encode(activities.values[$0], into: &$1) },
      decode: activities.decoding(count) { try Self.decode(payloads[$0]) })
    contests += [activities.directEncoding(count), activities.directDecoding(count)]
    try add("dictionary of 50 structs") { random in
      named(50) { Untuned.Setting(&random) }
    }
    try add("struct of 40 fields", times: 10) { Untuned.Wide(&$0) }
    try add("20 structs of 40 fields") { random in list(of: 20) { Untuned.Wide(&random) } }
    try add("50 structs, names not ASCII") { random in list(of: 50) { Untuned.Foreign(&random) } }
    try add("50 objects of a subclass") { random in list(of: 50) { Untuned.Sharing(&random) } }
    try add("50 objects, super encoder") { random in list(of: 50) { Untuned.Nesting(&random) } }
    try add("50 lists of integers by name") { random in
      named(50) { list(of: 20) { random.number(10_000) } }
    }
    try add("20 structs, nested optionals") { random in list(of: 20) { Untuned.Holes(&random) } }
    try add("20 structs of Foundation's types") { random in
      list(of: 20) { Untuned.Foundations(&random) }
    }
    try add("tree of 40 folders") { Untuned.Folder(&$0) }
    try add("64 values of any kind") { Untuned.Anything(&$0) }
  }

  private static func decode(_ bytes: [UInt8]) throws -> [Untuned.Activity] {
    try Binary.decode([Untuned.Activity].self, from: bytes.span.bytes)
  }

  private mutating func add<T: Codable & Equatable & Sendable>(
    _ name: String, times: Int = 1, make: (inout WorkloadRandom) -> T
  ) throws {
    let payloads = try PayloadsOf(name) { make(&random) }
    let count = count * times
    contests += payloads.untuned(
      count, encode: payloads.encode(count), decode: payloads.decode(count))
  }
}

private func list<T>(of count: Int, make: () -> T) -> [T] { (0..<count).map { _ in make() } }

private func named<T>(_ count: Int, make: () -> T) -> [String: T] {
  var values: [String: T] = [:]
  for index in 0..<count { values["name \(index)"] = make() }
  return values
}

extension PayloadsOf {
  fileprivate func untuned(
    _ count: Int, encode: @escaping Contest.Run, decode: @escaping Contest.Run
  ) -> [Contest] {
    [
      Contest(
        name: "encode \(name)", operations: count, goal: 1 / 6, a: encode, b: encodeJSON(count)),
      Contest(
        name: "decode \(name)", operations: count, goal: 1 / 3, a: decode, b: decodeJSON(count)),
    ]
  }
}
