import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// No call returns anything older than a change that had completed before the call began.
@Suite(.timeLimit(.minutes(30))) struct LoadStressTests {
  @Test("No call returns what a completed change has ended.", arguments: StoreKind.allCases)
  func stress(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let (world, seed) = (try StressWorld(fixture), testSeed())
    try await withThrowingTaskGroup { group in
      for task in 0..<8 {
        group.addTask {
          var random = SplitMix64(seed: seed &+ UInt64(task))
          for _ in 0..<400 * proofFactor { try await world.step(&random) }
        }
      }
      try await group.waitForAll()
    }
    let (calls, changes, faults) = world.results
    #expect(faults.prefix(5) == [], "seed \(seed): \(faults.count) of \(calls) calls")
    #expect(changes.count == StressWorld.Change.allCases.count, "seed \(seed): \(changes)")
    if isProof { print("\(kind.testDescription): \(calls) calls, changes: \(changes)") }
  }
}

/// Two caches whose keys have a version at their source; each change of a key comes with a new one.
private final class StressWorld: Sendable {
  /// A value that takes time to decode, so that changes come between.
  struct Document: Codable, Sendable {
    var version: Int
    var padding = Array(repeating: UInt8(7), count: 300)
  }

  enum Change: CaseIterable {
    case save, saveIfAbsent, remove, clear, range, tag, tagOfAll, drop, batch
  }

  struct Failure: Error {}

  private struct Versions: Sendable {
    /// The version that a load gets.
    var source = Array(repeating: 0, count: keyCount)
    /// The version of the last change that has completed.
    var completed = Array(repeating: 0, count: keyCount)
  }

  private struct Results: Sendable {
    var calls = 0
    var changes: [Change: Int] = [:]
    var faults: [String] = []
  }

  private static let keyCount = 4
  private static let names = ["a", "b"]

  private let store: Store
  private let clock: ManualClock
  /// The changes of a cache come one after another.
  private let turns = [NSLock(), NSLock()]
  private let versions = Mutex([Versions(), Versions()])
  private let caches: Mutex<[Cache<Int, Document>]>
  private let counted = Mutex(Results())

  init(_ fixture: LoadFixture) throws {
    (store, clock) = (fixture.store, fixture.clock)
    caches = Mutex(try Self.names.map { [store] in try Self.open($0, in: store) })
  }

  var results: (calls: Int, changes: [Change: Int], faults: [String]) {
    counted.withLock { ($0.calls, $0.changes, $0.faults) }
  }

  private static func open(_ name: String, in store: Store) throws -> Cache<Int, Document> {
    var loading = Loading()
    loading.refreshAhead = 0.4
    loading.staleIfError = .seconds(500)
    loading.absentFor = .seconds(20)
    return try store.cache(
      name, of: Document.self, keyedBy: Int.self, lifetime: LoadFixture.lifetime, loading: loading)
  }

  private func tags(_ part: Int, _ key: Int) -> [String] {
    ["\(part)-\(key)", Self.names[part]]
  }

  /// Makes a call, or sometimes a change.
  func step(_ random: inout SplitMix64) async throws {
    let (part, key) = (random.below(2), random.below(Self.keyCount))
    guard random.below(6) == 0 else { return try await call(part, key, &random) }
    let (kind, bits) = (Change.allCases.randomElement(using: &random) ?? .save, random.next())
    // A drop and a clear sync.
    if kind == .drop || kind == .clear, random.below(4) > 0 { return }
    if random.below(8) == 0 { clock.advance(by: .seconds(Double(random.below(60)))) }
    try await store.run { [self] in try change(kind, part, key, bits) }
    counted.withLock { $0.changes[kind, default: 0] += 1 }
  }
}

// MARK: - Changes

extension StressWorld {
  private func change(_ kind: Change, _ index: Int, _ key: Int, _ bits: UInt64) throws {
    let other = (key + 1 + Int(bits % 3)) % Self.keyCount
    let keys: [Int] =
      switch kind {
      case .save, .saveIfAbsent, .remove, .tag: [key]
      case .batch: [key, other]
      case .range: Array(min(key, other)...max(key, other))
      case .clear, .tagOfAll, .drop: Array(0..<Self.keyCount)
      }
    try turns[index].withLock {
      let version = versions.withLock { versions in
        let version = (versions[index].source.max() ?? 0) + 1
        for key in keys { versions[index].source[key] = version }
        return version
      }
      guard try apply(kind, index, keys, Document(version: version)) else { return }
      versions.withLock { for key in keys { $0[index].completed[key] = version } }
    }
  }

