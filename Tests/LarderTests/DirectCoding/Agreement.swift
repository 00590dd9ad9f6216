import Foundation
import LarderTestSupport

@testable import Larder

/// Compares direct coding of a type with coding through `Codable`.
///
/// The fuzzer uses it, too.
///
/// The direct reader may refuse bytes that `Codable` accepts, because the value is then decoded
/// through `Codable`. If it accepts bytes, `Codable` accepts them as an equal value.
struct Agreement: Sendable {
  /// What the two disagree on.
  struct Disagreement: Error, CustomStringConvertible {
    let description: String
  }

  /// Checks payloads with one route, and returns how many of them the direct reader accepts.
  ///
  /// If `isReused`, the route has read proper payloads before, and follows its plans for them.
  let check: @Sendable (_ payloads: [[UInt8]], _ isReused: Bool) throws -> Int
  /// Payloads of the type and of arrays of it, written by both routes.
  let payloads: [[UInt8]]

  /// The agreements for all models, in their order.
  static func all(seed: UInt64) throws -> [Agreement] {
    try Models.all.map { try Agreement($0, seed: seed) }
  }

  init<T: DirectCoding & RandomModel>(_ type: T.Type, seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let honest = try Honest((0..<3).map { _ in T(&random) })
    payloads = honest.one + honest.list
    check = { try honest.check($0, isReused: $1) }
  }
}

/// Payloads of a type and of arrays of it, by both routes.
///
/// It does not keep the values: the leak sanitizer does not find what a `Data` refers to.
private struct Honest<T: DirectCoding & Equatable>: Sendable {
  let one: [[UInt8]]
  let list: [[UInt8]]

  init(_ values: [T]) throws {
    let route = DirectRoute<T>()
    one = [
      try written { try route.encode(values[0], into: &$0) }, try written(by: values[0]),
    ]
    list = [try written { try route.encode(values, into: &$0) }, try written(by: values)]
    for bytes in list where !isSame(try Binary.decode([T].self, from: bytes.span.bytes), values) {
      throw Agreement.Disagreement(description: "\(values) came back as another list")
    }
  }

  func check(_ payloads: [[UInt8]], isReused: Bool) throws -> Int {
    let route = DirectRoute<T>()
    if isReused { try readHonest(route) }
    let read = try payloads.count(where: { try check($0, by: route) })
    // Payloads that were read before do not change how others are read.
    try readHonest(route)
    return read
  }

  private func check(_ payload: [UInt8], by route: DirectRoute<T>) throws -> Bool {
    let byCodable = attempt { try Binary.decode(T.self, from: payload.span.bytes) }
    let listByCodable = attempt { try Binary.decode([T].self, from: payload.span.bytes) }
    var isRead = false
    // The second time, the route follows the plan that it has made the first time.
    for _ in 0..<2 {
      let direct = attempt { try payload.withUnsafeBytes { try route.read($0) } }
      try compare(direct, byCodable)
      let directList = attempt { try payload.withUnsafeBytes { try route.readList($0) } }
      try compare(directList, listByCodable)
      isRead = direct != nil || directList != nil
    }
    guard let byCodable else { return isRead }
    let direct = try written { try route.encode(byCodable, into: &$0) }
    let back = try route.decode(direct.span.bytes)
    guard isSame(back, byCodable) else {
      throw Agreement.Disagreement(description: "\(byCodable) came back as \(back)")
    }
    return isRead
  }

  private func readHonest(_ route: DirectRoute<T>) throws {
    for bytes in one {
      try compare(
        try route.decode(bytes.span.bytes), try Binary.decode(T.self, from: bytes.span.bytes))
    }
    for bytes in list {
      try compare(
        try route.decodeList(bytes.span.bytes), try Binary.decode([T].self, from: bytes.span.bytes))
    }
  }
}

private func compare<T: Codable & Equatable>(_ direct: T?, _ byCodable: T?) throws {
  guard let direct else { return }
  guard let byCodable else {
    throw Agreement.Disagreement(description: "only direct coding accepts \(direct)")
  }
  guard isSame(direct, byCodable) else {
    throw Agreement.Disagreement(description: "\(direct) is not \(byCodable)")
  }
}

private func attempt<T>(_ body: () throws -> T) -> T? {
  do { return try body() } catch { return nil }
}
