import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// One load for all machines: what those do that ask for a key while another one loads it.
@Suite(.timeLimit(.minutes(10)))
struct LoadClaimTests {
  private struct Failure: Error {}

  private static let wait = Duration.seconds(3)
  private let clock = ManualClock()
  private let server: InMemoryServer
  /// The loads of all machines: how many have begun, and the reply they wait for.
  private let source = Watched((begun: 0, reply: Result<String, Failure>?.none))

  init() { server = InMemoryServer(clock: clock) }

  private struct Machine {
    let store: Store
    let tier: SharedTier
    let cache: Cache<String, String>
    let shared: SharedCache<String, String>
    let timer: HandLoadTimer
  }

  private func machine(wait: Duration? = wait) throws -> Machine {
    let timer = HandLoadTimer()
    var options = Store.Options()
    (options.clock, options.loadTimer) = (clock, timer.schedule)
    let store = Store.inMemory(options: options)
    var tierOptions = SharedTier.Options()
    tierOptions.loadWait = wait
    let tier = try SharedTier(server, namespace: "test", tierOptions)
    let cache = try store.cache("texts", of: String.self)
    return Machine(
      store: store, tier: tier, cache: cache, shared: try SharedCache(cache, in: tier),
      timer: timer)
  }

  /// Loads as soon as the source has a reply.
  private func load() async throws -> String {
    source.change { $0.begun += 1 }
    await source.wait { $0.reply != nil }
    try Task.checkCancellation()
    return try source.read { $0.reply ?? .failure(Failure()) }.get()
  }

  private var begun: Int { source.read { $0.begun } }

  private func reply(_ reply: Result<String, Failure>) { source.change { $0.reply = reply } }

  private func value(on machine: Machine, _ key: String = "k") -> Task<String, any Error> {
    Task { try await machine.shared.value(for: key) { try await load() } }
  }

  /// Begins a load on the first machine, for which the others then wait.
  private func holdingLoad(
    _ machines: [Machine]
  ) async -> (holder: Task<String, any Error>, others: [Task<String, any Error>]) {
    let holder = value(on: machines[0])
    await source.wait { $0.begun == 1 }
    let others = machines.dropFirst().map { value(on: $0) }
    for machine in machines.dropFirst() { await machine.timer.wait(untilRunning: 1) }
    return (holder, others)
  }

  @Test("Machines that ask at the same time get the value of one load, and it is confirmed.")
  func once() async throws {
    let machines = try (0..<5).map { _ in try machine() }
    let (holder, others) = await holdingLoad(machines)
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
    for other in others { #expect(try await other.valueUnlessCancelled == "text") }
    #expect(begun == 1)
    for machine in machines.dropFirst() {
      #expect(machine.timer.started == [Self.wait] && machine.timer.running.isEmpty)
      #expect(machine.tier.statistics.awaitedLoads == 1)
      #expect(try await machine.shared.entry(for: "k")?.isConfirmed == true)
    }
  }

  @Test("When the load fails, the others load at once, without waiting for one another.")
  func failure() async throws {
    let (holder, others) = await holdingLoad(try (0..<4).map { _ in try machine() })
    reply(.failure(Failure()))
    await #expect(throws: Failure.self) { try await holder.valueUnlessCancelled }
    for other in others {
      await #expect(throws: Failure.self) { try await other.valueUnlessCancelled }
    }
    #expect(begun == 4)
  }

  @Test("When the source has no value, the others ask it themselves.")
  func absent() async throws {
    let machines = try [machine(), machine()]
    let asked = Watched(0)
    let entries = machines.map { machine in
      Task {
        try await machine.shared.entry(for: "k") { _ in
          asked.change { $0 += 1 }
          await source.wait { $0.reply != nil }
          return .absent
        }
      }
    }
    // Whichever is first.
    await asked.wait { $0 == 1 }
    while machines.allSatisfy({ $0.timer.running.isEmpty }) { await Task.yield() }
    reply(.success(""))
    for entry in entries { #expect(try await entry.valueUnlessCancelled == nil) }
    #expect(asked.read { $0 } == 2)
  }

  @Test("A machine that is gone during its load delays the others by the longest wait.")
  func gone() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    machines[0].tier.close()
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
    #expect(begun == 1)
    await machines[1].timer.fire(Self.wait)
    #expect(try await others[0].valueUnlessCancelled == "text")
    #expect(begun == 2)
  }

  @Test("A lock that its machine does not give back ends by itself.")
  func lockEnds() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    others[0].cancel()
    // Else the next call joins its flight.
    await #expect(throws: CancellationError.self) { try await others[0].valueUnlessCancelled }
    machines[0].tier.close()
    clock.advance(by: Self.wait)
    let late = value(on: machines[1])
    await source.wait { $0.begun == 2 }
    reply(.success("text"))
    for task in [holder, late] { #expect(try await task.valueUnlessCancelled == "text") }
  }

  @Test("When the server cannot be asked any more, those that wait load.")
  func unreachable() async throws {
    let (holder, others) = await holdingLoad(try [machine(), machine()])
    server.isReachable = false
    await source.wait { $0.begun == 2 }
    reply(.success("text"))
    for task in [holder] + others { #expect(try await task.valueUnlessCancelled == "text") }
  }

  @Test("A machine that waits gets the value that another one saves meanwhile.")
  func saved() async throws {
    let (holder, others) = await holdingLoad(try [machine(), machine()])
    #expect(try await machine().shared.save("saved", for: "k") == .shared)
    #expect(try await others[0].valueUnlessCancelled == "saved")
    #expect(begun == 1)
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
  }

  @Test("If the key is removed meanwhile, the machine that waits loads it at once.")
  func removed() async throws {
    let machines = try [machine(), machine(), machine()]
    let (holder, others) = await holdingLoad(Array(machines.prefix(2)))
    #expect(try await machines[2].shared.remove("k") == .shared)
    await source.wait { $0.begun == 2 }
    reply(.success("text"))
    for task in [holder] + others { #expect(try await task.valueUnlessCancelled == "text") }
    // The second load began after the removal.
    #expect(try await machines[2].shared.value(for: "k") == "text")
  }

  @Test("A caller that leaves ends its wait, and nothing of it stays.")
  func cancelled() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    others[0].cancel()
    await #expect(throws: CancellationError.self) { try await others[0].valueUnlessCancelled }
    await machines[1].timer.wait(untilRunning: 0)
    try await machines[1].store.waitUntilIdle()
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
    #expect(begun == 1)
  }

  @Test("When the callers of the load leave, the others load at once.")
  func abandoned() async throws {
    let (holder, others) = await holdingLoad(try [machine(), machine()])
    holder.cancel()
    await source.wait { $0.begun == 2 }
    reply(.success("text"))
    #expect(try await others[0].valueUnlessCancelled == "text")
    await #expect(throws: CancellationError.self) { try await holder.valueUnlessCancelled }
  }

  @Test("The end of a lock is no change of an entry.")
  func counted() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    reply(.failure(Failure()))
    for task in [holder] + others {
      await #expect(throws: Failure.self) { try await task.valueUnlessCancelled }
    }
    #expect(machines.allSatisfy { $0.tier.statistics.invalidations == 0 })
  }

  @Test("A store that is closed ends the wait.")
  func closed() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    try machines[1].store.close()
    let error = await #expect(throws: StoreError.self) { try await others[0].valueUnlessCancelled }
    guard case .closed? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    await machines[1].timer.wait(untilRunning: 0)
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
  }

