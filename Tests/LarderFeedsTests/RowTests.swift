import Foundation
import Testing

/// Every row of the acceptance tables is named by a test here, or listed as not applicable.
///
/// The rows are behaviours: `GEN` of the genres feed, `EFA` of the essential feed, `ITN` of the
/// media search, `RAM` of the characters feed, `IMG` of the image feed and of image bytes, `IDS` of
/// the cache of image bytes, `HTTP` of the client. A test names those that it holds at the start of
/// its own name.
///
/// Not applicable are the rows that speak of a loader that is released while it works: a load keeps
/// alive what it needs, and is ended by cancelling it. Nor are the two that say when an application
/// calls `validate`: no library can.
@Suite struct RowTests {
  static let notApplicable = [
    "GEN-28", "GEN-52", "GEN-61", "GEN-71", "RAM-31", "RAM-44", "RAM-54",
    "EFA-28", "EFA-41", "EFA-51", "ITN-25",
    "IMG-27", "IMG-39", "IMG-48", "IMG-58", "IMG-67", "IMG-86", "IMG-92",
    "GEN-62", "IMG-49",
  ]

  /// The number of the last row of each table; they are numbered from 1 without a gap.
  static let tables = [
    ("GEN", 86), ("EFA", 52), ("ITN", 36), ("RAM", 55), ("IMG", 97), ("IDS", 8), ("HTTP", 8),
  ]

  @Test("every row has its test")
  func everyRowHasItsTest() throws {
    let rows = Self.tables.flatMap { table, count in
      (1...count).map { "\(table)-\($0 < 10 ? "0" : "")\($0)" }
    }
    let named = try rowsNamedByTests()

    #expect(Set(rows).subtracting(named).subtracting(Self.notApplicable).sorted() == [])
    #expect(named.intersection(Self.notApplicable).sorted() == [])
    #expect(named.filter { !$0.hasPrefix("TIM") }.subtracting(rows).sorted() == [])
  }

  /// The rows in the names of this target's tests, read from their sources.
  private func rowsNamedByTests() throws -> Set<String> {
    let directory = URL(filePath: #filePath).deletingLastPathComponent()
    let files = try FileManager.default.contentsOfDirectory(
      at: directory, includingPropertiesForKeys: nil)
    var rows: Set<String> = []
    for file in files where file.pathExtension == "swift" {
      let source = try String(contentsOf: file, encoding: .utf8)
      // The name is the first literal behind `@Test(`, and the rows are its first words; a
      // backslash ends a line of it.
      for test in source.matches(of: /@Test\(\s*"+\s*((?:[A-Z]{3,4}-\d\d[\s\\]+)+)/) {
        rows.formUnion(test.1.split { $0.isWhitespace || $0 == "\\" }.map(String.init))
      }
    }
    return rows
  }
}
