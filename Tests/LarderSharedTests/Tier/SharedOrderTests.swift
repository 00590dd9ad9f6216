import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// Two machines and one key, in each order in which a server can execute their commands.
///
/// Replies and pushes arrive at once; ``SharedRaceTests`` delays them.
@Suite(.timeLimit(.minutes(20)))
struct SharedOrderTests {
  enum Call: String, CaseIterable {
    case read, load, save, remove
  }

  enum Start: String, CaseIterable {
    /// No machine has the value, nor has the server.
    case nothing
    /// Both have it in memory.
    case inMemory
    /// The first has it on disk, and the server has another.
    case outdated
  }

  /// What a call has returned.
  private struct Result {
    let call: Call
    let machine: Int
    let start: Int
    let end: Int
    /// The last time before the call at which the machine had heard of everything.
    let upToDate: Int
    let entry: LoadedEntry<String>?
    /// When its closure was called; nil if it was not.
    let loadedAt: Int?
  }

  @Test(
    "Whatever the order, a confirmed value is the server's, and no load replaces a later save.",
    arguments: Start.allCases)
  func orders(start: Start) async throws {
    let machines = try Machines()
    var runs = 0
    for first in Call.allCases {
      for second in Call.allCases {
        for other in Call.allCases {
          var choices: [Int]? = []
          while let next = choices {
            runs += 1
            let name = "\(start) \(first) \(second) \(other) \(runs)"
            let scripts = [[first, second], [other, .read]]
            choices = following(try await run(scripts, start, next, machines, name))
          }
        }
      }
    }
    #expect(runs > 100)
    try machines.close()
  }

  /// The choices of the next run; nil if all were made.
  private func following(_ steps: [(count: Int, taken: Int)]) -> [Int]? {
    guard let last = steps.lastIndex(where: { $0.taken + 1 < $0.count }) else { return nil }
    return steps[..<last].map(\.taken) + [steps[last].taken + 1]
  }

  private func run(
    _ scripts: [[Call]], _ start: Start, _ choices: [Int], _ machines: Machines, _ name: String
  ) async throws -> [(count: Int, taken: Int)] {
    let network = machines.network
    network.setAutomatic(true)
    try await prepare(name, start, machines)
    let key = Array("ld1:test:texts:\(name)".utf8)
    network.follow(key)
    network.setAutomatic(false)
    let shared = machines.all.map(\.shared)
    for number in scripts.indices { network.begin(number) }
    async let results = withTaskGroup(of: [Result].self) { group in
      for (number, script) in scripts.enumerated() {
        group.addTask { await Self.play(script, name, shared[number], number, network) }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    var steps: [(count: Int, taken: Int)] = []
    while await !network.waitUntilQuiet() {
      let index = steps.count
      guard let step = network.stepOfServer({ _ in index < choices.count ? choices[index] : 0 })
      else {
        Issue.record("a machine waits for nothing: \(name)")
        break
      }
      steps.append(step)
    }
    for result in await results { check(result, network, "\(name) \(steps.map(\.taken))") }
    network.setAutomatic(true)
    var values: [String?] = []
    for machine in shared { values.append(try await machine.found(name)?.value) }
    #expect(values[0] == values[1], "\(name) \(steps.map(\.taken))")
    return steps
  }

  private func prepare(_ name: String, _ start: Start, _ machines: Machines) async throws {
    guard start != .nothing else { return }
    try await machines[0].save("<old>", for: name)
    if start == .inMemory {
      for number in 0..<2 { _ = try await machines[number].found(name) }
    } else {
      try await machines[1].save("<newer>", for: name)
      machines.all[1].store.releaseMemory()
    }
  }

  private static func play(
    _ script: [Call], _ key: String, _ shared: SharedCache<String, String>, _ number: Int,
    _ network: SimulatedNetwork
  ) async -> [Result] {
    var results: [Result] = []
    var upToDate = network.time
    for (index, call) in script.enumerated() {
      if network.isUpToDate(number) { upToDate = network.time }
      let (start, value) = (network.time, "<\(number).\(index)>")
      let loadedAt = Watched<Int?>(nil)
      var entry: LoadedEntry<String>?
      do {
        switch call {
        case .read: entry = try await shared.found(key)
        case .load:
          entry = try await shared.entry(for: key) { _ in
            loadedAt.change { $0 = network.time }
            return .value(value)
          }
        case .save: try await shared.save(value, for: key)
        case .remove: try await shared.remove(key)
        }
      } catch {
        Issue.record(error)
      }
      results.append(
        Result(
          call: call, machine: number, start: start, end: network.time, upToDate: upToDate,
          entry: entry, loadedAt: loadedAt.read { $0 }))
    }
    network.finish(number)
    return results
  }

  private func check(_ result: Result, _ network: SimulatedNetwork, _ comment: String) {
    guard let entry = result.entry, entry.isConfirmed else { return }
    let text = Array(entry.value.utf8)
    func has(_ value: [UInt8]?) -> Bool {
      value.map { $0.firstRange(of: text) != nil } ?? false
    }
    // A machine that has heard of everything up to a time knows of no older value.
    #expect(
      network.values(from: result.upToDate, to: result.end).contains(where: has),
      "\(result), \(comment)")
    // Between the call of the closure and the write of its value, nothing else was written.
    guard result.call == .load, let loadedAt = result.loadedAt else { return }
    let values = network.values(from: loadedAt, to: result.end)
    if let place = values.firstIndex(where: has) { #expect(place <= 1, "\(result), \(comment)") }
  }
}
