import LarderTestSupport
import Testing

@testable import Larder

/// The machine keeps the specification of ``LoadWorld`` in every order of events.
@Suite struct LoadMachineTests {
  struct Setting: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let disks: [LoadWorld.Disk]
    let set: @Sendable (inout Loading) -> Void
  }

  static let settings = [
    Setting(testDescription: "plain", disks: [.missing, .fresh, .stale]) { _ in },
    Setting(testDescription: "stale while revalidate", disks: [.stale, .due]) {
      $0.staleWhileRevalidate = true
    },
    Setting(testDescription: "timeouts", disks: [.stale]) {
      $0.softTimeout = .seconds(1)
      $0.hardTimeout = .seconds(2)
    },
    Setting(testDescription: "hard timeout, one at a time", disks: [.stale, .missing]) {
      $0.staleWhileRevalidate = true
      $0.hardTimeout = .seconds(2)
      $0.concurrent = 1
    },
    Setting(testDescription: "stale if error", disks: [.stale]) {
      $0.staleIfError = .seconds(60)
      $0.retryThrottle = .seconds(30)
    },
    Setting(testDescription: "repetitions", disks: [.expired]) {
      $0.retries = Loading.Retries(extra: 1)
      $0.concurrent = 1
    },
    Setting(testDescription: "absent", disks: [.missing, .stale]) {
      $0.absentFor = .seconds(30)
    },
    Setting(testDescription: "not shared", disks: [.missing, .stale]) {
      $0.notSharedFor = .seconds(30)
      $0.absentFor = .seconds(30)
    },
  ]

  @Test(
    "Each order of four events, and random orders of sixteen, keep the specification.",
    arguments: settings)
  func explore(setting: Setting) throws {
    var loading = Loading()
    setting.set(&loading)
    let seed = testSeed()
    var (exploration, random) = (Exploration(), SplitMix64(seed: seed))
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let call = LoadCall(
      keys: [], loading: loading, store: fixture.store, core: try fixture.numbers().core
    ) { _ in [] }
    for disk in setting.disks {
      let world = LoadWorld(call, disk: disk)
      exploration.explore(world, steps: isProof ? 8 : 4)
      for _ in 0..<600 * proofFactor { exploration.walk(from: world, steps: 16, &random) }
    }
    #expect(exploration.faults.prefix(5) == [], "\(exploration.count) sequences, seed \(seed)")
    // Each step is possible in some sequence, except for those of other settings.
    #expect(exploration.taken.count >= 14, "\(exploration.taken)")
  }

  struct Exploration {
    var count = 0
    var faults: [String] = []
    var taken: Set<String> = []
    private var path: [LoadWorld.Step] = []

    mutating func explore(_ world: LoadWorld, steps: Int) {
      guard steps > 0, faults.count < 5 else {
        count += 1
        return
      }
      for step in LoadWorld.Step.allCases {
        var next = world
        guard next.take(step) else { continue }
        taken.insert(step.rawValue)
        path.append(step)
        note(next.faults, after: path)
        if next.faults.isEmpty { explore(next, steps: steps - 1) }
        path.removeLast()
      }
    }

    /// Takes random steps, up to the first fault.
    mutating func walk(from world: LoadWorld, steps: Int, _ random: inout SplitMix64) {
      guard faults.count < 5 else { return }
      var (world, path) = (world, [LoadWorld.Step]())
      while path.count < steps, world.faults.isEmpty {
        let step = LoadWorld.Step.allCases[random.below(LoadWorld.Step.allCases.count)]
        if world.take(step) { path.append(step) }
      }
      count += 1
      taken.formUnion(path.map(\.rawValue))
      note(world.faults, after: path)
    }

    private mutating func note(_ found: [String], after path: [LoadWorld.Step]) {
      guard !found.isEmpty else { return }
      let names = path.map(\.rawValue).joined(separator: ", ")
      faults.append("\(names): \(found.joined(separator: "; "))")
    }
  }
}
