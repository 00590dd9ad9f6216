internal import CSimulatedDisk

/// What a crash leaves of the changes that are not durable.
///
/// The same seed at the same position gives the same disk.
package enum CrashModel: Hashable, Sendable {
  /// Everything, because only the process ended.
  case everything
  /// No unsynced bytes, and no changes of names.
  case nothingUnsynced
  /// All changes of names, and no unsynced bytes.
  case unsyncedDataLost
  /// All bytes, and only this many of the changes of names that are not durable.
  case namesLost(keeping: Int)
  /// A prefix of each file's bytes, and of the changes of names.
  case prefix(seed: UInt64)
  /// Everything, except that the last write is incomplete unless it was synced.
  case tornLastAppend(seed: UInt64)
  /// Everything, except that the last unsynced bytes of one file are zeros.
  case zeroedTail(seed: UInt64)
  /// Everything, except that the last unsynced bytes of one file are random.
  case garbageTail(seed: UInt64)
  /// Everything, except the unsynced bytes of the oldest file that has some.
  case oldFileTailLost
}

/// Replays the journal of a disk, and makes the image of a crash after any change.
///
/// It starts before the first change. Only one thread may use it at a time.
package final class Replay {
  private let replay: OpaquePointer

  /// The number of changes replayed so far.
  package private(set) var position = 0

  init(owning replay: OpaquePointer) {
    self.replay = replay
  }

  deinit {
    csimdisk_replay_free(replay)
  }

  /// A change in the journal.
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
      /// A change from outside, by ``SimulatedDisk/setBytes(_:of:)``.
      case edit
    }

    package let kind: Kind
    /// The number of the file, which is higher for later files; 0 if the change concerns no file.
    package let file: UInt64
    /// The number of bytes written, or left after a truncation.
    package let count: Int
    /// The path, or "" for changes of open files.
    package let path: String
  }

  /// Replays the next change and returns it; nil at the end.
  package func step() -> Step? {
    guard let entry = csimdisk_replay_step(replay)?.pointee else { return nil }
    position += 1
    return Step(
      kind: Step.Kind(entry.kind), file: entry.file, count: Int(entry.count),
      path: String(cString: entry.path))
  }

  /// Replays all remaining changes, and returns them.
  package func steps() -> [Step] {
    var steps: [Step] = []
    while let step = step() { steps.append(step) }
    return steps
  }

  /// The number of changes of names that are not durable at this position.
  package var pendingNames: Int { csimdisk_replay_pending_names(replay) }

  /// The disk that a crash at this position leaves.
  ///
  /// It has no faults and an empty journal, and its contents are durable.
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
