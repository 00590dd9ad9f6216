import Larder
import LarderEngineSupport
import SimulatedDisk
import Testing

/// Saves, replaces, removes and collects payloads in segments, on a disk that fails.
struct SegmentFaultScript {
  private static let keys = 12

  private let disk = SimulatedDisk()
  private let options: LevelDBOptions
  private var engine: LevelDBEngine
  /// The marks of the values that each key may have: the last acknowledged one, then those of
  /// failed calls.
  private var allowed: [Int: Set<UInt8?>] = [:]
  private(set) var failures = 0

  init(options: LevelDBOptions) throws {
    var options = options
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = 64 << 10
    self.options = options
    engine = try LevelDBEngine(at: "/store", options: options)
  }

  /// Runs the script, and expects afterwards what was acknowledged, on the healed disk.
  ///
  /// - Returns: The number of calls that change the disk, before it was healed.
  mutating func run(
    failing: (call: Int, fault: SimulatedDisk.Fault, forever: Bool)?, _ note: Comment
  ) throws -> Int {
    let start = disk.counts
    if let failing {
      let base = failing.fault == .failedSync ? start.syncs : start.mutating
      disk.fail(atCall: base + failing.call, failing.fault, forever: failing.forever)
    }
    for step in 0..<60 {
      if step % 7 == 6 {
        remove(step % Self.keys, note)
      } else {
        put(step % Self.keys, UInt8(step), synced: step % 5 == 0, note)
      }
      if step % 20 == 19 { collect(note) }
    }
    let calls = disk.counts.mutating - start.mutating
    disk.heal()
    try expectAllowed(note)
    // The first write may report an earlier failure.
    for _ in 0..<3 { put(11, 99, synced: true, note) }
    #expect(allowed[11] == [99], note)
    try engine.collectSegments()
    try engine.close()
    engine = try LevelDBEngine(at: "/store", options: options)
    try expectAllowed(note)
    try engine.close()
    return calls
  }

  private func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private mutating func put(_ number: Int, _ mark: UInt8, synced: Bool, _ note: Comment) {
    var batch = WriteBatch()
    batch.putSeparable(key(number), stampedValue(mark, tail: 1500))
    write(&batch, number, mark, synced: synced, note)
  }

  private mutating func remove(_ number: Int, _ note: Comment) {
    var batch = WriteBatch()
    batch.remove(key(number))
    write(&batch, number, nil, synced: false, note)
  }

  private mutating func write(
    _ batch: inout WriteBatch, _ number: Int, _ mark: UInt8?, synced: Bool, _ note: Comment
  ) {
    do throws(StoreError) {
      try engine.write(&batch, synced: synced)
      allowed[number] = [mark]
    } catch {
      check(error, note)
      // Nothing was written. After any other error the write may or may not have happened.
      if case .writesDisabled = error { return }
      allowed[number, default: [nil]].insert(mark)
    }
  }

  private mutating func collect(_ note: Comment) {
    do throws(StoreError) { try engine.collectSegments() } catch { check(error, note) }
  }

  private mutating func check(_ error: StoreError, _ note: Comment) {
    failures += 1
    #expect(error.isWriteFailure, "\(error), \(note)")
  }

  private func expectAllowed(_ note: Comment) throws {
    for number in 0..<Self.keys {
      let value = try engine.value(key(number))
      let isIntact = value.map { LarderEngineTests.isIntact($0, key: key(number)) } ?? true
      let isAllowed = allowed[number, default: [nil]].contains(value?.last)
      #expect(isIntact && isAllowed, "key \(number), \(note)")
    }
  }
}
