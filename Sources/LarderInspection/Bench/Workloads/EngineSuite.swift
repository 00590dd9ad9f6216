import Foundation

/// The goal of every contest of the engine.
private let goalRatio = 1.05

/// Puts and gets through `LevelDBEngine`, against the same work on the same LevelDB without it.
///
/// The workloads have `db_bench`'s names. Each run of a fill or an overwrite opens its own
/// directory and closes it after the measured time, so that no compaction of one run affects the
/// next. Reads use byte-identical copies of one compacted database.
struct EngineSuite<Other: Side> {
  /// The work of one contest, on either side.
  struct Work {
    let a: (EngineSide, Plan) throws -> Int
    let b: (Other, Plan) throws -> Int
  }

  private let scale: Scale
  private let workspace: Workspace
  private let original: URL
  private let a: EngineSide
  private let b: Other
  private let open: (URL) throws -> Other

  /// Makes the databases; `open` opens one without the engine.
  init(
    _ scale: Scale, in workspace: Workspace, against open: @escaping (URL) throws -> Other
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

  // MARK: - Plans

  var records: Int { scale.records }
  var filled: Int { scale.filled }

  /// Random visits to all records.
  var anyRecord: [UInt32] { Plan.random(scale.visited, from: records) }

  /// Random visits to the few records that stay in LevelDB's block cache.
  private var hotRecords: [UInt32] {
    Plan.random(scale.visited, from: Int(Double(records) * Scale.hotShare))
  }

  // MARK: - Contests

  /// Puts in key order into an empty directory.
  var fillseq: Contest {
    fill("fillseq", Plan(records: filled, order: Plan.sequence(filled)), putEach)
  }

  /// Random gets among all records.
  var readrandom: Contest {
    read("readrandom", Plan(records: records, order: anyRecord), getEach)
  }

  /// Random gets among few records.
  var readhot: Contest { read("readhot", Plan(records: records, order: hotRecords), getEach) }

  var putEach: Work { Work(a: { try $0.putEach($1) }, b: { try $0.putEach($1) }) }
  private var getEach: Work { Work(a: { try $0.getEach($1) }, b: { try $0.getEach($1) }) }

  func fill(_ name: String, _ plan: Plan, _ work: Work) -> Contest {
    write(name, plan, work) { side in
      try workspace.remove(side)
      return workspace.directory(side)
    }
  }

  func overwrite(_ name: String, _ plan: Plan) -> Contest {
    write(name, plan, putEach) { side in try workspace.copy(of: original, as: side) }
  }

  private func write(
    _ name: String, _ plan: Plan, _ work: Work, in directory: @escaping (String) throws -> URL
  ) -> Contest {
    let last = plan.visitingLast(100)
    func run<S: Side>(_ side: S, _ work: (S, Plan) throws -> Int) throws -> Duration {
      let time = try timed(expecting: plan.order.count) { try work(side, plan) }
      guard try side.getEach(last) == last.order.count else {
        throw WrongResults(description: "\(name) did not write every record")
      }
      try side.close()
      return time
    }
    return Contest(
      name: name, operations: plan.order.count, goal: goalRatio,
      a: { try run(EngineSide(at: directory("write-a")), work.a) },
      b: { try run(open(directory("write-b")), work.b) })
  }

  func read(_ name: String, _ plan: Plan, margin: Double? = nil, _ work: Work) -> Contest {
    let count = plan.order.count
    return Contest(
      name: name, operations: count, goal: goalRatio, goalMargin: margin,
      a: { try timed(expecting: count) { try work.a(a, plan) } },
      b: { try timed(expecting: count) { try work.b(b, plan) } })
  }
}
