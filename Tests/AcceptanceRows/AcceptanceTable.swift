/// A table of rows, each with the tests of one target that show it.
///
/// A row is one behavior; its id is the table's name and a number, such as `GEN-01`. A test is
/// written as `Suite/function`. `Tests/ROWS.md` has a sentence for each row.
package struct AcceptanceTable: Sendable {
  let name: String
  let numbers: [Int]
  let notApplicable: Set<Int>
  let lines: String

  /// Creates a table.
  ///
  /// - Parameters:
  ///   - name: The first part of the rows' ids.
  ///   - numbers: The numbers of the rows that the target's tests must show, in order.
  ///   - notApplicable: Those of `numbers` that do not apply and must not be listed.
  ///   - lines: An id and a test on each line, in the order of the ids. A row that needs several
  ///     tests has a line for each.
  package init(
    _ name: String, _ numbers: some Sequence<Int>, notApplicable: Set<Int> = [], _ lines: String
  ) {
    self.name = name
    self.numbers = Array(numbers)
    self.notApplicable = notApplicable
    precondition(notApplicable.isSubset(of: self.numbers), "\(name) has no such rows")
    self.lines = lines
  }

  /// The ids that the lines must have.
  package var ids: [String] {
    numbers.filter { !notApplicable.contains($0) }.map(id)
  }

  /// The ids that the lines do have, in their order, each once for lines that follow each other.
  package var listedIDs: [String] {
    rows.map(\.id).reduce(into: []) { ids, id in
      if ids.last != id { ids.append(id) }
    }
  }

  /// One sentence for each line whose test does not run.
  ///
  /// Meaningful only if ``Acceptance/isWholeRun``.
  package var missingTests: [String] {
    let planned = Acceptance.planned
    return rows.filter { !planned.contains($0.test) }.map { id, test in
      """
      \(id): \(test) does not run. It does not exist, its suite is not marked with .acceptance, \
      or it has a condition.
      """
    }
  }

  private var rows: [(id: String, test: String)] {
    lines.split(separator: "\n").map { line in
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      return (words[0], words.count > 1 ? words[1] : "")
    }
  }

  private func id(_ number: Int) -> String { "\(name)-\(number < 10 ? "0" : "")\(number)" }
}
