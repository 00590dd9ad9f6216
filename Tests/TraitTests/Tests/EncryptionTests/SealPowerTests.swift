import Crypto
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A store gets a key, and then another one, and everything is sealed again, while the disk fails.
@Suite(.timeLimit(.minutes(30))) struct SealPowerTests {
  /// The keys with which the script opens the store, in turn; the first time it has none.
  private static let keys: [Encryption?] = [
    nil, .key(id: "1", key(1)), .key(id: "2", key(2), replacing: ["1": key(1)]),
  ]
  private static let savesPerKey = 8

  @Test("A power loss at any file call leaves every entry readable with one of the keys.")
  func powerLoss() throws {
    let disk = SimulatedDisk()
    disk.holdBackground()
    defer { disk.releaseBackground() }
    var timeline = Timeline(0)
    try run(on: disk) { count, started, isDurable in
      timeline.add(
        count, started: started, acknowledged: disk.journalCount, isDurable: isDurable)
    }
    var search = PowerLossSearch(of: disk, timeline, script: "new keys") { image in
      let (store, hasSetAside) = try Self.open(image)
      let count = try Self.count(in: store)
      if image.hash.isMultiple(of: isProof ? 2 : 8), store.context.seal != nil {
        // What was interrupted is done.
        guard try store.reseal().isComplete, try Self.count(in: store) == count else {
          throw Wrong(what: "sealing again")
        }
      }
      try store.close()
      return PowerLossSearch.Opened(state: count, hasSetAside: hasSetAside)
    }
    search.run()
    let counts = search.counts
    #expect(counts.violations.isEmpty, "\(counts.violations.joined(separator: "\n"))")
    #expect(counts.states > 500 && counts.images > 100)
    print("power loss of a sealed store: \(counts)")
  }

  @Test(
    "Whichever file call fails, no acknowledged value is lost.",
    arguments: [SimulatedDisk.Fault.enospc, .eio, .failedSync])
  func failure(fault: SimulatedDisk.Fault) throws {
    let whole = SimulatedDisk()
    try run(on: whole)
    let calls = whole.counts.mutating
    #expect(calls > 50)
    // A sync fails by its own number.
    for number in stride(from: 1, through: calls, by: isProof ? 1 : 5) {
      for forever in [false, true] {
        let disk = SimulatedDisk()
        var saved = 0
        disk.fail(atCall: number, fault, forever: forever)
        do {
          try run(on: disk) { count, _, _ in saved = count }
        } catch is StoreError {}
        disk.heal()
        let message: Comment = "\(fault) of call \(number), \(forever)"
        do {
          let (store, _) = try Self.open(disk)
          let count = try Self.count(in: store)
          #expect(count >= saved, message)
          if let seal = store.context.seal {
            #expect(try store.reseal().isComplete, message)
            #expect(seal.isAllSealed, message)
            #expect(try Self.count(in: store) == count, message)
          }
          try store.close()
        } catch {
          Issue.record(error, message)
        }
      }
    }
  }

  // MARK: - The script

  struct Wrong: Error { let what: String }

  /// Saves values with each of the keys, and seals everything again.
  ///
  /// `note` gets the number of values that are saved, the length of the journal before, and whether
  /// all of them survive a power loss.
  private func run(
    on disk: SimulatedDisk, _ note: (Int, Int, Bool) -> Void = { _, _, _ in }
  ) throws {
    var count = 0
    for encryption in Self.keys {
      let store = try Store(
        engine: Self.engine(on: disk), options: Self.options(encryption), origin: .disk)
      let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
      for _ in 0..<Self.savesPerKey {
        let started = disk.journalCount
        // Each key of the cache has a second value later.
        try cache.save(
          Self.text(count), for: count % 14, validator: Validator("\(count) \(marker)"))
        count += 1
        note(count, started, false)
      }
      guard encryption != nil else {
        try store.close()
        continue
      }
      let started = disk.journalCount
      guard try store.reseal().isComplete else { throw Wrong(what: "the script") }
      note(count, started, true)
      disk.runBackground()
      try store.close()
    }
  }

  /// Every third value is in a segment.
  private static func text(_ number: Int) -> String {
    "\(number) " + String(repeating: marker, count: number % 3 == 0 ? 300 : 2)
  }

  private static func options(_ encryption: Encryption?) -> Store.Options {
    var options = Store.Options()
    options.sweepInterval = nil
    options.clock = ManualClock()
    options.encryption = encryption
    return options
  }

  private static func engine(on disk: SimulatedDisk) throws -> LevelDBEngine {
    var options = options(nil).engineOptions
    options.files = SimulatedFiles(disk)
    (options.syncsInBackground, options.collectsInBackground) = (false, false)
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// Opens a store with that of the keys that opens it.
  private static func open(_ disk: SimulatedDisk) throws -> (Store, hasSetAside: Bool) {
    // As a user would: first with the newest key, which takes the place of the one before.
    for encryption in [.key(id: "2", key(2)), .key(id: "1", key(1)), nil] as [Encryption?] {
      let engine = try engine(on: disk)
      do {
        // A key would seal a store that has none.
        if encryption != nil, try DataKeys(of: engine).keys.isEmpty {
          try engine.close()
          continue
        }
        let store = try Store(engine: engine, options: options(encryption), origin: .disk)
        return (store, engine.recovery != nil)
      } catch StoreError.wrongKey {
        try engine.close()
      }
    }
    throw Wrong(what: "no key opens the store")
  }

  /// How many values were saved, which are the newest of all that are found.
  private static func count(in store: Store) throws -> Int {
    let cache = try store.cache("c", of: String.self, keyedBy: Int.self, memory: .none)
    var newest = -1
    var found: [Int: Int] = [:]
    let all = try cache.entries()
    while let item = try all.next() {
      let entry = try item.entry.get()
      guard let number = Int(entry.value.prefix { $0 != " " }), entry.value == text(number),
        entry.validator == Validator("\(number) \(marker)")
      else { throw Wrong(what: "the value \(entry.value.prefix(20))") }
      found[item.key] = number
      newest = max(newest, number)
    }
    for number in stride(from: newest, through: max(newest - 13, 0), by: -1) where newest >= 0 {
      guard found[number % 14] == number else { throw Wrong(what: "value \(number) is missing") }
    }
    return newest + 1
  }
}
