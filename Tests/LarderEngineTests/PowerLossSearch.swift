import LarderEngine
import SimulatedDisk

/// Crashes a script at every change of its disk, in every way, and looks at what is then there.
struct PowerLossSearch {
  /// What opening a disk came to.
  private enum Finding {
    /// The moments that the store may be in, by their numbers; none when it is like no moment.
    case moments([Int], summary: String)
    case failure(String)
  }

  let history: PowerLossHistory
  private let script: PowerLossScript
  /// How many pairs of a place in the journal and a way to crash were looked at.
  private(set) var states = 0
  private(set) var violations: [String] = []
  // Disks that hold the same are opened once.
  private var findings: [UInt64: Finding] = [:]

  /// How many disks were opened.
  var images: Int { findings.count }

  init(of history: PowerLossHistory, script: PowerLossScript) {
    self.history = history
    self.script = script
  }

  mutating func run() throws {
    let replay = history.disk.replay()
    while let step = replay.step(), violations.count < 5 {
      for model in models(at: replay) { try check(replay, step, model) }
    }
  }

  private func models(at replay: Replay) -> [CrashModel] {
    let pending = replay.pendingNames
    let kept = Set([0, 1, pending / 2, pending - 1].filter { $0 >= 0 && $0 < pending })
    let seed = UInt64(replay.position) << 8
    var models: [CrashModel] = [
      .everything, .nothingUnsynced, .unsyncedDataLost, .oldFileTailLost,
    ]
    for count in kept.sorted() { models.append(.namesLost(keeping: count)) }
    for seed in seed..<(seed + 4) { models.append(.prefix(seed: seed)) }
    for seed in seed..<(seed + 2) {
      models.append(.tornLastAppend(seed: seed))
      models.append(.zeroedTail(seed: seed))
      models.append(.garbageTail(seed: seed))
    }
    return models
  }

  private mutating func check(
    _ replay: Replay, _ step: Replay.Step, _ model: CrashModel
  ) throws {
    states += 1
    let image = replay.image(model)
    let hash = image.hash
    let finding = findings[hash] ?? look(at: image)
    findings[hash] = finding
    let allowed = history.allowed(at: replay.position, after: model)
    let found: String
    switch finding {
    case .moments(let numbers, _) where numbers.contains(where: allowed.contains): return
    case .moments(let numbers, let summary): found = "moments \(numbers), \(summary)"
    case .failure(let message): found = message
    }
    violations.append(
      """
      \(script.name) \(script.operations), after \(replay.position) changes, the last \(step), \
      model \(model): expected one of the moments \(allowed), found \(found); \
      files \(replay.image(model).names)
      """)
  }

  /// Opens the store on a disk, which changes the disk.
  private func look(at image: SimulatedDisk) -> Finding {
    do {
      let engine = try PowerLossHistory.open(image)
      var state: StoreState = [:]
      for entry in try engine.entries() {
        if entry.value.count >= Stamp.byteCount, !isIntact(entry.value, key: entry.key) {
          return .failure("the value of \(String(decoding: entry.key, as: UTF8.self)) is damaged")
        }
        state[entry.key] = PowerLossHistory.fingerprint(of: entry.value)
      }
      try engine.close()
      let numbers = history.moments.indices.filter { history.moments[$0].state == state }
      return .moments(numbers, summary: "\(state.count) entries")
    } catch {
      return .failure("\(error)")
    }
  }
}
