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
    // The version of an entry that was read at some time, as the store and as the model have it.
    var seen: [String: (version: Version, number: Int)] = [:]

    for step in 0..<(10_000 * proofFactor) {
      let name = Model.names.randomElement(using: &random) ?? ""
      let key = Model.keys.randomElement(using: &random) ?? ""
      let cache = try #require(caches[name])
      let now = fixture.clock.now()
      let place: Comment = "seed \(seed), step \(step)"
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<18:
        let validator: Validator? = step % 3 == 0 ? Validator("v\(step)") : nil
        try cache.save(step, for: key, validator: validator)
        model.save(step, for: key, in: name, validator?.text, at: now)
      case 18..<31:
        let version = seen[name + "/" + key]
        try changeIf(cache, &model, key, version, step, at: now, place)
      case 31..<37: try update(cache, &model, key, step, at: now, place)
      case 37..<65:
        let found = try cache.lookup(for: key)
        #expect(found.summary == model.lookup(key, in: name, at: now), place)
        #expect(try cache.contains(key) == (found.kind == "fresh"), place)
        if let version = found.version, let number = model.number(of: key, in: name) {
          seen[name + "/" + key] = (version, number)
        }
      case 65..<73:
        #expect(try cache.remove(key) == model.remove(key, from: name), place)
      case 73..<78:
        let validator: Validator? = step % 2 == 0 ? Validator("t\(step)") : nil
        #expect(
          try cache.touch(key, validator: validator)
            == model.touch(key, in: name, validator?.text, at: now), place)
      case 78..<82:
        try fixture.store.write { batch in
          for (offset, key) in Model.keys.enumerated() where offset % 3 == step % 3 {
            batch.save(step + offset, for: key, in: cache)
            model.save(step + offset, for: key, in: name, at: now)
          }
          batch.remove(key, from: cache)
          _ = model.remove(key, from: name)
        }
      case 82:
        #expect(
          try cache.remove(in: .prefix(key)) == model.remove(prefix: key, from: name), place)
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

  /// Saves or removes an entry under a condition.
  private func changeIf(
    _ cache: Cache<String, Int>, _ model: inout Model, _ key: String,
    _ seen: (version: Version, number: Int)?, _ step: Int, at now: Date, _ place: Comment
  ) throws {
    let isAbsent = model.isAbsent(key, in: cache.name, at: now)
    let condition: Condition
    let holds: Bool
    switch (step % 3, seen) {
    case (0, _): (condition, holds) = (.absent, isAbsent)
    case (1, let seen?):
      condition = .unchanged(since: seen.version)
      holds = model.number(of: key, in: cache.name) == seen.number
    default: (condition, holds) = (.present, !isAbsent)
    }
    guard step % 4 == 0 else {
      #expect(try cache.save(step, for: key, if: condition) == holds, place)
      if holds { model.save(step, for: key, in: cache.name, at: now) }
      return
    }
    let isThere = model.number(of: key, in: cache.name) != nil
    #expect(try cache.remove(key, if: condition) == (holds && isThere), place)
    if holds { _ = model.remove(key, from: cache.name) }
  }

  private func update(
    _ cache: Cache<String, Int>, _ model: inout Model, _ key: String, _ step: Int, at now: Date,
    _ place: Comment
  ) throws {
    let fresh = model.freshValue(of: key, in: cache.name, at: now)
    let new = step % 5 == 0 ? nil : (fresh ?? 0) + step
    let passed = try cache.update(key) { value in
      defer { value = new }
      return value
    }
    #expect(passed == fresh, place)
    if let new {
      model.save(new, for: key, in: cache.name, at: now)
    } else if fresh != nil {
      _ = model.remove(key, from: cache.name)
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
    let expected = model.scan(name, prefix: prefix, at: now)
    #expect(found == expected, place)
    #expect(try cache.count(in: .prefix(prefix)) == expected.count, place)
    let values = Model.keys.map { model.freshValue(of: $0, in: name, at: now) }
    #expect(try cache.values(for: Model.keys) == values, place)
    #expect(
      try cache.lookups(for: Model.keys).map { try $0.get().summary }
        == Model.keys.map { model.lookup($0, in: name, at: now) }, place)
  }
}

/// The expected behavior of a store, in the simplest form.
private struct Model {
  static let names = ["one", "two", "another"]
  static let keys = ["", "a", "ab", "abc", "b", "\u{E9}", "\u{0}", "zzz", "k1", "k2", "k10"]

  let lifetime: Lifetime
  private struct Entry {
    let value: Int
    var savedAt: Date
    /// The number of the save.
    let number: Int
    var validator: String?
  }

  private var entries: [String: [String: Entry]] = [:]
  private var saves = 0

  init(lifetime: Lifetime) { self.lifetime = lifetime }

  mutating func save(
    _ value: Int, for key: String, in name: String, _ validator: String? = nil, at now: Date
  ) {
    saves += 1
    entries[name, default: [:]][key] = Entry(
      value: value, savedAt: now, number: saves, validator: validator)
  }

  func number(of key: String, in name: String) -> Int? { entries[name]?[key]?.number }

  func isAbsent(_ key: String, in name: String, at now: Date) -> Bool {
    entries[name]?[key].map { now >= $0.savedAt + 150 } ?? true
  }

  func freshValue(of key: String, in name: String, at now: Date) -> Int? {
    guard let entry = entries[name]?[key], now < entry.savedAt + 100 else { return nil }
    return entry.value
  }

  mutating func remove(_ key: String, from name: String) -> Bool {
    entries[name]?.removeValue(forKey: key) != nil
  }

  mutating func remove(prefix: String, from name: String) -> Int {
    let keys = entries[name, default: [:]].keys.filter { $0.utf8.starts(with: prefix.utf8) }
    for key in keys { entries[name]?[key] = nil }
    return keys.count
  }

  mutating func removeAll(from name: String) { entries[name] = [:] }

  mutating func touch(
    _ key: String, in name: String, _ validator: String?, at now: Date
  ) -> Bool {
    guard entries[name]?[key] != nil else { return false }
    entries[name]?[key]?.savedAt = now
    if let validator { entries[name]?[key]?.validator = validator }
    return true
  }

  mutating func validate(_ name: String, at now: Date) -> Int {
    let expired = entries[name, default: [:]].filter { now >= $0.value.savedAt + 150 }
    for key in expired.keys { entries[name]?[key] = nil }
    return expired.count
  }

  func lookup(_ key: String, in name: String, at now: Date) -> String {
    guard let entry = entries[name]?[key] else { return "missing" }
    let rest = "\(entry.savedAt) \(entry.validator ?? "-")"
    if now >= entry.savedAt + 150 { return "expired \(rest)" }
    return "\(now >= entry.savedAt + 100 ? "stale" : "fresh") \(entry.value) \(rest)"
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
    case .expired(let metadata):
      "expired \(metadata.savedAt) \(metadata.validator?.text ?? "-")"
    case .fresh(let entry):
      "fresh \(entry.value) \(entry.savedAt) \(entry.validator?.text ?? "-")"
    case .stale(let entry):
      "stale \(entry.value) \(entry.savedAt) \(entry.validator?.text ?? "-")"
    }
  }

  fileprivate var version: Version? {
    switch self {
    case .missing: nil
    case .expired(let metadata): metadata.version
    case .fresh(let entry), .stale(let entry): entry.version
    }
  }
}
