internal import CSimulatedDisk

/// A disk in memory that fails on demand, and that knows what would survive a power loss.
///
/// The functions here look at it and change it from outside; a store uses it through
/// ``SimulatedFiles``. It must outlive every store on it.
package final class SimulatedDisk: @unchecked Sendable {
  // The pointer never changes, and what it points to has a mutex.
  let disk: OpaquePointer

  /// A disk that holds nothing but its root.
  package convenience init() {
    self.init(owning: csimdisk_create())
  }

  init(owning disk: OpaquePointer) {
    self.disk = disk
  }

  deinit {
    csimdisk_free(disk)
  }

  /// A disk with the same files, what is durable of them, and journal.
  ///
  /// It has no faults, no locks and no calls yet.
  package func copy() -> SimulatedDisk {
    SimulatedDisk(owning: csimdisk_copy(disk))
  }

  // MARK: - Contents

  /// The path of every file, in order.
  package var names: [String] {
    CBuffer.filled { csimdisk_paths(disk, $0) }.1.strings
  }

  /// All bytes of a file; nil when there is no such file.
  package func bytes(of path: String) -> [UInt8]? {
    let (found, bytes) = CBuffer.filled { csimdisk_bytes(disk, path, $0) }
    return found ? bytes : nil
  }

  /// Makes `bytes` all that a file holds, durably.
  ///
  /// Its name and its directories are made if they are missing.
  package func setBytes(_ bytes: [UInt8], of path: String) {
    csimdisk_set_bytes(disk, path, bytes, bytes.count)
  }

  /// Changes the bytes of a file, durably; a missing file had none.
  package func edit(_ path: String, _ change: (inout [UInt8]) -> Void) {
    var bytes = bytes(of: path) ?? []
    change(&bytes)
    setBytes(bytes, of: path)
  }

  /// How many bytes of a file are written and not durable.
  package func unsyncedCount(of path: String) -> Int {
    Int(csimdisk_unsynced(disk, path))
  }

  /// Of all names and bytes; disks that hold the same have the same.
  package var hash: UInt64 { csimdisk_hash(disk) }

  /// Sets how many bytes all files together may have; what goes beyond finds no space.
  package func setCapacity(_ byteCount: UInt64) {
    csimdisk_set_capacity(disk, byteCount)
  }

  // MARK: - Faults

  /// Which calls a fault counts, and can make fail.
  package enum Calls: CaseIterable, Sendable {
    /// Those that change the disk, syncs among them.
    case mutating
    /// Writes of bytes.
    case writes
    /// Syncs of files and of directories.
    case syncs
    /// Opening for reading, reading, listing and looking: all that do not change the disk.
    case reads
    case all
  }

  /// How a call fails.
  package enum Fault: CaseIterable, Sendable {
    case eio
    case enospc
    /// A write leaves half of its bytes and then finds no space; other calls find none at once.
    case shortWrite
    /// Like ``eio``, and counts only syncs, whatever calls are asked for.
    case failedSync
  }

  /// How many calls there were.
  package struct Counts: Equatable, Sendable {
    package let mutating: Int
    package let writes: Int
    package let syncs: Int
    package let reads: Int
    package let all: Int
    /// How many of them were made to fail.
    package let failed: Int
  }

  /// Makes the call with this number fail, and all `calls` after it, if `forever`.
  ///
  /// Calls are counted from 1 in the life of the disk, among `calls`: the next one has the number
  /// ``counts`` tells, and one more. Faults add up until ``heal()``.
  package func fail(
    atCall number: Int, _ fault: Fault, of calls: Calls = .mutating, forever: Bool = false
  ) {
    let counted = fault == .failedSync ? Calls.syncs : calls
    csimdisk_fail(disk, UInt64(number), counted.value, fault.value, forever)
  }

  /// Ends every fault.
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

  /// Opens or makes a database and puts entries of 1000 bytes into it, each synced.
  ///
  /// Returns how many it took before a call failed.
  package func fillDatabase(at path: String, from first: Int, count: Int) -> Int {
    Int(csimdisk_database_fill(disk, path, Int32(first), Int32(count)))
  }

  /// How many entries of ``fillDatabase(at:from:count:)`` a database has.
  ///
  /// Nil when it cannot be opened or read, or when one before its last is missing.
  package func databaseCount(at path: String) -> Int? {
    let count = csimdisk_database_count(disk, path)
    return count < 0 ? nil : Int(count)
  }

  // MARK: - The background

  /// Has the work that LevelDB does in the background wait, before it begins and before each of its
  /// calls that change the disk.
  ///
  /// So the same script makes the same journal. Nobody may wait for that work meanwhile: not two
  /// logs may be filled, and no database be closed or compacted.
  package func holdBackground() { csimdisk_hold_background(disk) }

  /// Has others wait with what changes the disk until the background has nothing to do.
  package func preferBackground() { csimdisk_prefer_background(disk) }

  /// Ends ``holdBackground()`` and ``preferBackground()``.
  package func releaseBackground() { csimdisk_release_background(disk) }

  /// Lets the work in the background go on for so many calls, or to its end, and waits for that.
  package func runBackground(calls: Int = .max) { csimdisk_run_background(disk, calls) }

  // MARK: - Crashes

  /// How many changes the journal holds.
  package var journalCount: Int { csimdisk_journal_count(disk) }

  /// Goes through the journal, as it is now, from the disk's beginning.
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

/// Bytes that come out of the disk.
enum CBuffer {
  /// What `body` returns, and the bytes that it leaves in its buffer.
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
  /// The strings in a list of which each is followed by a zero.
  var strings: [String] {
    split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }
}
