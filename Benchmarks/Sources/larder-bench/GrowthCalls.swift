import Foundation
import Larder

/// A public call whose time must not depend on the number of things that it does not touch.
struct GrowthCall {
  let name: String
  /// Whether it passes as many keys as the stage has things; the others pass one, or a few.
  private let takesKeys: Bool
  /// Makes the calls, and returns the time of one: by key, if it takes keys.
  let run: (GrowthStage) throws -> Duration

  func applies(to thing: GrowthThing) -> Bool { takesKeys == (thing == .keys) }

  static func all(in growth: Growth) -> [GrowthCall] {
    reads(growth) + writes(growth) + loads(growth) + others(growth) + ofKeys(growth)
  }

  /// `count` calls of `body`, which is passed a number from 0, and returns whether it was right.
  ///
  /// A call that waits for an fsync is measured by its time on the processor.
  private init(
    _ name: String, _ count: Int, waitsForDisk: Bool = false,
    _ body: @escaping (GrowthStage, Int) throws -> Bool
  ) {
    self.name = name
    takesKeys = false
    run = { stage in
      let start = processorTime()
      let time = try timed(expecting: count) {
        var right = 0
        for number in 0..<count where try body(stage, number) { right += 1 }
        return right
      }
      return (waitsForDisk ? processorTime() - start : time) / count
    }
  }

  /// The same for calls that suspend, in one task.
  private init(
    _ name: String, awaiting count: Int,
    _ body: @escaping @Sendable (GrowthStage, Int) async throws -> Bool
  ) {
    self.name = name
    takesKeys = false
    run = { stage in
      try timed(expecting: count) {
        try inTask {
          var right = 0
          for number in 0..<count where try await body(stage, number) { right += 1 }
          return right
        }
      } / count
    }
  }

  /// One call with as many keys as the stage has things; it returns the number of right results.
  private init(
    _ name: String, ofKeys body: @escaping @Sendable (GrowthStage, [Int]) async throws -> Int,
    after prepare: @escaping (GrowthStage, [Int]) throws -> Void
  ) {
    self.name = name
    takesKeys = true
    run = { stage in
      let keys = Array(0..<stage.count)
      try prepare(stage, keys)
      return try timed(expecting: keys.count) {
        try inTask { try await body(stage, keys) }
      } / keys.count
    }
  }

  /// The key of one of the entries of the measured cache.
  private static func key(_ number: Int) -> Int { number % GrowthStage.entries }
}

// MARK: - Reads and writes

extension GrowthCall {
  private static func reads(_ growth: Growth) -> [GrowthCall] {
    [
      GrowthCall("value", 10 * growth.calls) { stage, number in
        try stage.cache.value(for: key(number)) == key(number)
      },
      GrowthCall("value of a missing key", growth.calls) { stage, number in
        try stage.cache.value(for: -1 - number) == nil
      },
      GrowthCall("contains", growth.calls) { stage, number in
        try stage.cache.contains(key(number))
      },
      GrowthCall("values(for:) of 100 keys", max(1, growth.calls / 100)) { stage, _ in
        let keys = Array(0..<GrowthStage.entries)
        return try stage.cache.values(for: keys) == keys
      },
      GrowthCall("count of 10 keys", growth.calls / 10) { stage, _ in
        try stage.cache.count(in: .from(0, upTo: 10)) == 10
      },
      GrowthCall("first of the entries", growth.calls / 10) { stage, _ in
        try stage.cache.entries().next()?.key == 0
      },
    ]
  }

  private static func writes(_ growth: Growth) -> [GrowthCall] {
    [
      GrowthCall("save", growth.calls) { stage, number in
        try stage.cache.save(key(number), for: key(number))
        return true
      },
      GrowthCall("save and remove", growth.calls) { stage, number in
        try stage.cache.save(0, for: -1 - number)
        return try stage.cache.remove(-1 - number)
      },
      GrowthCall("touch", growth.calls) { stage, number in
        try stage.cache.touch(key(number))
      },
      GrowthCall("update", growth.calls) { stage, number in
        try stage.cache.update(key(number)) { $0 = key(number) }
        return true
      },
      GrowthCall("write of 10 saves", growth.calls / 10) { stage, _ in
        try stage.store.write { batch in
          for key in 0..<10 { batch.save(key, for: key, in: stage.cache) }
        }
        return true
      },
      GrowthCall("remove(in:) of an empty range", growth.calls) { stage, _ in
        try stage.cache.remove(in: .from(-20, upTo: -10)) == 0
      },
      GrowthCall("removeAll", max(3, growth.calls / 100), waitsForDisk: true) { stage, _ in
        try stage.cleared.removeAll()
        return true
      },
    ]
  }

