import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// `sweep` deletes expired records of a closed store, and a dry run changes nothing.
@Suite struct SweepCommandTests {
  private let specimen: Specimen
  /// A time at which some records have expired.
  private let later = Specimen.now + 20 * 86_400

  init() throws { specimen = try Specimen() }

  @Test("A dry run reports what a sweep deletes, and changes nothing.")
  func dryRun() throws {
    let before = try files()
    var text = ""
    let inspection = try Inspection(at: specimen.path, now: later)
    #expect(try inspection.dryRun(style: Style(.table)).write(to: &text) == .fine)
    #expect(text.hasSuffix("\n\n5 records would be deleted, 443 B with their keys\n"))
    #expect(try files() == before)

    text = ""
    #expect(
      try Inspection.sweep(specimen.path, now: later, style: Style()).write(to: &text) == .fine)
    #expect(text.hasSuffix("\n\n5 records deleted, 443 B with their keys\n"))
    text = ""
    #expect(
      try Inspection.sweep(specimen.path, now: later, style: Style(.json)).write(to: &text) == .fine
    )
    #expect(text.contains("\"isDryRun\":false,\"deleted\":0,\"due\":0"))
    let keys = try Inspection(at: specimen.path, now: later).keys().map(\.key).sorted()
    let odd = "0x" + "two\nlines".utf8.map { String(format: "%02x", $0) }.joined()
    #expect(keys == ["\(Specimen.uuid)", odd, "damaged", "fresh", "stale"])
  }

  @Test("An open store is not swept.")
  func openStore() throws {
    let store = try Specimen.open(specimen.path)
    var text = ""
    #expect {
      try Inspection.sweep(specimen.path, now: later, style: Style()).write(to: &text)
    } throws: {
      outcome(of: $0) == .unavailable
    }
    try store.close()
    #expect(text.isEmpty)
  }

  @Test("A path without a store is refused, and no store is made.")
  func notAStore() throws {
    let directory = try TemporaryDirectory()
    var text = ""
    for path in [directory.path("none"), directory.path] {
      #expect { try Inspection.sweep(path, now: later, style: Style()).write(to: &text) } throws: {
        _ in
        true
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
  }

  /// The contents of the store's files.
  private func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: specimen.path) {
      files[name] = try Data(contentsOf: URL(filePath: specimen.path).appending(path: name))
    }
    return files
  }
}
