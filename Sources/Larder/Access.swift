/// How a store is opened: for reading and writing, or for reading only.
public enum Access: Sendable {
  /// For reading and writing. Only one `Store` at a time can have the directory open.
  case readWrite

  /// For reading a snapshot that is taken when the store is opened.
  ///
  /// The snapshot consists of hard links to the store's files, or copies of them, in a temporary
  /// directory, or in memory if there is no space on disk. The store's directory is not changed or
  /// locked. So this opens a store that another process has open, on a full disk, or on read-only
  /// media. Later writes of other processes are not visible until the store is opened again.
  ///
  /// Writes throw ``StoreError/readOnly(cause:)``, and nothing is swept. A cache that the store
  /// does not contain is empty.
  case readOnly
}