  private static func loads(_ growth: Growth) -> [GrowthCall] {
    [
      GrowthCall("value(for:load:), a hit", awaiting: growth.calls) { stage, number in
        try await stage.cache.value(for: key(number)) { -1 } == key(number)
      },
      GrowthCall("value(for:load:), a miss", awaiting: growth.calls) { stage, number in
        try stage.cache.remove(key(number))
        return try await stage.cache.value(for: key(number)) { key(number) } == key(number)
      },
      GrowthCall("values(for:load:) of 100 keys", awaiting: max(1, growth.calls / 100)) {
        stage, _ in
        let keys = Array(0..<GrowthStage.entries)
        for key in keys.prefix(10) { try stage.cache.remove(key) }
        let values = try await stage.cache.values(for: keys) { $0.map { .value($0) } }
        return values == keys
      },
      GrowthCall("refresh", awaiting: growth.calls) { stage, number in
        try await stage.cache.refresh(key(number)) { _ in .value(key(number)) } != nil
      },
    ]
  }

  private static func others(_ growth: Growth) -> [GrowthCall] {
    [
      GrowthCall("changes", growth.calls) { stage, number in
        withExtendedLifetime(stage.cache.changes(for: number)) { true }
      },
      GrowthCall("cache(_:of:) of an open cache", growth.calls) { stage, _ in
        _ = try stage.store.cache("cleared", of: Int.self, keyedBy: Int.self)
        return true
      },
      GrowthCall(
        "cache(_:of:) of a new cache, and drop", max(3, growth.calls / 100), waitsForDisk: true
      ) { stage, _ in
        let cache = try stage.store.cache("new", of: Int.self, keyedBy: Int.self)
        try cache.save(0, for: 0)
        return try stage.store.drop(cache: "new")
      },
      GrowthCall("releaseMemory of none", growth.calls) { stage, _ in
        stage.store.releaseMemory(to: .max)
        return true
      },
      GrowthCall("invalidate", growth.calls) { stage, _ in
        try stage.store.invalidate(tag: "other", durability: .processCrash)
        return true
      },
      // The last one: the sweep forgets the tags.
      GrowthCall("sweep with nothing due", growth.calls) { stage, number in
        try stage.store.sweep() == 0
      },
    ]
  }
}

// MARK: - Calls with many keys

extension GrowthCall {
  private static func ofKeys(_ growth: Growth) -> [GrowthCall] {
    @Sendable func save(_ stage: GrowthStage, _ keys: [Int]) throws {
      try stage.store.write { batch in
        for key in keys { batch.save(key, for: key, in: stage.cache) }
      }
    }
    @Sendable func remove(_ stage: GrowthStage, _ keys: [Int]) throws {
      try stage.store.write { batch in
        for key in keys { batch.remove(key, from: stage.cache) }
      }
    }
    @Sendable func right(_ values: [Int?], _ keys: [Int]) -> Int {
      zip(values, keys).count { $0 == $1 }
    }
    return [
      GrowthCall(
        "values(for:)", ofKeys: { stage, keys in right(try stage.cache.values(for: keys), keys) },
        after: save),
      GrowthCall(
        "values(for:load:), hits",
        ofKeys: { stage, keys in
          right(try await stage.cache.values(for: keys) { $0.map { .value($0) } }, keys)
        }, after: save),
      GrowthCall(
        "values(for:load:), misses",
        ofKeys: { stage, keys in
          right(try await stage.cache.values(for: keys) { $0.map { .value($0) } }, keys)
        }, after: remove),
      GrowthCall(
        "prefetch",
        ofKeys: { stage, keys in
          let failed = await stage.cache.prefetch(keys) { key, _ in .value(key) }
          return keys.count - failed.count
        }, after: remove),
      GrowthCall(
        "write of saves",
        ofKeys: { stage, keys in
          try save(stage, keys)
          return keys.count
        }, after: { _, _ in }),
      GrowthCall(
        "write of removals",
        ofKeys: { stage, keys in
          try remove(stage, keys)
          return keys.count
        }, after: save),
      GrowthCall(
        "remove(in:)",
        ofKeys: { stage, keys in try stage.cache.remove(in: .from(0, upTo: keys.count)) },
        after: save),
      GrowthCall(
        "count", ofKeys: { stage, keys in try stage.cache.count(in: .from(0, upTo: keys.count)) },
        after: save),
    ]
  }
}

/// The time that the process has spent on processors.
private func processorTime() -> Duration {
  var usage = rusage()
  #if os(Linux)
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  #else
    getrusage(RUSAGE_SELF, &usage)
  #endif
  let (user, system) = (usage.ru_utime, usage.ru_stime)
  return .seconds(Int(user.tv_sec + system.tv_sec))
    + .microseconds(Int(user.tv_usec + system.tv_usec))
}
