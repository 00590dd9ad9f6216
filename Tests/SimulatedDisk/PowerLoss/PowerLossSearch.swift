import LarderTestSupport

/// Crashes a script at every change of its disk with every crash model, and checks the store.
///
/// The store must be in a state that is allowed at that moment. Some of the openings after a crash
/// are crashed themselves at every change; the next opening must find the same state as the first.
package struct PowerLossSearch<State: Hashable & Sendable> {
  /// The state of an opened store.
  package struct Opened {
    package let state: State
    /// Whether the opening has set something aside.
    package let hasSetAside: Bool

    package init(state: State, hasSetAside: Bool) {
      (self.state, self.hasSetAside) = (state, hasSetAside)
    }
  }

  /// The result of opening a disk.
  private enum Finding {
    /// The moments at which the script's store had the same state; empty if there are none.
    case moments([Int])
    case failure(String)
  }

  package private(set) var counts = PowerLossCounts()
  private let disk: SimulatedDisk
  private let timeline: Timeline<State>
  private let script: String
  private let open: (SimulatedDisk) throws -> Opened
  // Disks with the same contents are opened once.
  private var findings: [UInt64: Finding] = [:]

  /// Prepares a search.
  ///
  /// - Parameters:
  ///   - disk: The disk after the script, with its journal.
  ///   - timeline: The states that the script went through.
  ///   - script: The script's name for messages.
  ///   - open: Opens the store on a disk, which changes the disk, reads the store and closes it. It
  ///     throws if the store is invalid.
  package init(
    of disk: SimulatedDisk, _ timeline: Timeline<State>, script: String,
    open: @escaping (SimulatedDisk) throws -> Opened
  ) {
    (self.disk, self.timeline, self.script, self.open) = (disk, timeline, script, open)
  }

  /// Checks every crash, until there are a few violations.
  package mutating func run() {
    let replay = disk.replay()
    while let step = replay.step(), counts.violations.count < 5 {
      for model in replay.models { check(replay, step, model) }
    }
    counts.scripts = 1
    counts.images = findings.count
  }

  private mutating func check(_ replay: Replay, _ step: Replay.Step, _ model: CrashModel) {
    counts.states += 1
    let image = replay.image(model)
    let allowed = timeline.allowed(at: replay.position, after: model)
    let found: String
    switch finding(of: image, isFirst: true) {
    case .moments(let numbers) where numbers.contains(where: allowed.contains): return
    case .moments(let numbers): found = "the moments \(numbers)"
    case .failure(let message): found = message
    }
    counts.violations.append(
      """
      \(script), after \(replay.position) changes, the last \(step), model \(model): expected one \
      of the moments \(allowed), found \(found); files \(replay.image(model).names)
      """)
  }

  /// Opens the store on a disk, unless a disk with the same contents was opened before.
  private mutating func finding(of image: SimulatedDisk, isFirst: Bool) -> Finding {
    let hash = image.hash
    if let known = findings[hash] { return known }
    let finding: Finding
    do {
      let opened = try open(image)
      if isFirst, opened.hasSetAside { counts.setAsides += 1 }
      let numbers = timeline.moments(of: opened.state)
      // Few openings are crashed, but more of those that set something aside, and in short runs.
      let oneOf: UInt64 = (opened.hasSetAside ? 256 : 2048) / (isProof ? 1 : 4)
      let isSample = isFirst && hash % oneOf == 0
      let failure = isSample ? crash(openingOf: image, which: numbers) : nil
      finding = failure.map { .failure($0) } ?? .moments(numbers)
    } catch {
      finding = .failure("\(error)")
    }
    findings[hash] = finding
    return finding
  }

  /// Crashes an opening at every change, and returns a message if a later opening differs.
  private mutating func crash(openingOf disk: SimulatedDisk, which numbers: [Int]) -> String? {
    counts.openings += 1
    let replay = disk.replay()
    while let step = replay.step() {
      for model in replay.models {
        counts.states += 1
        counts.openingStates += 1
        let found: String
        switch finding(of: replay.image(model), isFirst: false) {
        case .moments(numbers): continue
        case .moments(let others): found = "the moments \(others)"
        case .failure(let message): found = message
        }
        return """
          in opening it, a crash after \(replay.position) changes, the last \(step), model \
          \(model): instead of the moments \(numbers) \(found); \
          files \(replay.image(model).names)
          """
      }
    }
    return nil
  }
}

extension Replay {
  /// The crash models to try at this position: in the proof all, otherwise a third, in turn.
  fileprivate var models: [CrashModel] {
    let pending = pendingNames
    let kept = Set([0, 1, pending / 2, pending - 1].filter { $0 >= 0 && $0 < pending })
    let seed = UInt64(position) << 8
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
    guard !isProof else { return models }
    return models.enumerated().filter { ($0.offset + position) % 3 == 0 }.map(\.element)
  }
}
