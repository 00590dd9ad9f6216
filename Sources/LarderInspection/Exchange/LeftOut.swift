import Larder

/// What an import leaves out of its source.
package struct LeftOut {
  /// The number of parts that are named; the others are counted.
  private static let mostNamed = 100

  let skipsUnreadable: Bool
  private let report: (String) -> Void
  private(set) var count = 0

  /// - Parameters:
  ///   - skips: Whether entries that cannot be imported are left out; otherwise the first one
  ///     refuses the import.
  ///   - report: Receives a message for each of the first 100 parts that are left out, and the
  ///     number of the others.
  package init(
    skippingUnreadable skips: Bool = false,
    reportingTo report: @escaping (String) -> Void = { _ in }
  ) {
    (skipsUnreadable, self.report) = (skips, report)
  }

  /// Counts a part, and reports it.
  mutating func add(_ what: String) {
    count += 1
    if count <= Self.mostNamed { report("left out: " + what.escapedForTerminal) }
  }

  /// Leaves out an entry that cannot be imported, or throws the error.
  mutating func addOrThrow(_ error: InspectionError) throws(InspectionError) {
    guard skipsUnreadable else {
      throw InspectionError(
        error.status, "\(error.description). --skip-unreadable leaves such entries out")
    }
    add(error.description)
  }

  /// Reports how many parts were not named.
  func end() {
    if count > Self.mostNamed { report("left out: \(Amount.text(count - Self.mostNamed)) more") }
  }
}
