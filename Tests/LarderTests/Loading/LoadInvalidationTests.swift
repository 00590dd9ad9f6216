import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// What a flight found before a change is not returned to callers that come after it.
@Suite(.timeLimit(.minutes(10))) struct LoadInvalidationTests {
  /// A number whose decoding waits for a flag, so that a test can act meanwhile.
  struct SlowNumber: Codable, Sendable, Equatable {
    struct Gate: Sendable {
      let begun = Watched(false)
      let mayEnd = Flag()
    }

    static let gates = Mutex<[Int: Gate]>([:])

    /// A number whose decoding waits, and its gate.
    static func gated() -> (number: Int, gate: Gate) {
      gates.withLock { gates in
        let (number, gate) = (1000 + gates.count, Gate())
        gates[number] = gate
        return (number, gate)
      }
    }

    var number: Int

    init(_ number: Int) { self.number = number }

    init(from decoder: any Decoder) throws {
      number = try decoder.singleValueContainer().decode(Int.self)
      guard let gate = Self.gates.withLock({ [number] in $0[number] }) else { return }
      gate.begun.change { $0 = true }
      gate.mayEnd.wait()
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
  }

  typealias Change = (name: String, after: Int?)

  static let changes: [Change] = [
    ("tag", nil), ("remove", nil), ("range", nil), ("clear", nil), ("save", 9),
  ]

  @Test(
    "A change while a call decodes an entry ends the entry for the callers that come after it.",
    arguments: changes.indices, StoreKind.allCases)
  func whileDecoding(change: Int, kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: SlowNumber.self)
    let (number, gate) = SlowNumber.gated()
    defer { gate.mayEnd.raise() }
    try numbers.save(SlowNumber(number), for: "a", tags: ["t"])
    let begun = Watched(0)
    let call = {
      Task {
        try await numbers.value(for: "a") {
          begun.change { $0 += 1 }
          return SlowNumber(3)
        }.number
      }
    }
    let first = call()
    await gate.begun.wait { $0 }
    switch Self.changes[change].name {
    case "tag": try fixture.store.invalidate(tag: "t")
    case "remove": try numbers.remove("a")
    case "range": try numbers.remove(in: .all)
    case "clear": try numbers.removeAll()
    default: try numbers.save(SlowNumber(9), for: "a")
    }
    let after = Self.changes[change].after
    let second = call()
    await eventually("the second call loads, joins, or has read") {
      begun.read { $0 } == 1 || fixture.loads().joins == 1
        || fixture.store.statistics.caches["numbers"]?.reads.fresh == 1
    }
    gate.mayEnd.raise()
    #expect(try await second.value == after ?? 3)
    // It asked before the change, and gets what is there after it.
    #expect(try await first.value == after ?? 3)
  }

  @Test("Of many calls at once for an entry on disk, one reads it.", arguments: StoreKind.allCases)
  func manyCalls(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: SlowNumber.self, memory: .none)
    let (number, gate) = SlowNumber.gated()
    defer { gate.mayEnd.raise() }
    try numbers.save(SlowNumber(number), for: "a")
    let call = { Task { try await numbers.value(for: "a") { SlowNumber(3) }.number } }
    let first = call()
    await gate.begun.wait { $0 }
    let others = (0..<100).map { _ in call() }
    await eventually("the other calls share a flight") { fixture.loads().joins == 99 }
    gate.mayEnd.raise()
    for call in [first] + others { #expect(try await call.value == number) }
    #expect(fixture.store.statistics.caches["numbers"]?.reads.fresh == 1)
  }

  @Test("A call that loads counts one read, whatever it finds.", arguments: StoreKind.allCases)
  func oneRead(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache(
      "numbers", of: Int.self, lifetime: .fresh(for: .seconds(60), thenStaleFor: .seconds(60)),
      memory: .none)
    var expected = CacheStatistics.Reads()
    func load(_ key: String, _ value: Int) async throws {
      #expect(try await numbers.value(for: key) { 7 } == value)
      #expect(fixture.store.statistics.caches["numbers"]?.reads == expected)
    }
    expected.missing = 1
    try await load("a", 7)
    try numbers.save(1, for: "a")
    expected.fresh = 1
    try await load("a", 1)
    #expect(fixture.loads().loads == 1, "what is found on disk is not loaded")
    fixture.clock.advance(by: .seconds(60))
    expected.stale = 1
    try await load("a", 7)
    fixture.clock.advance(by: .seconds(120))
    expected.expired = 1
    try await load("a", 7)
    #expect(fixture.loads().loads == 3)
  }

  @Test("A stale entry that was ended during a load is not returned when the load fails.")
  func failureAfterChange() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleIfError = .seconds(500) }
    for change in ["none", "tag", "remove", "range"] {
      try numbers.save(1, for: "a", tags: ["t"])
      fixture.clock.advance(by: .seconds(150))
      let source = Source()
      let task = Task { try await numbers.value(for: "a", load: source.load) }
      await source.begun(1)
      switch change {
      case "tag": try fixture.store.invalidate(tag: "t")
      case "remove": try numbers.remove("a")
      case "range": try numbers.remove(in: .all)
      default: break
      }
      source.reply([.failure(.init())])
      if change == "none" {
        #expect(try await task.value == 1)
      } else {
        await #expect(throws: Source.Failure.self, "\(change)") { try await task.value }
      }
    }
  }

  @Test("A stale entry that was ended during a load is not returned after the soft timeout.")
  func softTimeoutAfterChange() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.softTimeout = .seconds(3) }
    try numbers.save(1, for: "a", tags: ["t"])
    fixture.clock.advance(by: .seconds(150))
    let source = Source()
    let task = Task { try await numbers.value(for: "a", load: source.load) }
    await source.begun(1)
    try fixture.store.invalidate(tag: "t")
    await fixture.timer.fire(.seconds(3))
    source.reply(2)
    #expect(try await task.value == 2)
  }

  @Test("A load that begins while a range is removed is closed to callers that come after it.")
  func loadDuringRangeRemoval() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    let numbers = try store.cache("numbers", of: Int.self)
    for (key, isInRange) in [("a", true), ("z", false)] {
      let record = try numbers.core.recordKey(of: key, id: numbers.core.id)
      let ticket = WriteTicket()
      engine.beforeNextWrite = {
        #expect(store.context.loads.add(record, ticket, of: numbers.core.loads))
      }
      try numbers.remove(in: .upTo("b"))
      #expect(ticket.isRevoked == isInRange)
      store.context.loads.remove(record, ticket)
    }
  }
}
