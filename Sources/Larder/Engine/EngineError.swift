/// The reason why an engine's operation failed.
///
/// An absent key is not an error: it is a result of reads. `Larder` turns each case into the case
/// of `StoreError` with the same meaning; users never see this type.
package enum EngineError: Error, Hashable {
  /// The engine was closed. Nothing was read or written.
  case closed

  /// Another handle has the directory open, in this process or another one. Nothing was touched.
  ///
  /// `pid` is the owner's process id in the guard file, or nil if it cannot be read.
  case locked(pid: Int32?)

  /// The file system has no room (or no quota) left. The outcome of the write is unknown.
  case diskFull

  /// A read or a write failed. The message is LevelDB's or the system's.
  case io(String)

  /// An earlier write failed, and its `cause` persists. Nothing was written.
  ///
  /// Each write first tries to make the store writable again.
  case writesDisabled(cause: String)

  /// The engine was opened read-only, because of `cause`. Nothing was written.
  case readOnly(cause: String)

  /// A checksum or a length in LevelDB's files is wrong.
  case corrupt(String)

  /// The directory holds something that this library does not open. Nothing was touched.
  case incompatible(String)

  /// A key, a value or a batch is over its limit, or a setting is out of range. Nothing was done.
  case invalidArgument(String)

  /// The ``CommitParticipant`` refused the batch; the number is its own. Nothing was written.
  case refused(Int)

  /// Whether the file system has no room, or had none for an earlier write.
  var isFullDisk: Bool {
    switch self {
    case .diskFull: true
    case .writesDisabled(let cause): cause == "\(Self.diskFull)"
    default: false
    }
  }
}
