import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

/// Machines that load, save, remove and read the same keys at the same time, while the network
/// delivers in any order.
@Suite(.timeLimit(.minutes(10)))
struct SharedRaceTests {
  private static let keys = ["a", "b"]

  @Test(
    "No machine is left with a value in memory that is not the server's.",
    arguments: [false, true], [Duration?.none, .milliseconds(1)])
  func races(losesConnections: Bool, loadWait: Duration?) async throws {
    let seed = testSeed()
    let rounds = 20
    var options = SharedTier.Options()
    options.loadWait = loadWait
    for round in 0..<rounds {
      var random = SplitMix64(seed: seed &+ UInt64(round))
      let machines = try Machines(3, options)
      let seeds = (0..<6).map { _ in random.next() }
      machines.network.setAutomatic(false)
      let (shared, network) = (machines.all.map(\.shared), machines.network)
      let isDone = Flag()
      async let delivered: Void = Self.deliver(network, random, losesConnections, until: isDone)
      await withTaskGroup { group in
        for (task, seed) in seeds.enumerated() {
          group.addTask { await Self.work(shared[task % shared.count], seed, task) }
        }
      }
      isDone.raise()
      await delivered
      network.setAutomatic(true)
      // What was saved or removed without the server is settled.
      for (number, machine) in machines.all.enumerated() {
        network.disconnect(number)
        network.connect(number)
        try await machine.store.waitUntilIdle()
      }
      try await Self.expectAgreement(of: machines, "seed \(seed), round \(round)")
      try machines.close()
    }
  }

  /// Lets messages arrive, and connections be lost and made again.
  private static func deliver(
    _ network: SimulatedNetwork, _ random: SplitMix64, _ losesConnections: Bool, until isDone: Flag
  ) async {
    var random = random
    while !isDone.isRaised {
      if losesConnections, random.below(200) == 0 {
        let number = random.below(3)
        network.disconnect(number)
        network.connect(number)
      }
      if !network.step(&random) { await Task.yield() }
    }
  }

  private static func work(
    _ shared: SharedCache<String, String>, _ seed: UInt64, _ task: Int
  ) async {
    var random = SplitMix64(seed: seed)
    for step in 0..<25 {
      let (key, value) = (keys[random.below(keys.count)], "\(task).\(step)")
      do {
        switch random.below(8) {
        case 0: try await shared.save(value, for: key)
        case 1: try await shared.remove(key)
        case 2: _ = try await shared.entry(for: key) { _ in .absent }
        case 3...4: _ = try await shared.value(for: key) { value }
        case 5: _ = try await shared.foundByLoad(key)
        default: _ = try await shared.found(key)
        }
      } catch {
        Issue.record(error)
      }
    }
  }

  /// Expects that each machine finds what the server has, and that no value in memory is another.
  private static func expectAgreement(of machines: Machines, _ comment: Comment) async throws {
    for key in keys {
      var values: [String?] = []
      for machine in machines.all {
        let entry = try await machine.shared.found(key)
        #expect(entry?.isConfirmed != false, comment)
        values.append(entry?.value)
      }
      #expect(Set(values).count == 1, "\(key): \(values), \(comment)")
      // What the machines have found may have been in their memory.
      let reply = machines.network.execute("GET", .text("ld1:test:texts:\(key)"))
      guard case .string(let bytes) = reply else {
        #expect(values[0] == nil, comment)
        continue
      }
      let record = try SharedRecord(bytes, under: Array("ld1:test:texts:\(key)".utf8))
      #expect((record.record == nil) == (values[0] == nil), comment)
      for machine in machines.all where values[0] != nil {
        // A store that has nothing in memory asks, and finds the same.
        machine.store.releaseMemory()
        #expect(try await machine.shared.found(key)?.value == values[0], comment)
      }
    }
  }
}
