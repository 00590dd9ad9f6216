import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Random operations on a store and on a plain dictionary give the same results at every step.
///
/// Each seed runs 5,000 operations; `make proof` runs 200,000. A failure names its seed. To run it
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

    for step in 0..<(isProof ? 200_000 : 5_000) {
      let name = Model.names.randomElement(using: &random) ?? ""
      let key = Model.keys.randomElement(using: &random) ?? ""
      let cache = try #require(caches[name])
      let now = fixture.clock.now()
      let place: Comment = "seed \(seed), step \(step)"
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<18:
        let fields = Model.Fields(step, &random)
        try cache.save(
          step, for: key, lifetime: fields.lifetime, validator: fields.httpValidator,
          tags: fields.tags)
        model.save(step, for: key, in: name, fields, at: now)
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
        let fields = Model.Fields(step, &random)
        let isTouched = try cache.touch(
          key, lifetime: fields.lifetime, validator: fields.httpValidator)
        #expect(isTouched == model.touch(key, in: name, fields, at: now), place)
      case 78..<82:
        try write(to: cache, in: fixture.store, &model, key, step, at: now, &random)
      case 82:
        #expect(
          try cache.remove(in: .prefix(key)) == model.remove(prefix: key, from: name), place)
      case 83..<85:
        if step % 4 == 0 { try drop(cache, fixture, &caches, place) } else { try cache.removeAll() }
        model.removeAll(from: name)
      case 85..<87:
        #expect(try cache.validate().expired == model.validate(name, at: now), place)
      case 87: try sweep(fixture, caches, &model, at: now, place)
      case 88..<90:
        let tag = Model.tags.randomElement(using: &random) ?? ""
        try fixture.store.invalidate(tag: tag, durability: .processCrash)
        model.invalidate(tag)
      case 90..<94: fixture.clock.advance(by: .seconds(Double.random(in: 0...60, using: &random)))
      case 94: fixture.clock.set(now - 20)
      case 95..<99: try expectSameScan(cache, model, name, key, step, now, place)
      case 99:
        try fixture.suspend()
      default:
        try fixture.reopen()
        caches = try open(fixture, model)
      }
    }
    for (name, cache) in caches {
      let now = fixture.clock.now()
      try expectSameScan(cache, model, name, "", 0, now, "seed \(seed), the end")
    }
  }

  /// Saves a third of the keys in one batch, and removes one.
  private func write(
    to cache: Cache<String, Int>, in store: Store, _ model: inout Model, _ key: String,
    _ step: Int, at now: Date, _ random: inout SplitMix64
  ) throws {
    try store.write { batch in
      for (offset, key) in Model.keys.enumerated() where offset % 3 == step % 3 {
        let fields = Model.Fields(step + offset, &random)
        batch.save(
          step + offset, for: key, in: cache, lifetime: fields.lifetime,
          validator: fields.httpValidator, tags: fields.tags)
        model.save(step + offset, for: key, in: cache.name, fields, at: now)
      }
      batch.remove(key, from: cache)
      _ = model.remove(key, from: cache.name)
    }
  }

  /// Sweeps, which forgets the invalidated tags, and deletes what a sweep leaves for later.
  private func sweep(
    _ fixture: Fixture, _ caches: [String: Cache<String, Int>], _ model: inout Model, at now: Date,
    _ place: Comment
  ) throws {
    try fixture.store.sweep()
    #expect(
      try fixture.rows(in: .metadata).contains { $0.key.starts(with: Metadata.tagPrefix) }
        == false, place)
    for (name, cache) in caches {
      let expired = try cache.validate().expired
      #expect(expired <= model.validate(name, at: now), place)
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
      holds = model.isUnchanged(key, in: cache.name, since: seen.number)
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
      let kept = fresh == nil ? Model.Fields() : model.keptFields(of: key, in: cache.name)
      model.save(new, for: key, in: cache.name, kept, at: now)
    } else if fresh != nil {
      _ = model.remove(key, from: cache.name)
    }
  }

  /// Drops a cache, and opens it again.
  private func drop(
    _ cache: Cache<String, Int>, _ fixture: Fixture,
    _ caches: inout [String: Cache<String, Int>], _ place: Comment
  ) throws {
    #expect(try fixture.store.drop(cache: cache.name), place)
    #expect(try fixture.store.drop(cache: cache.name) == false, place)
    #expect(throwsInvalidArgument { try cache.value(for: "") }, place)
    caches[cache.name] = try fixture.store.cache(
      cache.name, of: Int.self, lifetime: .fresh(for: .seconds(100), thenStaleFor: .seconds(50)))
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
    _ cache: Cache<String, Int>, _ model: Model, _ name: String, _ prefix: String, _ step: Int,
    _ now: Date, _ place: Comment
  ) throws {
    let order: ScanOrder = step % 2 == 0 ? .ascending : .descending
    var found: [String] = []
    let cursor = try cache.entries(in: .prefix(prefix), order: order)
    while let item = try cursor.next() { found.append("\(item.key)=\(try item.entry.get().value)") }
    let expected = model.scan(name, prefix: prefix, at: now)
    #expect(found == (order == .ascending ? expected : expected.reversed()), place)
    let states = EntryStates(rawValue: UInt8(step / 2 % 8))
    var lookups: [String] = []
    let lookupCursor = try cache.lookups(in: .prefix(prefix), states: states, order: order)
    while let item = try lookupCursor.next() {
      lookups.append("\(item.key)=\(try item.found.get().summary)")
    }
    let inStates = model.lookups(name, prefix: prefix, states, at: now)
    #expect(lookups == (order == .ascending ? inStates : inStates.reversed()), place)
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
  static let tags = ["red", "green", "user:42"]

  /// The optional arguments of a save.
  struct Fields {
    var lifetime: Lifetime?
    var validator: String?
    var tags: [String] = []

    var httpValidator: Validator? { validator.map { Validator($0) } }

    init() {}

    /// Each field for some of the saves.
    init(_ step: Int, _ random: inout SplitMix64) {
      let short = Lifetime.fresh(for: .seconds(5), thenStaleFor: .hours(1))
      lifetime =
        [nil, nil, .unlimited, .seconds(20), short].randomElement(using: &random) ?? nil
      validator = step % 3 == 0 ? "v\(step)" : nil
      tags = Model.tags.filter { _ in Bool.random(using: &random) && step % 2 == 0 }
    }
  }

  private struct Entry {
    let value: Int
    var savedAt: Date
    /// The number of the save.
    let number: Int
    var fields: Fields
    var isInvalidated = false
  }

  let lifetime: Lifetime
  private var entries: [String: [String: Entry]] = [:]
  private var saves = 0

  init(lifetime: Lifetime) { self.lifetime = lifetime }

  mutating func save(
    _ value: Int, for key: String, in name: String, _ fields: Fields = Fields(), at now: Date
  ) {
    saves += 1
    entries[name, default: [:]][key] = Entry(
      value: value, savedAt: now, number: saves, fields: fields)
  }

  func number(of key: String, in name: String) -> Int? { entries[name]?[key]?.number }

  func keptFields(of key: String, in name: String) -> Fields {
    var fields = entries[name]?[key]?.fields ?? Fields()
    fields.validator = nil
    return fields
  }

  func isUnchanged(_ key: String, in name: String, since number: Int) -> Bool {
    guard let entry = entries[name]?[key] else { return false }
    return entry.number == number && !entry.isInvalidated
  }

  func isAbsent(_ key: String, in name: String, at now: Date) -> Bool {
    entries[name]?[key].map { state(of: $0, at: now) == "expired" } ?? true
  }

  func freshValue(of key: String, in name: String, at now: Date) -> Int? {
    guard let entry = entries[name]?[key], state(of: entry, at: now) == "fresh" else { return nil }
    return entry.value
  }

  private func state(of entry: Entry, at now: Date) -> String {
    if entry.isInvalidated { return "expired" }
    let (fresh, stale): (Double, Double) =
      switch entry.fields.lifetime {
      case nil: (100, 50)
      case .unlimited?: (.infinity, 0)
      case .seconds(20)?: (20, 0)
      default: (5, 3600)
      }
    if now >= entry.savedAt + fresh + stale { return "expired" }
    return now >= entry.savedAt + fresh ? "stale" : "fresh"
  }

  mutating func invalidate(_ tag: String) {
    for (name, all) in entries {
      for (key, entry) in all where entry.fields.tags.contains(tag) {
        entries[name]?[key]?.isInvalidated = true
      }
    }
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

  mutating func touch(_ key: String, in name: String, _ fields: Fields, at now: Date) -> Bool {
    guard let entry = entries[name]?[key], !entry.isInvalidated else { return false }
    entries[name]?[key]?.savedAt = now
    if let validator = fields.validator { entries[name]?[key]?.fields.validator = validator }
    if let lifetime = fields.lifetime { entries[name]?[key]?.fields.lifetime = lifetime }
    return true
  }

  mutating func validate(_ name: String, at now: Date) -> Int {
    let expired = entries[name, default: [:]].filter { state(of: $0.value, at: now) == "expired" }
    for key in expired.keys { entries[name]?[key] = nil }
    return expired.count
  }

  func lookup(_ key: String, in name: String, at now: Date) -> String {
    guard let entry = entries[name]?[key] else { return "missing" }
    let state = state(of: entry, at: now)
    guard !entry.isInvalidated else { return "expired \(entry.savedAt) - true" }
    let rest = "\(entry.savedAt) \(entry.fields.validator ?? "-")"
    if state == "expired" { return "\(state) \(rest) false" }
    let lifetime = entry.fields.lifetime.map { "\($0)" } ?? "-"
    return "\(state) \(entry.value) \(rest) \(entry.fields.tags) \(lifetime)"
  }

  func scan(_ name: String, prefix: String, at now: Date) -> [String] {
    entries[name, default: [:]]
      .filter { state(of: $0.value, at: now) == "fresh" && $0.key.utf8.starts(with: prefix.utf8) }
      .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      .map { "\($0.key)=\($0.value.value)" }
  }

  func lookups(_ name: String, prefix: String, _ states: EntryStates, at now: Date) -> [String] {
    entries[name, default: [:]].keys.filter { $0.utf8.starts(with: prefix.utf8) }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      .map { (key: $0, found: lookup($0, in: name, at: now)) }
      .filter { item in
        states.contains(.fresh) && item.found.hasPrefix("fresh")
          || states.contains(.stale) && item.found.hasPrefix("stale")
          || states.contains(.expired) && item.found.hasPrefix("expired")
      }
      .map { "\($0.key)=\($0.found)" }
  }
}

extension Lookup where Value == Int {
  fileprivate var summary: String {
    switch self {
    case .missing: "missing"
    case .expired(let metadata):
      "expired \(metadata.savedAt) \(metadata.validator?.text ?? "-") \(metadata.isInvalidated)"
    case .fresh(let entry): "fresh \(Self.summary(of: entry))"
    case .stale(let entry): "stale \(Self.summary(of: entry))"
    }
  }

  private static func summary(of entry: Entry<Int>) -> String {
    let lifetime = entry.lifetime.map { "\($0)" } ?? "-"
    let validator = entry.validator?.text ?? "-"
    return "\(entry.value) \(entry.savedAt) \(validator) \(entry.tags) \(lifetime)"
  }

  fileprivate var version: Version? {
    switch self {
    case .missing: nil
    case .expired(let metadata): metadata.version
    case .fresh(let entry), .stale(let entry): entry.version
    }
  }
}
