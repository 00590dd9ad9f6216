package import Foundation
import LarderCoding
import LarderEngine

/// How far a migration has come: the metadata row that it leaves until it is finished.
package struct MigrationMark: Codable, Hashable, Sendable {
  /// The schema version and coder that entries are brought to.
  package var schemaVersion: Int
  package var coder: UInt8
  /// The user's key up to which, itself included, everything has been dealt with.
  package var reached: Data
  /// What was done and found up to there.
  package var report: MigrationReport

  /// The mark in a metadata value; nil when it is damaged, or not of this form.
  ///
  /// A mark only saves work: without one a migration starts anew.
  package init?(in value: [UInt8], under key: [UInt8]) {
    guard let body = Metadata.body(of: value, under: key) else { return nil }
    do {
      self = try JSONDecoder().decode(MigrationMark.self, from: Data(body))
    } catch {
      return nil
    }
  }

  init<Value>(of core: CacheCore<Value>, reached: Data, report: MigrationReport) {
    schemaVersion = core.schema.version
    coder = core.coder.format.rawValue
    self.reached = reached
    self.report = report
  }

  func isFor<Value>(_ core: CacheCore<Value>) -> Bool {
    schemaVersion == core.schema.version && coder == core.coder.format.rawValue
  }
}
