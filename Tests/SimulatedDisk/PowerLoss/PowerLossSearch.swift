/// Crashes a script at every change of its disk, in every way, and looks at what is then there.
///
/// The store must be as it was at a moment that is allowed. Some of the openings after a crash are
/// crashed themselves at every change: the next opening must find what the first one found.
package struct PowerLossSearch<State: Hashable & Sendable> {
  /// What a store is like that was opened.
  package struct Opened {
    package let state: State
    /// Whether opening has set something aside.
    package let hasSetAside: Bool

    package init(state: State, hasSetAside: Bool) {
      (self.state, self.hasSetAside) = (state, hasSetAside)
    }
  }

  /// What opening a disk came to.
  private enum Finding {
    /// The moments that the store may be in; none when it is like no moment.
    case moments([Int])
    case failure(String)
  }

  package private(set) var counts = PowerLossCounts()
  private let disk: SimulatedDisk
  private let timeline: Timeline<State>
  private let script: String
  private let open: (SimulatedDisk) throws -> Opened
  // Disks that hold the same are opened once.
  private var findings: [UInt64: Finding] = [:]

  /// Prepares a search.
  ///
  /// - Parameters:
  ///   - disk: What the script has left, with its journal.
  ///   - timeline: The states that the script went through.
  ///   - script: What to call it.
  ///   - open: Opens the store on a disk, which changes the disk, looks at it, and closes it. It
  ///     throws when something is not as it should be.
  package init(
    of disk: SimulatedDisk, _ timeline: Timeline<State>, script: String,
    open: @escaping (SimulatedDisk) throws -> Opened
  ) {
    (self.disk, self.timeline, self.script, self.open) = (disk, timeline, script, open)
  }

  /// Looks at every crash, up to a few violations.
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

  /// Opens the store on a disk, unless one that holds the same was opened before.
  private mutating func finding(of image: SimulatedDisk, isFirst: Bool) -> Finding {
    let hash = image.hash
    if let known = findings[hash] { return known }
    let finding: Finding
    do {
      let opened = try open(image)
      if isFirst, opened.hasSetAside { counts.setAsides += 1 }
      let numbers = timeline.moments(of: opened.state)
      // Few openings are crashed, and more of those that change more.
      let isSample = isFirst && hash % (opened.hasSetAside ? 256 : 2048) == 0
      let failure = isSample ? crash(openingOf: image, which: numbers) : nil
      finding = failure.map { .failure($0) } ?? .moments(numbers)
    } catch {
      finding = .failure("\(error)")
    }
    findings[hash] = finding
    return finding
  }

  /// Crashes an opening, and says what is wrong with what the next one finds.
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
  /// The ways to crash here.
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
    return models
  }
}
