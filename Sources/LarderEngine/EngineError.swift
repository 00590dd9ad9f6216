/// Why an engine refused an operation.
///
/// An absent key is not an error: reads say so by their result. `Larder` turns each case into the
/// case of `StoreError` with the same meaning; users never see this type.
package enum EngineError: Error, Hashable {
  /// The engine was closed. Nothing was read or written.
  case closed

  /// Another handle has the directory open, in this process or another one. Nothing was touched.
  ///
  /// `pid` is the owner's, as it wrote it into the guard file, or nil when it cannot be read.
  case locked(pid: Int32?)

  /// The file system has no room (or no quota) left. The outcome of the write is unknown.
  case diskFull

  /// The operating system refused a read or a write. The message is LevelDB's or the system's.
  case io(String)

  /// A write failed before, and the reason for it, `cause`, is still there.
  ///
  /// Nothing was written. Each write tries first whether it is over.
  case writesDisabled(cause: String)

  /// The engine was opened for reading only, because of `cause`. Nothing was written.
  case readOnly(cause: String)

  /// A checksum or a length in LevelDB's files is wrong.
  case corrupt(String)

  /// The directory holds something that this library must not open. Nothing was touched.
  case incompatible(String)

  /// A key, a value or a batch is over its limit, or a setting is out of range. Nothing was done.
  case invalidArgument(String)

  /// The batch would exceed a budget of the engine's ``CommitMeter``. Nothing was written.
  case overBudget(Shortage)
}