  /// Makes a change; false if nothing was changed.
  private func apply(
    _ kind: Change, _ index: Int, _ keys: [Int], _ document: Document
  ) throws -> Bool {
    let (key, cache, tags) = (keys[0], caches.withLock { $0[index] }, tags(index, keys[0]))
    switch kind {
    case .save: try cache.save(document, for: key, tags: tags)
    case .saveIfAbsent: return try cache.save(document, for: key, if: .absent, tags: tags)
    case .remove: try cache.remove(key)
    case .clear: try cache.removeAll()
    case .range: try cache.remove(in: .from(key, upTo: keys[keys.count - 1] + 1))
    case .tag: try store.invalidate(tag: tags[0], durability: .processCrash)
    case .tagOfAll: try store.invalidate(tag: tags[1], durability: .processCrash)
    case .drop:
      try store.drop(cache: Self.names[index])
      let opened = try Self.open(Self.names[index], in: store)
      caches.withLock { $0[index] = opened }
    case .batch:
      try store.write { batch in
        batch.save(document, for: key, in: cache, tags: tags)
        batch.remove(keys[1], from: cache)
      }
    }
    return true
  }
}

// MARK: - Calls

extension StressWorld {
  private func call(_ part: Int, _ key: Int, _ random: inout SplitMix64) async throws {
    let kind = random.below(8)
    let keys = kind == 6 ? [key, (key + 1) % Self.keyCount] : [key]
    let completed = versions.withLock { versions in keys.map { versions[part].completed[$0] } }
    let cache = caches.withLock { $0[part] }
    let found: [Document?]
    do {
      found = try await read(keys, of: cache, part, kind, random.next())
    } catch is Failure {
      found = []
    } catch StoreError.invalidArgument {
      // The cache was dropped.
      found = []
    }
    counted.withLock { results in
      results.calls += 1
      for (index, document) in found.enumerated() {
        guard let version = document?.version, version < completed[index] else { continue }
        results.faults.append(
          "call \(kind) of key \(keys[index]): version \(version) after \(completed[index])")
      }
    }
  }

  private func read(
    _ keys: [Int], of cache: Cache<Int, Document>, _ part: Int, _ kind: Int, _ bits: UInt64
  ) async throws -> [Document?] {
    let load: Cache<Int, Document>.Load = { [self] in
      try await reply(to: $0, part, keys[0], bits)
    }
    switch kind {
    case 0: return [try cache.value(for: keys[0])]
    case 1: return try await store.run { [try cache.value(for: keys[0])] }
    case 2:
      guard case .fresh(let entry) = try cache.lookup(for: keys[0]) else { return [] }
      return [entry.value]
    case 3:
      var loading = cache.core.loading
      loading.staleWhileRevalidate = true
      return [try await cache.entry(for: keys[0], loading: loading, load: load)?.value]
    case 4: return [try await cache.refresh(keys[0], load: load)?.value]
    case 5:
      var loading = cache.core.loading
      loading.maxAge = .seconds(0)
      return [try await cache.value(for: keys[0], loading: loading, load: load)]
    case 6:
      return try await cache.values(for: keys) { missing in
        var replies: [LoadReply<Document>] = []
        for key in missing { replies.append(try await self.reply(to: nil, part, key, bits)) }
        return replies
      }
    default: return [try await cache.value(for: keys[0], load: load)]
    }
  }

  /// The reply of the source, some time after the version was read there.
  private func reply(
    to previous: Previous<Document>?, _ part: Int, _ key: Int, _ bits: UInt64
  ) async throws -> LoadReply<Document> {
    let document = Document(version: versions.withLock { $0[part].source[key] })
    for _ in 0..<bits % 8 { await Task.yield() }
    switch bits >> 8 & 15 {
    case 0: throw Failure()
    case 1: return .unsaved(document)
    case 2: return .absent
    default:
      if previous?.value?.version == document.version { return .unchanged }
      return .value(document, tags: tags(part, key))
    }
  }
}
