package import Foundation

/// The progress of an unfinished migration, stored in a metadata row.
package struct MigrationMark: Codable, Hashable, Sendable {
  /// The schema version and coder that entries are migrated to.
  package var schemaVersion: Int
  package var coder: UInt8
  /// The last user's key up to which every entry is migrated.
  package var reached: Data
  /// The counts up to that key.
  package var report: MigrationReport

  /// Reads the mark in a metadata value; nil if it is damaged or malformed.
  ///
  /// Without a mark, a migration starts from the beginning.
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
