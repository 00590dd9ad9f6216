import Foundation

/// Bytes in, bytes out through `LarderEngine`, against the same work on the same LevelDB with the
/// same options and without the engine.
///
/// The workloads have `db_bench`'s names. Fills and overwrites open a directory of their own for
/// each run and close it behind the measured time, so that no compaction of one run works into the
/// next. Reads go to byte-identical copies of one compacted database.
struct EngineSuite {
  static let goal = 1.05
  /// A step of a cursor takes so little that a ratio says little.
  private static let stepMargin = 10.0
  /// As `db_bench` has them.
  private static let batchRecords = 1000
  private static let largeValueBytes = 100_000

  private let scale: Scale
  private let workspace: Workspace
  private let original: URL
  private let a: EngineSide
  private let b: any Side
  private let open: (URL) throws -> any Side

  /// Makes the databases; `open` opens one without the engine.
  init(
    _ scale: Scale, in workspace: Workspace, against open: @escaping (URL) throws -> any Side
  ) throws {
    (self.scale, self.workspace, self.open) = (scale, workspace, open)
    original = workspace.directory("original")
    let filler = try EngineSide(at: original)
    let all = Plan(records: scale.records, order: Plan.sequence(scale.records))
    _ = try filler.putEach(all)
    try filler.compact()
    try filler.close()
    a = try EngineSide(at: workspace.copy(of: original, as: "read-a"))
    b = try open(workspace.copy(of: original, as: "read-b"))
  }

  func close() throws {
    try a.close()
    try b.close()
  }

  var contests: [Contest] {
    let filled = scale.filled
    let records = scale.records
    // As many bytes of values as four fills of small ones have.
    let large = filled * 4 * Scale.valueBytes / Self.largeValueBytes
    let anyRecord = Plan.random(scale.visited, from: records)
    let hot = Plan.random(scale.visited, from: Int(Double(records) * Scale.hotShare))
    return [
      fill("fillseq", Plan(records: filled, order: Plan.sequence(filled))),
      fill("fillrandom", Plan(records: filled, order: Plan.random(filled, from: filled))),
      fill("fillbatch", Plan(records: filled, order: Plan.sequence(filled))) {
        try $0.putBatches($1, of: Self.batchRecords)
      },
      fill(
        "fill100K",
        Plan(
          records: large, order: Plan.random(large, from: large),
          valueBytes: Self.largeValueBytes)),
      overwrite("overwrite", Plan(records: records, order: anyRecord)),
      read("readrandom", Plan(records: records, order: anyRecord)) { try $0.getEach($1) },
      read("readmissing", Plan(records: records, order: anyRecord, suffix: ".")) {
        try $0.missEach($1)
      },
      read("readhot", Plan(records: records, order: hot)) { try $0.getEach($1) },
      read(
        "readseq", Plan(records: records, order: Plan.sequence(records)), margin: Self.stepMargin
      ) {
        try $0.scan($1)
      },
    ]
  }

  private typealias Work = (any Side, Plan) throws -> Int

  private func fill(
    _ name: String, _ plan: Plan, _ work: @escaping Work = { try $0.putEach($1) }
  ) -> Contest {
    write(name, plan, work) { side in
      try workspace.remove(side)
      return workspace.directory(side)
    }
  }

  private func overwrite(_ name: String, _ plan: Plan) -> Contest {
    write(name, plan, { try $0.putEach($1) }) { side in
      try workspace.copy(of: original, as: side)
    }
  }

  private func write(
    _ name: String, _ plan: Plan, _ work: @escaping Work,
    in directory: @escaping (String) throws -> URL
  ) -> Contest {
    let last = plan.visitingLast(100)
    func run(_ side: any Side) throws -> Duration {
      let time = try timed(expecting: plan.order.count) { try work(side, plan) }
      guard try side.getEach(last) == last.order.count else {
        throw WrongResults(description: "\(name) has not written everything")
      }
      try side.close()
      return time
    }
    return Contest(
      name: name, operations: plan.order.count, goal: Self.goal,
      a: { try run(EngineSide(at: directory("write-a"))) },
      b: { try run(open(directory("write-b"))) })
  }

  private func read(
    _ name: String, _ plan: Plan, margin: Double? = nil, _ work: @escaping Work
  ) -> Contest {
    let count = plan.order.count
    return Contest(
      name: name, operations: count, goal: Self.goal, goalMargin: margin,
      a: { try timed(expecting: count) { try work(a, plan) } },
      b: { try timed(expecting: count) { try work(b, plan) } })
  }
}
