public import Larder

/// For tests, two errors are equal if they are described by the same words.
extension StoreError: Equatable {
  /// Whether the descriptions of two errors are the same.
  public static func == (left: StoreError, right: StoreError) -> Bool {
    "\(left)" == "\(right)"
  }
}
