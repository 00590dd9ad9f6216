import Larder
import LarderEngineSupport
import LarderTestSupport
import SimulatedDisk
import Testing

/// A script of calls to a store on a disk that fails.
struct FaultScript {
  private enum Action {
    case put(String, synced: Bool)
    case remove(String, synced: Bool)
    case flush
    case compact
    case reopen
  }

  private let actions: [Action]
  let disk = SimulatedDisk()
  private var engine: LevelDBEngine?
  /// The values that each key may have: the last acknowledged one, then those of failed calls.
  private var allowed: [String: [[UInt8]?]] = [:]
  private var lastMark = 0
  private(set) var failures = 0

  /// Makes a random script.
  ///
  /// Its values fill several write buffers, so that LevelDB writes tables.
  init(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    actions = (0..<45).map { _ in
      let key = "key\(Int.random(in: 0..<12, using: &random))"
      let synced = Int.random(in: 0..<4, using: &random) == 0
      return switch Int.random(in: 0..<40, using: &random) {
      case 0: .compact
      case 1: .reopen
      case 2, 3: .flush
      case 4...7: .remove(key, synced: synced)
      default: .put(key, synced: synced)
      }
    }
  }

  /// Runs the script; `readsMustWork` also requires reads to succeed while writes fail.
  mutating func run(readsMustWork: Bool, _ note: Comment) {
    for action in actions {
      do throws(StoreError) {
        if engine == nil { engine = try WriteFailureTests.open(disk) }
      } catch {
        check(error, note)
        continue
      }
      guard let engine else { continue }
      perform(action, in: engine, note)
      if readsMustWork, let engine = self.engine { expectAllowed(in: engine, note) }
    }
  }

  /// Expects that writes succeed on the healed disk, and that no copy of the store lost data.
  mutating func finish(_ note: Comment) throws {
    let engine = try engine ?? WriteFailureTests.open(disk)
    self.engine = engine
    try recover(engine, note)
    expectAllowed(in: engine, note)
    let killed = try WriteFailureTests.open(WriteFailureTests.killedImage(of: disk))
    expectAllowed(in: killed, note)
    try killed.close()
    try engine.close()
    let again = try WriteFailureTests.open(disk)
    expectAllowed(in: again, note)
    try again.close()
  }

  /// Retries a write, because the first one may report an earlier failure in the background.
  private mutating func recover(_ engine: LevelDBEngine, _ note: Comment) throws {
    for _ in 0..<3 {
      let before = failures
      write("last", remove: false, synced: true, in: engine, note)
      if failures == before { return }
    }
    Issue.record("writes still fail, \(note)")
  }

  private mutating func perform(_ action: Action, in engine: LevelDBEngine, _ note: Comment) {
    switch action {
    case .put(let key, let synced):
      write(key, remove: false, synced: synced, in: engine, note)
    case .remove(let key, let synced):
      write(key, remove: true, synced: synced, in: engine, note)
    case .flush: attempt(note) { () throws(StoreError) in try engine.flush() }
    case .compact:
      attempt(note) { () throws(StoreError) in try engine.compact(EngineRange()) }
    case .reopen:
      attempt(note) { () throws(StoreError) in try engine.close() }
      self.engine = nil
    }
  }

  private mutating func write(
    _ key: String, remove: Bool, synced: Bool, in engine: LevelDBEngine, _ note: Comment
  ) {
    lastMark += 1
    // Random bytes do not compress.
    var random = SplitMix64(seed: UInt64(lastMark))
    let value = remove ? nil : bytes("\(lastMark)|") + random.bytes(6000)
    var batch = WriteBatch()
    if let value { batch.put(bytes(key), value) } else { batch.remove(key) }
    do throws(StoreError) {
      try engine.write(&batch, synced: synced)
      allowed[key] = [value]
    } catch {
      check(error, note)
      // Nothing was written. After any other error the write may or may not have happened.
      if case .writesDisabled = error { return }
      allowed[key, default: [nil]].append(value)
    }
  }

  private mutating func attempt(_ note: Comment, _ body: () throws(StoreError) -> Void) {
    do throws(StoreError) { try body() } catch { check(error, note) }
  }

  private mutating func check(_ error: StoreError, _ note: Comment) {
    failures += 1
    #expect(error.isWriteFailure, "\(error), \(note)")
  }

  private func expectAllowed(in engine: LevelDBEngine, _ note: Comment) {
    do throws(StoreError) {
      for (key, values) in allowed {
        let value = try engine.value(bytes(key))
        if !values.contains(value) {
          let start = value.map { String(decoding: $0.prefix { $0 != 124 }, as: UTF8.self) }
          let last = values[0].map { String(decoding: $0.prefix { $0 != 124 }, as: UTF8.self) }
          Issue.record("\(key): \(start ?? "nil"), acknowledged \(last ?? "nil"), \(note)")
        }
      }
    } catch {
      Issue.record("a read failed: \(error), \(note)")
    }
  }
}
