public import Foundation

/// A report about damage that was found, and data that was set aside, when a store was opened.
public struct RecoveryReport: Sendable {
  /// The damage that was found, what was done about it, and which writes are lost, in English.
  public let summary: String
  /// The directory that now holds the bytes that were set aside.
  public let setAside: URL?
  /// The result of salvaging the damaged store; nil if it was not salvaged.
  public let salvage: SalvageReport?

  init(_ recovery: Recovery) {
    summary = recovery.summary
    setAside = URL(filePath: recovery.asidePath, directoryHint: .isDirectory)
    salvage = nil
  }

  /// Moves the damaged store at `path` aside, so that an empty one can be created there.
  init(settingAside path: String, because error: StoreError) throws(StoreError) {
    let aside = try LevelDBEngine.setAside(path)
    summary = "The store was damaged, and an empty store was created in its place. \(error)"
    setAside = URL(filePath: aside, directoryHint: .isDirectory)
    salvage = nil
  }

  /// Salvages the damaged store at `path` into a new store, and exchanges the two.
  init(salvaging path: String, because error: StoreError) throws(StoreError) {
    var report = SalvageReport()
    let aside = try LevelDBEngine.replace(path) { damaged, new throws(StoreError) in
      report = try Store.salvage(from: damaged, to: new).report
    }
    summary = "The store was damaged, and its readable entries were salvaged. \(report)"
    setAside = URL(filePath: aside, directoryHint: .isDirectory)
    salvage = report
  }
}
