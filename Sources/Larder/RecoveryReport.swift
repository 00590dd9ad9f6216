public import Foundation
import LarderEngine

/// What opening a store had to set aside.
public struct RecoveryReport: Sendable {
  /// What was found and done, in English.
  public let summary: String
  /// The commit sequences that are gone; nil when they are not known.
  public let lostCommits: ClosedRange<UInt64>?
  /// Where the bytes are now that were set aside.
  public let setAside: URL?
  /// What was copied from a damaged store, and what is lost; nil if nothing was salvaged.
  public let salvage: SalvageReport?

  init(_ recovery: Recovery) {
    summary = recovery.summary
    lostCommits = recovery.lostCommits
    setAside = URL(filePath: recovery.asidePath, directoryHint: .isDirectory)
    salvage = nil
  }

  /// Moves the damaged store at `path` aside.
  init(settingAside path: String, because error: StoreError) throws(StoreError) {
    let aside: String
    do {
      aside = try LevelDBEngine.setAside(path)
    } catch {
      throw StoreError(error)
    }
    summary = "The store was damaged and was started afresh. \(error)"
    lostCommits = nil
    setAside = URL(filePath: aside, directoryHint: .isDirectory)
    salvage = nil
  }

  /// Salvages the damaged store at `path`, puts the new one in its place, and moves it aside.
  init(salvaging path: String, because error: StoreError) throws(StoreError) {
    var report = SalvageReport()
    let aside: String
    do throws(EngineError) {
      aside = try LevelDBEngine.replace(path) { damaged, new throws(EngineError) in
        report = try Store.salvage(from: damaged, to: new)
      }
    } catch {
      throw StoreError(error)
    }
    summary = "The store was damaged, and what could be read was copied to a new one. \(report)"
    lostCommits = nil
    setAside = URL(filePath: aside, directoryHint: .isDirectory)
    salvage = report
  }
}
