import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// The kinds of store, for suites that hold for each.
enum StoreKind: CaseIterable, CustomTestStringConvertible {
  case disk, memory
  /// On disk, with each payload in a segment.
  case segments

  var isOnDisk: Bool { self != .memory }

  var testDescription: String {
    switch self {
    case .disk: "on disk"
    case .memory: "in memory"
    case .segments: "on disk, payloads in segments"
    }
  }
}

/// A store under test, with its engine, so that a test can read and change the bytes.
final class Fixture {
  let kind: StoreKind
  let clock: ManualClock
  let directory: URL
  /// Triggers background sweeps; nil for a store without them.
  let timer: HandTimer?
  private(set) var engine: any StorageEngine
  private(set) var store: Store
  /// The store's budget from the next opening on.
  var byteBudget: Int?
  /// Sets further options at each opening.
  private let configure: (inout Store.Options) -> Void
  /// The number of entries after which a cursor continues in a newer state.
  private let cursorSliceEntries: Int
  /// Breaks reference cycles at the end, such as that of an engine that calls back into its test.
  var atEnd: (() -> Void)?

  init(
    _ kind: StoreKind, clock: ManualClock = ManualClock(), timer: HandTimer? = nil,
    byteBudget: Int? = nil, cursorSliceEntries: Int = 100_000,
    configure: @escaping (inout Store.Options) -> Void = { _ in }
  ) throws {
    self.configure = configure
    self.kind = kind
    self.clock = clock
    self.timer = timer
    self.byteBudget = byteBudget
    self.cursorSliceEntries = cursorSliceEntries
    directory = TemporaryDirectory.place
      .appending(path: "larder-tests-\(UUID().uuidString)")
    engine = try Self.openEngine(kind, at: directory, cursorSliceEntries)
    store = try Self.openStore(engine, kind, clock, timer, byteBudget, configure)
  }

  /// Closes the store and removes its directory.
  ///
  /// Every test ends its fixture.
  func end() {
    atEnd?()
    do {
      try store.close()
      if kind.isOnDisk { try FileManager.default.removeItem(at: directory) }
    } catch {
      Issue.record(error, "cleaning up")
    }
  }

  /// Reopens the store, as the next launch of a program would.
  func reopen() throws {
    if kind.isOnDisk {
      try store.close()
      engine = try Self.openEngine(kind, at: directory, cursorSliceEntries)
    }
    store = try Self.openStore(engine, kind, clock, timer, byteBudget, configure)
  }

  /// Suspends the store and resumes it, as an app in the background does.
  func suspend() throws {
    try store.suspend()
    try store.resume()
  }

  private static func openEngine(
    _ kind: StoreKind, at directory: URL, _ cursorSliceEntries: Int
  ) throws -> any StorageEngine {
    var options = LevelDBOptions()
    options.cursorSliceEntries = cursorSliceEntries
    options.separation = Record.separation(from: kind == .segments ? 1 : nil)
    // Small enough that tests fill some, and collect them.
    options.segmentBytes = 4 << 10
    return switch kind {
    case .disk, .segments:
      try LevelDBEngine(at: directory.path(percentEncoded: false), options: options)
    case .memory: InMemoryEngine(cursorSliceEntries: cursorSliceEntries)
    }
  }

  private static func openStore(
    _ engine: any StorageEngine, _ kind: StoreKind, _ clock: ManualClock, _ timer: HandTimer?,
    _ byteBudget: Int?, _ configure: (inout Store.Options) -> Void
  ) throws -> Store {
    var options = Store.Options()
    // As the engine was opened.
    options.advanced.separatedValueBytes = kind == .segments ? 1 : nil
    options.byteBudget = byteBudget
    options.clock = clock
    // Tests that are not about such sweeps count what they find.
    options.sweepInterval = nil
    if let timer {
      options.sweepInterval = .seconds(60)
      options.sweepTrigger = timer.trigger
    }
    configure(&options)
    return try Store(engine: engine, options: options, origin: kind.isOnDisk ? .disk : .memory)
  }
}

extension Fixture {
  /// All physical rows in a key space, in order.
  func rows(in space: KeySpace) throws -> [(key: [UInt8], value: [UInt8])] {
    var rows: [(key: [UInt8], value: [UInt8])] = []
    let cursor = try engine.cursor(over: EngineRange(prefix: [space.rawValue]))
    while try cursor.next() {
      rows.append(
        cursor.withEntry { key, value in
          (key.withUnsafeBytes { Array($0) }, value.withUnsafeBytes { Array($0) })
        })
    }
    return rows
  }

  /// Writes a physical row unchanged, bypassing every check and stamp.
  func put(_ value: [UInt8], under key: [UInt8]) throws {
    var batch = WriteBatch()
    batch.put(key.span.bytes, value.span.bytes)
    try engine.write(&batch, synced: false)
  }

  /// The only record in the store.
  func onlyRecord() throws -> (key: [UInt8], value: [UInt8]) {
    let rows = try rows(in: .records)
    precondition(rows.count == 1, "\(rows.count) records")
    return rows[0]
  }

  /// Changes the only record in the store, and gives it a new stamp.
  func rewriteOnlyRecord(_ change: (inout [UInt8]) -> Void) throws {
    let record = try onlyRecord()
    var batch = WriteBatch()
    batch.put(record.key.span.bytes, stamp: Record.stamp) { buffer in
      var value = record.value
      change(&value)
      buffer.append(value)
    }
    try engine.write(&batch, synced: false)
  }
}

extension Lookup {
  /// The case without its payload.
  var kind: String {
    switch self {
    case .fresh: "fresh"
    case .stale: "stale"
    case .expired: "expired"
    case .missing: "missing"
    }
  }
}
