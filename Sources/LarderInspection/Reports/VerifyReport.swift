import Larder

extension Inspection {
  /// A check of everything in the store: each problem with its cache and key.
  package func verify(style: Style) throws(InspectionError) -> Report {
    let found = try verification()
    let (notes, packs) = (Amount.text(found.notes), Amount.text(found.packs))
    let torn = tornEnd.map { [Report.Fact("log", "\($0): a write was in progress")] }
    let facts: [Report.Fact] = [
      .init("metadata", "\(Amount.text(found.metadataRows)) rows"),
      .init("records", Amount.text(found.records)),
      .init("notes", "\(notes) in \(packs) rows"),
    ]
    let count = Report.Fact("problems", "\(found.problems.count)")
    return Report(
      style: style, title: heading,
      sections: [.facts(facts + (torn ?? []) + [count], width: 10)],
      members: jsonHeading + [
        ("metadataRows", .integer(found.metadataRows)), ("records", .integer(found.records)),
        ("notes", .integer(found.notes)), ("noteRows", .integer(found.packs)),
        ("tornLog", .optional(tornEnd)),
      ],
      columns: [
        .init(.name("CACHE"), "cache"), .init(.name("KEY"), "key"), .init("STATE", "state"),
        .init("PROBLEM", "fault"),
      ], hasTable: !found.problems.isEmpty, rowsMember: "faults", versionsLines: true
    ) { [self] add in
      for problem in found.problems {
        let cache = problem.cache
        let key = cache.flatMap { cache in problem.key.map { style.text(of: $0, in: cache) } }
        let state = problem.isUnsupported ? RecordState.unsupported : .damaged
        add([
          cache.map { .text($0.label) } ?? .none, key.map(Report.Cell.text) ?? .none,
          .text(state.rawValue), .text(problem.message),
        ])
      }
      let isAdvised = found.outcome == .damaged && !style.isQuiet
      return Report.Ending(
        outcome: found.outcome, sections: isAdvised ? [.text(adviceAgainstDamage)] : [])
    }
  }

  private var adviceAgainstDamage: String {
    backup == nil
      ? "`kvinspect repair` copies what can be read to a new store.\n"
      : "The backup does not restore; make another one of the store.\n"
  }
}
