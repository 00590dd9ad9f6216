import Foundation

/// Opening an empty directory, a full one, and one left by a killed writer.
struct OpeningSuite {
  /// Nanoseconds that Larder may take longer, per opening or per MB of log.
  private static let margin = 1e6

  private let workspace: Workspace
  private let full: (name: String, directory: URL)
  private let killed: URL
  private let logMegabytes: Int

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    self.workspace = workspace
    full = ("open \(scale.records) records", workspace.directory("full"))
    let filler = try EngineSide(at: full.directory)
    _ = try filler.putBatches(
      Plan(records: scale.records, order: Plan.sequence(scale.records)), of: 1000)
    try filler.compact()
    try filler.close()

    let live = workspace.directory("live")
    let engine = try EngineSide(at: live)
    // Fits into LevelDB's write buffer, so that all of it is in one log.
    let count = min(scale.filled, 20_000)
    _ = try engine.putEach(Plan(records: count, order: Plan.sequence(count)))
    killed = try workspace.copy(of: live, as: "killed")
    try engine.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: killed.path())
    var bytes: UInt64 = 0
    for name in names where name.hasSuffix(".log") {
      let path = killed.appending(path: name).path()
      bytes += try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 ?? 0
    }
    logMegabytes = max(1, Int(bytes >> 20))
  }

  var contests: [Contest] {
    [
      opening("open an empty directory") { name in
        try workspace.remove(name)
        return workspace.directory(name)
      },
      // Every run closes the database cleanly, so one copy serves all runs.
      opening(full.name) { try workspace.copyOnce(of: full.directory, as: "full-" + $0) },
      opening("open after kill, by MB of log", operations: logMegabytes) {
        try workspace.copy(of: killed, as: $0)
      },
    ]
  }

  private func opening(
    _ name: String, operations: Int = 1, _ directory: @escaping (String) throws -> URL
  ) -> Contest {
    func time(_ name: String, _ open: (URL) throws -> any Side) throws -> Duration {
      let directory = try directory(name)
      var side: (any Side)?
      let time = try timed(expecting: 1) {
        side = try open(directory)
        return 1
      }
      try side?.close()
      return time
    }
    return Contest(
      name: name, operations: operations, goal: 1, goalMargin: Self.margin,
      a: { try time("open-a") { try EngineSide(at: $0) } },
      b: { try time("open-b") { RawSide(at: $0) } })
  }
}
