internal import CSimulatedDisk

/// A disk in memory that fails on demand, and that knows what would survive a power loss.
///
/// Tests inspect and change it with the functions here; a store uses it through
/// ``SimulatedFiles``. It must outlive every store on it.
package final class SimulatedDisk: @unchecked Sendable {
  // The pointer never changes, and the disk has its own mutex.
  let disk: OpaquePointer

  /// An empty disk.
  package convenience init() {
    self.init(owning: csimdisk_create())
  }

  init(owning disk: OpaquePointer) {
    self.disk = disk
  }

  deinit {
    csimdisk_free(disk)
  }

  /// A disk with the same files, durable state and journal.
  ///
  /// It has no faults, locks or counted calls.
  package func copy() -> SimulatedDisk {
    SimulatedDisk(owning: csimdisk_copy(disk))
  }

  // MARK: - Contents

  /// The path of every file, in order.
  package var names: [String] {
    CBuffer.filled { csimdisk_paths(disk, $0) }.1.strings
  }

  /// All bytes of a file; nil if the file is missing.
  package func bytes(of path: String) -> [UInt8]? {
    let (found, bytes) = CBuffer.filled { csimdisk_bytes(disk, path, $0) }
    return found ? bytes : nil
  }

  /// Replaces a file's contents durably.
  ///
  /// Creates its name and its directories if they are missing.
  package func setBytes(_ bytes: [UInt8], of path: String) {
    csimdisk_set_bytes(disk, path, bytes, bytes.count)
  }

  /// Changes the bytes of a file durably; a missing file starts empty.
  package func edit(_ path: String, _ change: (inout [UInt8]) -> Void) {
    var bytes = bytes(of: path) ?? []
    change(&bytes)
    setBytes(bytes, of: path)
  }

  /// The number of written bytes of a file that are not durable.
  package func unsyncedCount(of path: String) -> Int {
    Int(csimdisk_unsynced(disk, path))
  }

  /// A hash of all names and bytes, equal for disks with the same contents.
  package var hash: UInt64 { csimdisk_hash(disk) }

  /// Sets the maximum size of all files together; writes beyond it find no space.
  package func setCapacity(_ byteCount: UInt64) {
    csimdisk_set_capacity(disk, byteCount)
  }

  // MARK: - Faults

  /// The calls that a fault counts and can make fail.
  package enum Calls: CaseIterable, Sendable {
    /// Calls that change the disk, and syncs.
    case mutating
    /// Writes of bytes.
    case writes
    /// Syncs of files and of directories.
    case syncs
    /// Calls that do not change the disk: opening for reading, reading, listing and `stat`.
    case reads
    case all
  }

  /// How a call fails.
  package enum Fault: CaseIterable, Sendable {
    case eio
    case enospc
    /// A write stores half of its bytes and then finds no space; other calls find none at once.
    case shortWrite
    /// Like ``eio``, but counts only syncs, whatever calls are given.
    case failedSync
  }

  /// The numbers of calls.
  package struct Counts: Equatable, Sendable {
    package let mutating: Int
    package let writes: Int
    package let syncs: Int
    package let reads: Int
    package let all: Int
    /// The number of calls that a fault made fail.
    package let failed: Int
  }

  /// Makes the call with this number fail, and all later `calls` if `forever` is true.
  ///
  /// Numbers start at 1 and count the `calls` since the disk was created, so the next call's number
  /// is one more than in ``counts``. Faults add up until ``heal()``.
  package func fail(
    atCall number: Int, _ fault: Fault, of calls: Calls = .mutating, forever: Bool = false
  ) {
    let counted = fault == .failedSync ? Calls.syncs : calls
    csimdisk_fail(disk, UInt64(number), counted.value, fault.value, forever)
  }

  /// Makes a later call fail, and all after it if `forever` is true.
  ///
  /// The number is 1 for the next call. A ``Fault/failedSync`` counts syncs, other faults mutating
  /// calls.
  package func fail(inCalls number: Int, _ fault: Fault, forever: Bool = false) {
    let past = fault == .failedSync ? counts.syncs : counts.mutating
    fail(atCall: past + number, fault, forever: forever)
  }

  /// Makes a later call fail in each of many rounds, and every second time all after it.
  ///
  /// Rounds start at 1. In each the fault comes `step` calls later than in the one before, or one
  /// sync later if it is a ``Fault/failedSync``.
  package func fail(inRound number: Int, _ fault: Fault, every step: Int) {
    fail(
      inCalls: fault == .failedSync ? number : step * number, fault,
      forever: number.isMultiple(of: 2))
  }

  /// Removes all faults.
  package func heal() {
    csimdisk_heal(disk)
  }

  /// The calls so far.
  package var counts: Counts {
    let counts = csimdisk_count(disk)
    let (mutating, writes, syncs, reads, all) = counts.calls
    return Counts(
      mutating: Int(mutating), writes: Int(writes), syncs: Int(syncs), reads: Int(reads),
      all: Int(all), failed: Int(counts.failed))
  }

  // MARK: - LevelDB, for the tests of the disk itself

  /// Opens or creates a database and puts entries of 1000 bytes into it, each synced.
  ///
  /// Returns the number of entries that were put before a call failed.
  package func fillDatabase(at path: String, from first: Int, count: Int) -> Int {
    Int(csimdisk_database_fill(disk, path, Int32(first), Int32(count)))
  }

  /// The number of entries of ``fillDatabase(at:from:count:)`` in a database.
  ///
  /// Nil if it cannot be opened or read, or if an entry before the last one is missing.
  package func databaseCount(at path: String) -> Int? {
    let count = csimdisk_database_count(disk, path)
    return count < 0 ? nil : Int(count)
  }

  // MARK: - The background

  /// Makes LevelDB's background work wait before it starts and before each of its calls that
  /// change the disk.
  ///
  /// So the same script makes the same journal. No call may depend on that work meanwhile: do not
  /// fill two logs, and do not close or compact a database.
  package func holdBackground() { csimdisk_hold_background(disk) }

  /// Makes other calls that change the disk wait until there is no background work.
  package func preferBackground() { csimdisk_prefer_background(disk) }

  /// Ends ``holdBackground()`` and ``preferBackground()``.
  package func releaseBackground() { csimdisk_release_background(disk) }

  /// Lets the background work continue for `calls` calls or to its end, and waits for that.
  package func runBackground(calls: Int = .max) { csimdisk_run_background(disk, calls) }

  // MARK: - Crashes

  /// The number of changes in the journal.
  package var journalCount: Int { csimdisk_journal_count(disk) }

  /// A replay of the current journal, from the disk's initial state.
  package func replay() -> Replay {
    Replay(owning: csimdisk_replay_create(disk))
  }
}

extension SimulatedDisk.Calls {
  fileprivate var value: csimdisk_calls {
    switch self {
    case .mutating: .mutating
    case .writes: .writes
    case .syncs: .syncs
    case .reads: .reads
    case .all: .all
    }
  }
}

extension SimulatedDisk.Fault {
  fileprivate var value: csimdisk_fault {
    switch self {
    case .eio, .failedSync: .eio
    case .enospc: .enospc
    case .shortWrite: .short_write
    }
  }
}

/// A buffer for bytes that the C interface returns.
enum CBuffer {
  /// Returns the result of `body`, and the bytes that it has put into the buffer.
  static func filled<Result>(
    _ body: (OpaquePointer) -> Result
  ) -> (Result, [UInt8]) {
    let buffer: OpaquePointer = csimdisk_buffer_create()
    defer { csimdisk_buffer_free(buffer) }
    let result = body(buffer)
    let bytes = UnsafeBufferPointer(
      start: csimdisk_buffer_bytes(buffer), count: csimdisk_buffer_count(buffer))
    return (result, Array(bytes))
  }
}

extension [UInt8] {
  /// The strings in a list of zero-terminated strings.
  var strings: [String] {
    split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }
}
