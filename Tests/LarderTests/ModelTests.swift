import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Random operations on a store and on a plain dictionary give the same results at every step.
///
/// Each seed runs 10,000 operations; `make proof` runs more. A failure names its seed. To run it
/// again, put the seed into the argument list.
@Suite struct ModelTests {
  static let seeds: [UInt64] = [1, 2026, .random(in: 0 ... .max)]

  @Test("The store and the model agree at every step.", arguments: StoreKind.allCases, seeds)
  func agree(kind: StoreKind, seed: UInt64) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var random = SplitMix64(seed: seed)
    var model = Model(lifetime: .fresh(for: .seconds(100), thenStaleFor: .seconds(50)))
    var caches = try open(fixture, model)

    for step in 0..<(10_000 * proofFactor) {
      let name = Model.names.randomElement(using: &random) ?? ""
      let key = Model.keys.randomElement(using: &random) ?? ""
      let cache = try #require(caches[name])
      let now = fixture.clock.now()
      let place: Comment = "seed \(seed), step \(step)"
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<35:
        try cache.save(step, for: key)
        model.save(step, for: key, in: name, at: now)
      case 35..<65:
        #expect(try cache.lookup(for: key).summary == model.lookup(key, in: name, at: now), place)
      case 65..<73:
        #expect(try cache.remove(key) == model.remove(key, from: name), place)
      case 73..<78:
        #expect(try cache.touch(key) == model.touch(key, in: name, at: now), place)
      case 78..<83:
        try fixture.store.write { batch in
          for (offset, key) in Model.keys.enumerated() where offset % 3 == step % 3 {
            batch.save(step + offset, for: key, in: cache)
            model.save(step + offset, for: key, in: name, at: now)
          }
          batch.remove(key, from: cache)
          _ = model.remove(key, from: name)
        }
      case 83..<85:
        try cache.removeAll()
        model.removeAll(from: name)
      case 85..<87:
        #expect(try cache.validate().expired == model.validate(name, at: now), place)
      case 87..<94: fixture.clock.advance(by: Double.random(in: 0...40, using: &random))
      case 94: fixture.clock.set(now - 20)
      case 95..<99: try expectSameScan(cache, model, name, key, now, place)
      default:
        try fixture.reopen()
        caches = try open(fixture, model)
      }
    }
    for name in Model.names {
      let cache = try #require(caches[name])
      try expectSameScan(cache, model, name, "", fixture.clock.now(), "seed \(seed), the end")
    }
  }

  private func open(
    _ fixture: Fixture, _ model: Model
  ) throws -> [String: Cache<String, Int>] {
    var caches: [String: Cache<String, Int>] = [:]
    for name in Model.names {
      caches[name] = try fixture.store.cache(name, of: Int.self, lifetime: model.lifetime)
    }
    return caches
  }

  private func expectSameScan(
    _ cache: Cache<String, Int>, _ model: Model, _ name: String, _ prefix: String, _ now: Date,
    _ place: Comment
  ) throws {
    var found: [String] = []
    let cursor = try cache.entries(in: .prefix(prefix))
    while let item = try cursor.next() { found.append("\(item.key)=\(try item.entry.get().value)") }
    #expect(found == model.scan(name, prefix: prefix, at: now), place)
  }
}

/// The expected behavior of a store, in the simplest form.
private struct Model {
  static let names = ["one", "two", "another"]
  static let keys = ["", "a", "ab", "abc", "b", "\u{E9}", "\u{0}", "zzz", "k1", "k2", "k10"]

  let lifetime: Lifetime
  private var entries: [String: [String: (value: Int, savedAt: Date)]] = [:]

  init(lifetime: Lifetime) { self.lifetime = lifetime }

  mutating func save(_ value: Int, for key: String, in name: String, at now: Date) {
    entries[name, default: [:]][key] = (value, now)
  }

  mutating func remove(_ key: String, from name: String) -> Bool {
    entries[name]?.removeValue(forKey: key) != nil
  }

  mutating func removeAll(from name: String) { entries[name] = [:] }

  mutating func touch(_ key: String, in name: String, at now: Date) -> Bool {
    guard entries[name]?[key] != nil else { return false }
    entries[name]?[key]?.savedAt = now
    return true
  }

  mutating func validate(_ name: String, at now: Date) -> Int {
    let expired = entries[name, default: [:]].filter { now >= $0.value.savedAt + 150 }
    for key in expired.keys { entries[name]?[key] = nil }
    return expired.count
  }

  func lookup(_ key: String, in name: String, at now: Date) -> String {
    guard let entry = entries[name]?[key] else { return "missing" }
    if now >= entry.savedAt + 150 { return "expired \(entry.savedAt)" }
    return "\(now >= entry.savedAt + 100 ? "stale" : "fresh") \(entry.value) \(entry.savedAt)"
  }

  func scan(_ name: String, prefix: String, at now: Date) -> [String] {
    entries[name, default: [:]]
      .filter { now < $0.value.savedAt + 100 && $0.key.utf8.starts(with: prefix.utf8) }
      .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      .map { "\($0.key)=\($0.value.value)" }
  }
}

extension Lookup where Value == Int {
  fileprivate var summary: String {
    switch self {
    case .missing: "missing"
    case .expired(let metadata): "expired \(metadata.savedAt)"
    case .fresh(let entry): "fresh \(entry.value) \(entry.savedAt)"
    case .stale(let entry): "stale \(entry.value) \(entry.savedAt)"
    }
  }
}
