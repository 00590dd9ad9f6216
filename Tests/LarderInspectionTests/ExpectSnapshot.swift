import Foundation
import Testing

/// Compares a text with the one in `Snapshots/`; RECORD_SNAPSHOTS=1 writes it there first.
///
/// `masks` are texts that differ between runs, and their replacements.
func expectSnapshot(
  _ text: String, named name: String, masking masks: [(String, String)] = [],
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let masked = masks.reduce(text) { $0.replacing($1.0, with: $1.1) }
  let file = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "Snapshots/\(name).txt")
  if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
    try Data(masked.utf8).write(to: file)
  }
  let recorded = String(decoding: try Data(contentsOf: file), as: UTF8.self)
  #expect(masked == recorded, "\(name)", sourceLocation: sourceLocation)
}