  @Test("A call whose store is suspended during the wait gets the value, and finds it after that.")
  func suspended() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    try machines[1].store.suspend()
    reply(.success("text"))
    for task in [holder] + others { #expect(try await task.valueUnlessCancelled == "text") }
    try machines[1].store.resume()
    #expect(try await machines[1].shared.entry(for: "k")?.isConfirmed == true)
    #expect(begun == 1)
  }

  @Test("A call whose cache is dropped during the wait gets the value.")
  func dropped() async throws {
    let machines = try [machine(), machine()]
    let (holder, others) = await holdingLoad(machines)
    #expect(try machines[1].store.drop(cache: "texts"))
    reply(.success("text"))
    for task in [holder] + others { #expect(try await task.valueUnlessCancelled == "text") }
    #expect(begun == 1)
  }

  enum Unclaimed: CaseIterable { case byDefault, severalKeys, nested, refresh }

  @Test("These do not wait for another machine.", arguments: Unclaimed.allCases)
  func unclaimed(kind: Unclaimed) async throws {
    let holder = value(on: try machine())
    await source.wait { $0.begun == 1 }
    let machine = try machine(wait: kind == .byDefault ? nil : Self.wait)
    switch kind {
    case .byDefault:
      #expect(try await machine.shared.value(for: "k") { "own" } == "own")
    case .severalKeys:
      let values = try await machine.shared.values(for: ["k", "l"]) { keys in
        keys.map { .value("own \($0)") }
      }
      #expect(values == ["own k", "own l"])
    case .nested:
      let outer = try await machine.shared.value(for: "outer") {
        try await machine.shared.value(for: "k") { "own" }
      }
      #expect(outer == "own")
    case .refresh:
      #expect(try await machine.cache.refresh("k") { _ in .value("own") }?.value == "own")
    }
    #expect(machine.tier.statistics.awaitedLoads == 0)
    reply(.success("text"))
    #expect(try await holder.valueUnlessCancelled == "text")
  }

  @Test("Keys that are loaded, or were given up, can be loaded again without a wait.")
  func released() async throws {
    let machines = try [machine(), machine()]
    reply(.failure(Failure()))
    for machine in machines + machines {
      await #expect(throws: Failure.self) { try await value(on: machine).valueUnlessCancelled }
      try await machine.store.waitUntilIdle()
    }
    #expect(begun == 4)
    #expect(machines.allSatisfy { $0.tier.statistics.awaitedLoads == 0 })
  }

  @Test("A longest wait outside its limits is refused.", arguments: [-1, 0, 60_001])
  func limits(milliseconds: Int) {
    #expect(throws: StoreError.self) { try machine(wait: .milliseconds(milliseconds)) }
  }
}
