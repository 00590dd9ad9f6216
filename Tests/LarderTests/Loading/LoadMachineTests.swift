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
  ]

  @Test("Each order of six events keeps the specification.", arguments: settings)
  func explore(setting: Setting) {
    var loading = Loading()
    setting.set(&loading)
    var exploration = Exploration()
    for disk in setting.disks {
      exploration.explore(LoadWorld(loading, disk: disk), steps: isProof ? 8 : 6)
    }
    #expect(exploration.faults.prefix(5) == [], "\(exploration.count) sequences")
    #expect(exploration.count > 5000, "\(exploration.count) sequences")
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
        if next.faults.isEmpty {
          explore(next, steps: steps - 1)
        } else {
          let names = path.map(\.rawValue).joined(separator: ", ")
          faults.append("\(names): \(next.faults.joined(separator: "; "))")
        }
        path.removeLast()
      }
    }
  }
}
