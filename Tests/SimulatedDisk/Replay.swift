internal import CSimulatedDisk

/// What a crash leaves of what is not durable.
///
/// The same seed at the same place gives the same disk.
package enum CrashModel: Hashable, Sendable {
  /// All: the process ended, and the system did not.
  case everything
  /// No bytes that were not synced, and no change of names.
  case nothingUnsynced
  /// All changes of names, no bytes.
  case unsyncedDataLost
  /// All bytes, and only so many of the changes of names that are not durable.
  case namesLost(keeping: Int)
  /// Of each file some first bytes, and some first changes of names.
  case prefix(seed: UInt64)
  /// All, but the last write, unless it is synced, ends early.
  case tornLastAppend(seed: UInt64)
  /// All, but in one file the end of what was not synced is zeros.
  case zeroedTail(seed: UInt64)
  /// All, but in one file the end of what was not synced is noise.
  case garbageTail(seed: UInt64)
  /// All, but no bytes that were not synced in the oldest file that has some.
  case oldFileTailLost
}

/// A walk through the journal of a disk, which can crash at every step.
///
/// It stands before the first entry. It belongs to one thread at a time.
package final class Replay {
  private let replay: OpaquePointer

  /// How many entries it is past.
  package private(set) var position = 0

  init(owning replay: OpaquePointer) {
    self.replay = replay
  }

  deinit {
    csimdisk_replay_free(replay)
  }

  /// A change that the journal tells of.
  package struct Step: Equatable, Sendable {
    package enum Kind: Sendable {
      case create
      case write
      case truncate
      case sync
      case rename
      case exchange
      case unlink
      case makeDirectory
      case removeDirectory
      case syncDirectory
      /// From outside, by ``SimulatedDisk/setBytes(_:of:)``.
      case edit
    }

    package let kind: Kind
    /// The number of the file, 0 when the change is not about one; later files have higher ones.
    package let file: UInt64
    /// How many bytes were written, or are left.
    package let count: Int
    /// The path, or "" for changes of open files.
    package let path: String
  }

  /// Goes past the next change and returns it; nil at the end.
  package func step() -> Step? {
    guard let entry = csimdisk_replay_step(replay)?.pointee else { return nil }
    position += 1
    return Step(
      kind: Step.Kind(entry.kind), file: entry.file, count: Int(entry.count),
      path: String(cString: entry.path))
  }

  /// Goes past all changes that are left, and returns them.
  package func steps() -> [Step] {
    var steps: [Step] = []
    while let step = step() { steps.append(step) }
    return steps
  }

  /// How many changes of names are not durable here.
  package var pendingNames: Int { csimdisk_replay_pending_names(replay) }

  /// The disk that a crash leaves here.
  ///
  /// It has no faults and an empty journal, and all that it holds is durable.
  package func image(_ model: CrashModel) -> SimulatedDisk {
    let (value, number) = model.values
    return SimulatedDisk(owning: csimdisk_replay_image(replay, value, number))
  }
}

extension Replay.Step.Kind {
  fileprivate init(_ kind: csimdisk_entry_kind) {
    switch kind {
    case .create: self = .create
    case .write: self = .write
    case .truncate: self = .truncate
    case .sync: self = .sync
    case .rename: self = .rename
    case .exchange: self = .exchange
    case .unlink: self = .unlink
    case .mkdir: self = .makeDirectory
    case .rmdir: self = .removeDirectory
    case .sync_directory: self = .syncDirectory
    case .edit: self = .edit
    }
  }
}

extension CrashModel {
  fileprivate var values: (csimdisk_model, UInt64) {
    switch self {
    case .everything: (.everything, 0)
    case .nothingUnsynced: (.nothing_unsynced, 0)
    case .unsyncedDataLost: (.unsynced_data_lost, 0)
    case .namesLost(let kept): (.names_lost, UInt64(kept))
    case .prefix(let seed): (.prefix, seed)
    case .tornLastAppend(let seed): (.torn_last_append, seed)
    case .zeroedTail(let seed): (.zeroed_tail, seed)
    case .garbageTail(let seed): (.garbage_tail, seed)
    case .oldFileTailLost: (.old_file_tail_lost, 0)
    }
  }
}
