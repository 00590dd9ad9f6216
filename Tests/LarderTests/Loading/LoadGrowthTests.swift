import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Many keys in a call, or remembered as absent, cost what they must.
@Suite(.timeLimit(.minutes(10))) struct LoadGrowthTests {
  @Test("The time to ask for several keys grows with their number, and not with its square.")
  func askingForKeys() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let loads = numbers.core.loads
    func ask(_ count: Int) throws -> Double {
      try threadTime {
        let keys = try (0..<count).map {
          try numbers.core.recordKey(of: "\(UUID()) \($0)", id: numbers.core.id)
        }
        let call = LoadCall(
          keys: keys, loading: Loading(), store: fixture.store, core: numbers.core
        ) { needs in needs.map { _ in .absent } }
        _ = loads.refresh(call)
      }
    }
    let (few, many) = (try ask(500), try ask(8000))
    // 16 times as many keys: the square would be 256, and it is 18.
    #expect(many < 40 * few, "\(few) s and \(many) s")
    await eventually("the loads have ended") { fixture.store.context.loads.isEmpty }
  }

  @Test("Waiters join, leave and get values in a time that grows with their number.")
  func waiters() throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let core = try fixture.numbers().core
    let moment = LoadMachine.Moment(
      date: fixture.clock.now(), now: .zero, isChanged: \.isRevoked, judge: { _, _ in .unusable })
    func run(_ count: Int, keys: Int, isLeaving: Bool) -> Double {
      threadTime {
        var machine = LoadMachine()
        for id in 0..<count {
          let key = RecordKey(cacheID: 1, userKey: withUnsafeBytes(of: id % keys) { Array($0) })
          let call = LoadCall(
            keys: [key], loading: Loading(), store: fixture.store, core: core
          ) { _ in [] }
          _ = machine.handle(
            .asked(LoadMachine.Ask(call: call, waiter: id, flight: -1)), moment)
        }
        let found = (0..<keys).map { _ in LoadFound() }
        _ = machine.handle(.found(flight: -1, found), moment)
        if isLeaving {
          for id in 0..<count {
            _ = machine.handle(.left(waiter: id, CancellationError()), moment)
          }
        }
        _ = machine.handle(.replied(flight: -1, (0..<keys).map { _ in .value(1) }), moment)
        _ = machine.handle(.saved(flight: -1, (0..<keys).map { _ in .done }), moment)
      }
    }
    for isLeaving in [false, true] {
      for keys in [1, Int.max] {
        let (few, many) = (500, 8000)
        let times = [few, many].map { run($0, keys: min(keys, $0), isLeaving: isLeaving) }
        #expect(times[1] < 40 * times[0], "\(times), leaving: \(isLeaving), keys: \(keys)")
      }
    }
  }

  @Test("10,000 keys that are remembered as absent do not slow other changes.")
  func absentKeys() throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let (numbers, others) = (try fixture.numbers(), try fixture.numbers("others"))
    let register = fixture.store.context.loads
    let changes: [() throws -> Void] = [
      { try fixture.store.invalidate(tag: "t") },
      { try others.remove(in: .all) },
      { try numbers.remove(in: .from("x", upTo: "y")) },
      { try others.save(1, for: "a") },
    ]
    func times() throws -> [Double] {
      try changes.map { change in try threadTime { for _ in 0..<20 { try change() } } }
    }
    let key = try numbers.core.recordKey(of: "one", id: numbers.core.id)
    #expect(register.add(key, WriteTicket(), of: numbers.core.loads))
    let before = try times()
    for number in 0..<10_000 {
      let key = try numbers.core.recordKey(of: "\(number)", id: numbers.core.id)
      let ticket = WriteTicket()
      #expect(register.add(key, ticket, of: numbers.core.loads))
      register.remember(key, ticket)
    }
    // The first range puts the keys in order.
    try numbers.remove(in: .from("x", upTo: "y"))
    let after = try times()
    for (before, after) in zip(before, after) {
      #expect(after < 10 * before, "\(before) s and \(after) s")
    }
  }

  @Test("A removed range revokes the tickets of its keys, and no others, in any history.")
  func ranges() throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    let loads = try fixture.numbers().core.loads
    let (register, seed) = (LoadRegister(), testSeed())
    var random = SplitMix64(seed: seed)
    var model: [RecordKey: WriteTicket] = [:]
    var revoked: Set<WriteTicket> = []
    for _ in 0..<2000 * proofFactor {
      let key = RecordKey(cacheID: 1 + UInt64(random.below(2)), userKey: [UInt8(random.below(200))])
      switch random.below(8) {
      case 0...3:
        let ticket = WriteTicket()
        if let old = model[key] { register.remove(key, old) }
        #expect(register.add(key, ticket, of: loads))
        model[key] = ticket
      case 4: if let ticket = model[key] { register.remember(key, ticket) }
      case 5...6:
        if let ticket = model.removeValue(forKey: key) { register.remove(key, ticket) }
      default:
        let upper = key.bytes.dropLast() + [UInt8(101 + random.below(155))]
        let range = EngineRange(from: key.bytes, upTo: Array(upper))
        register.noteRemoval(of: range, fromCache: key.cacheID)
        for (other, ticket) in model where other.cacheID == key.cacheID {
          if other.userKey[other.userKey.startIndex] >= key.userKey[key.userKey.startIndex],
            other.bytes.lexicographicallyPrecedes(upper)
          {
            revoked.insert(ticket)
          }
        }
      }
      for (key, ticket) in model {
        try #require(ticket.isRevoked == revoked.contains(ticket), "seed \(seed): \(key.bytes)")
      }
    }
  }
}
