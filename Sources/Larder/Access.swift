/// Whether a store is written to.
public enum Access: Sendable {
  /// The store is read and written. One `Store` at a time has the directory open.
  case readWrite

  /// The store is read as it is at the opening.
  ///
  /// It reads a snapshot of the store's files: hard links or copies in a temporary directory, or in
  /// memory if there is no room for that. Nothing in the store's directory is changed, and no lock
  /// is taken. So it opens a store that another process has open, one on a full disk, and one on
  /// media that cannot be written. What others write later is not seen: open it again for that.
  ///
  /// Everything that would write throws ``StoreError/readOnly(cause:)``, and nothing is swept. A
  /// cache that the store does not have is empty.
  case readOnly
}
