import AcceptanceRows
import Testing

/// Checks that each row of the acceptance tables names tests that show it, and that they run.
@Suite struct RowTests {
  @Test("Each table lists its rows in order, and a test for each that applies.")
  func listed() {
    for table in Rows.tables { #expect(table.listedIDs == table.ids) }
  }

  @Test(
    "The tests of all rows exist, and this run runs them.",
    .enabled(if: Acceptance.isWholeRun, "A filtered run leaves out tests that rows name."))
  func run() {
    #expect(Rows.tables.flatMap(\.missingTests) == [])
  }
}
