/// The file in which the process that has a store open publishes its statistics.
///
/// It is replaced whole and never synced. The store does not read it. A clean close removes it; a
/// killed process leaves it. It is live only if it names the process that the guard names, and that
/// process is running.
package final class StatisticsFile: Sendable {
  package static let name = "LARDER.statistics"
  /// The file while it is written.
  package static let newName = "LARDER.statistics.new"

  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  enum State {
    case unpublished, published, ended
  }

  private let directory: String
  private let lock: any FileGuard
  private let files: any StoreFiles
  private let state = Lock(State.unpublished)

  init(in directory: String, under lock: any FileGuard, files: any StoreFiles) {
    (self.directory, self.lock, self.files) = (directory, lock, files)
  }

  private var path: String { "\(directory)/\(Self.name)" }
  private var newPath: String { "\(directory)/\(Self.newName)" }

  /// Replaces the file; does nothing after ``end()``, until ``restart()``.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``. The file is then as it was before.
  func replace(with bytes: [UInt8]) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      guard state != .ended, try lock.isInPlace() else { return }
      // A killed process may have left it.
      try removeIfPresent(newPath)
      do throws(StoreError) {
        try files.create(newPath, with: bytes)
        try files.move(newPath, to: path)
      } catch {
        // A part of the file would take room on a full disk.
        try removeIfPresent(newPath)
        throw error
      }
      state = .published
    }
  }

  /// Removes the file if this process has written it.
  func end() {
    state.withLock { state in
      defer { state = .ended }
      guard state == .published else { return }
      do throws(StoreError) {
        if try lock.isInPlace() { try removeIfPresent(path) }
      } catch {
        // A file that stays names a process that does not have the store open.
      }
    }
  }

  /// Lets the file be published again after ``end()``.
  func restart() { state.withLock { $0 = .unpublished } }

  private func removeIfPresent(_ path: String) throws(StoreError) {
    if try files.kind(of: path) != nil { try files.remove(path) }
  }
}
