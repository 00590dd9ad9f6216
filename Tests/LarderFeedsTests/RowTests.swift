import Testing

/// Every row of the acceptance tables names tests that show it, and they run.
@Suite struct RowTests {
  @Test("The list has every row once, and a test for each that applies")
  func everyRowIsListed() {
    let rows = Rows.tables.flatMap { table, count, _ in
      (1...count).map { "\(table)-\($0 < 10 ? "0" : "")\($0)" }
    }

    #expect(Rows.tests.map(\.row) == rows.filter { !Rows.notApplicable.contains($0) })
    #expect(Rows.tests.filter(\.tests.isEmpty).map(\.row) == [])
    #expect(Rows.notApplicable.union(Rows.decidedOtherwise).subtracting(rows) == [])
    #expect(Rows.notApplicable.isDisjoint(with: Rows.decidedOtherwise))
  }

  @Test(
    "The tests of all rows exist, and this run runs them",
    .enabled(if: isWholeRun, "A filtered run leaves out tests that rows name."))
  func everyRowRuns() {
    let planned = Acceptance.planned
    for (row, tests) in Rows.tests {
      for test in tests where !planned.contains(test) {
        Issue.record(
          """
          \(row): \(test) does not run. It does not exist, its suite is not marked with \
          .acceptance, or it has a condition.
          """)
      }
    }
  }

  private static let isWholeRun = !CommandLine.arguments.contains { argument in
    ["--filter", "--skip"].contains { argument == $0 || argument.hasPrefix($0 + "=") }
  }
}
