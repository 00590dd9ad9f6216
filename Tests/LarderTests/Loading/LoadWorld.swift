import Foundation
import LarderTestSupport

@testable import Larder

/// One key, two callers, a disk and a source, around a ``LoadMachine``.
///
/// It executes the effects of the machine, and checks each of them against the specification of
/// loading, which it knows only by what has happened: who has asked when, what was on disk, which
/// changes and failures there were.
struct LoadWorld {
  typealias Machine = LoadMachine

  enum Step: String, CaseIterable {
    case getA, getB, refreshB, background, start, end, alone, absent, fail, saved, save, remove,
      clear
    case invalidate
    case expire, cancelA, cancelB, softA, hardB, hardFlight, late, delayIsOver, wait
  }

  /// What is on disk.
  enum Disk: CaseIterable { case missing, fresh, due, stale, expired }

  enum Work { case look, load, save, delay, queued }

  struct Flight {
    let key: UInt8
    let ticket: WriteTicket
    /// The caller that has started it; nil for a refresh in the background.
    var owner: Int?
    /// Whether nobody may join it.
    var isAlone = false
    /// The changes before it has registered.
    let changes: Int
    /// The invalidations of tags before it has registered.
    let epoch: Int
    var found = Disk.missing
    var work: Work? = .look
    var isOvertaken = false
    /// Whether a caller has come after an invalidation and started another flight.
    var isClosed = false
    var isCancelled = false
    var isEnded = false
    /// Whether its hard timeout has begun, and whether it is over.
    var isLimited = false
    var isOverdue = false
    /// Whether someone was told that an entry is being refreshed.
    var isPromised = false
    var attempts = 0
    var reply = LoadReply<any Sendable>.value(1)
  }

  struct Caller {
    let waiter: Int
    let flight: Int
    let isForced: Bool
    /// The changes before it has asked.
    let changes: Int
    var isOutOfPatience = false
  }

  struct TestFailure: Error {}

  let call: LoadCall
  private(set) var machine: Machine
  private(set) var disk: Disk
  private(set) var faults: [String] = []
  private var key: UInt8 = 0
  private var now = 0
  private var changes = 0
  private var epoch = 0
  private var lastID = 0
  private var flights: [Int: Flight] = [:]
  private var callers: [Character: Caller] = [:]
  /// The time of the last failure of each key; loads of cleared keys may still be under way.
  private var failedAt: [UInt8: Int] = [:]
  /// The time of the last reply that there is no value.
  private var absentAt: Int?
  /// The time of the last reply for one caller of each key.
  private var aloneAt: [UInt8: Int] = [:]

  /// Each caller makes `call`, for the key of the world.
  init(_ call: LoadCall, disk: Disk) {
    (self.call, self.disk) = (call, disk)
    machine = Machine(limit: call.loading.concurrent)
  }

  private var loading: Loading { call.loading }

  private mutating func fault(_ text: String) { faults.append(text) }

  private mutating func check(_ holds: Bool, _ text: @autoclosure () -> String) {
    if !holds { fault(text()) }
  }

  /// The flight of which new callers become part: the newest one that nothing has closed.
  private var openFlight: Int? {
    flights.filter { entry in
      !entry.value.isEnded && !entry.value.isCancelled && !entry.value.isOvertaken
        && !entry.value.isOverdue && !entry.value.isClosed && !entry.value.isAlone
        && entry.value.key == key
    }.keys.max()
  }

  private func flight(with work: Work) -> Int? {
    flights.filter { $0.value.work == work && !$0.value.isEnded }.keys.min()
  }

  private func waiters(of flight: Int) -> [Caller] {
    callers.values.filter { $0.flight == flight }
  }
}

// MARK: - Steps

extension LoadWorld {
  /// Makes a step; returns false if it is not possible now.
  mutating func take(_ step: Step) -> Bool {
    switch step {
    case .getA: return ask("A")
    case .getB: return ask("B")
    case .refreshB: return ask("B", isForced: true)
    case .background: return askInBackground()
    case .start: return look()
    case .end: return reply(.value(1))
    case .alone: return reply(.notShared(3))
    case .absent: return loading.absentFor != nil && reply(.absent)
    case .fail: return fail()
    case .saved: return saved()
    case .save: return change(to: .fresh)
    case .remove: return change(to: .missing)
    case .clear:
      key += 1
      return change(to: .missing)
    case .invalidate: return invalidate()
    case .expire: return expire()
    case .cancelA: return leave("A", CancellationError())
    case .cancelB: return leave("B", CancellationError())
    case .softA: return softTimeout("A")
    case .hardB: return loading.hardTimeout != nil && leave("B", LoadTimeout())
    case .hardFlight: return hardTimeout()
    case .late: return replyLate()
    case .delayIsOver:
      guard let id = flight(with: .delay) else { return false }
      flights[id]?.work = .queued
      handle(.delayIsOver(flight: id))
      return true
    case .wait:
      guard !failedAt.isEmpty || absentAt != nil || !aloneAt.isEmpty else { return false }
      now += 60
      return true
    }
  }

  /// What the machine may know at a step, which ``handle`` passes to it.
  private var moment: Machine.Moment {
    let flights = flights
    func flight(_ ticket: WriteTicket) -> Flight? {
      flights.values.first { $0.ticket === ticket }
    }
    return Machine.Moment(
      date: Date(timeIntervalSince1970: 0), now: .seconds(now),
      isChanged: { flight($0)?.isOvertaken ?? false },
      judge: { part, _ in
        guard let flight = flight(part.ticket), flight.work != .look else { return .unusable }
        return Self.found(on: flight.found)
      })
  }

  private static func found(on disk: Disk) -> Machine.Found {
    switch disk {
    case .missing, .expired: .unusable
    case .fresh: .fresh(isDue: false)
    case .due: .fresh(isDue: true)
    case .stale: .stale(.seconds(10))
    }
  }

  private func ask(
    waiter: Int?, flight: Int, _ ticket: WriteTicket, isForced: Bool = false
  ) -> Machine.Event {
    let call = LoadCall(
      keys: [RecordKey(cacheID: 1, userKey: [key])], loading: loading, isForced: isForced,
      store: call.store, core: call.core, load: call.load)
    return .asked(
      Machine.Ask(
        call: call, waiter: waiter, flight: flight, ticket: ticket, epoch: UInt64(epoch)))
  }

  private mutating func newID() -> Int {
    lastID += 1
    return lastID
  }

  private mutating func ask(_ name: Character, isForced: Bool = false) -> Bool {
    // The callers are alike, so the first one is A.
    guard callers[name] == nil, name == "A" || lastID > 0 else { return false }
    let (waiter, new, ticket) = (newID(), newID(), WriteTicket())
    let outdated = openFlight.flatMap { flights[$0].map { $0.epoch < epoch } ?? false ? $0 : nil }
    let isAlone = aloneAt[key].map { now < $0 + 30 } ?? false
    let open = outdated == nil && !isAlone ? openFlight : nil
    let isKnownAbsent = !isForced && absentAt.map { now < $0 + 30 } ?? false
    // Later callers do not join a flight from before an invalidation.
    if let outdated, !isKnownAbsent { flights[outdated]?.isClosed = true }
    if open == nil, !isKnownAbsent {
      flights[new] = Flight(
        key: key, ticket: ticket, owner: waiter, isAlone: isAlone, changes: changes, epoch: epoch)
    }
    if open == nil, isForced { absentAt = nil }
    callers[name] = Caller(
      waiter: waiter, flight: open ?? new, isForced: isForced, changes: changes)
    handle(ask(waiter: waiter, flight: new, ticket, isForced: isForced))
    check(
      !isKnownAbsent || callers[name] == nil, "a caller waits for a key that is known to be absent")
    return true
  }

  /// Asks for a caller again, whose load was for another one.
  private mutating func askAgain(_ name: Character, _ caller: Caller) {
    let waiter = caller.waiter
    guard let old = flights[caller.flight], let call = machine.waiters[waiter]?.call
    else { return fault("nobody is to ask again") }
    check(old.owner != waiter, "the caller that has loaded is to ask again")
    let (new, ticket) = (newID(), WriteTicket())
    let isKnownAbsent =
      !caller.isForced && old.key == key && absentAt.map { now < $0 + 30 } ?? false
    if !isKnownAbsent {
      let outdated = openFlight.flatMap { flights[$0].map { $0.epoch < epoch } ?? false ? $0 : nil }
      if let outdated, old.key == key { flights[outdated]?.isClosed = true }
      flights[new] = Flight(
        key: old.key, ticket: ticket, owner: waiter, isAlone: true, changes: changes, epoch: epoch)
      if old.key == key { absentAt = nil }
    }
    callers[name] = Caller(
      waiter: waiter, flight: new, isForced: caller.isForced, changes: changes,
      isOutOfPatience: caller.isOutOfPatience)
    handle(
      .asked(
        Machine.Ask(
          call: call, waiter: waiter, flight: new, ticket: ticket, isAlone: true,
          epoch: UInt64(epoch))))
  }

  /// Asks for a refresh for which nobody waits.
  private mutating func askInBackground() -> Bool {
    let (new, open, ticket) = (newID(), openFlight, WriteTicket())
    if open == nil, !isThrottled(key) {
      flights[new] = Flight(
        key: key, ticket: ticket, changes: changes, epoch: epoch, isPromised: true)
      absentAt = nil
    }
    handle(ask(waiter: nil, flight: new, ticket))
    return true
  }

  /// Whether a load has failed less than the throttle ago.
  private func isThrottled(_ key: UInt8) -> Bool { failedAt[key].map { now < $0 + 30 } ?? false }

  private mutating func look() -> Bool {
    guard let id = flight(with: .look) else { return false }
    flights[id]?.found = disk
    flights[id]?.work = .queued
    handle(.found(flight: id, [LoadFound()]))
    return true
  }

  private mutating func reply(_ reply: LoadReply<any Sendable>) -> Bool {
    guard let id = flight(with: .load), let flight = flights[id] else { return false }
    if !flight.isCancelled {
      (failedAt[flight.key], aloneAt[flight.key]) = (nil, nil)
      if reply.isAlone, loading.notSharedFor != nil {
        aloneAt[flight.key] = now
        if flight.key == key { absentAt = nil }
      }
    }
    flights[id]?.reply = reply
    flights[id]?.work = nil
    handle(.replied(flight: id, [reply]))
    return true
  }

  private mutating func fail() -> Bool {
    guard let id = flight(with: .load), let flight = flights[id] else { return false }
    flights[id]?.work = nil
    flights[id]?.attempts += 1
    let isLast = flight.attempts + 1 > loading.retries.extra
    if isLast, !flight.isCancelled, loading.retryThrottle != nil { failedAt[flight.key] = now }
    handle(.failed(flight: id, TestFailure(), isFinal: false))
    return true
  }

  private mutating func saved() -> Bool {
    guard let id = flight(with: .save), let flight = flights[id] else { return false }
    flights[id]?.work = nil
    // The reply has the tag.
    if case .value = flight.reply.content, flight.epoch < epoch { flights[id]?.isOvertaken = true }
    let isOvertaken = flights[id]?.isOvertaken ?? true
    if !isOvertaken {
      if case .absent = flight.reply.content {
        disk = .missing
        let isOpen = !flight.isCancelled && !flight.isClosed && !flight.isAlone
        if isOpen, loading.absentFor != nil { absentAt = now }
      } else {
        disk = .fresh
      }
      // Earlier flights must not replace this value.
      for (other, earlier) in flights where other < id && earlier.key == flight.key {
        flights[other]?.isOvertaken = true
      }
    }
    handle(.saved(flight: id, [isOvertaken ? .overtaken : .done]))
    return true
  }

  /// A change by a writer, which revokes the tickets of the flights.
  private mutating func change(to disk: Disk) -> Bool {
    self.disk = disk
    changes += 1
    for id in flights.keys { flights[id]?.isOvertaken = true }
    absentAt = nil
    // The machine notices this at its next step.
    return true
  }

  /// Invalidates the tag of all entries and replies.
  ///
  /// A flight that has not found an entry with it does not know it before the reply.
  private mutating func invalidate() -> Bool {
    guard disk != .missing || flights.values.contains(where: { !$0.isEnded && $0.epoch == epoch })
    else { return false }
    if disk != .missing { disk = .expired }
    changes += 1
    epoch += 1
    for (id, flight) in flights where !flight.isEnded && flight.work != .look {
      if flight.found != .missing, flight.found != .expired { flights[id]?.isOvertaken = true }
    }
    return true
  }

  private mutating func hardTimeout() -> Bool {
    let limited = flights.filter { entry in
      !entry.value.isEnded && !entry.value.isOverdue && entry.value.isLimited
        && entry.value.work != .save
    }
    guard let id = limited.keys.min() else { return false }
    flights[id]?.isOverdue = true
    flights[id]?.isPromised = false
    handle(.hardTimeout(flight: id))
    check(!waiters(of: id).isEmpty || flights[id]?.isEnded == true, "a hung flight stays")
    return true
  }

  /// The reply of a load that was abandoned.
  private mutating func replyLate() -> Bool {
    guard let id = flights.filter({ $0.value.isEnded && $0.value.work == .load }).keys.min()
    else { return false }
    flights[id]?.work = nil
    check(
      machine.handle(.replied(flight: id, [.value(2)]), moment).isEmpty,
      "a late reply has an effect")
    return true
  }

  private mutating func expire() -> Bool {
    let next: [Disk: Disk] = [.fresh: .stale, .due: .stale, .stale: .expired]
    guard let later = next[disk] else { return false }
    disk = later
    for (id, flight) in flights { flights[id]?.found = next[flight.found] ?? flight.found }
    return true
  }

  private mutating func leave(_ name: Character, _ error: any Error) -> Bool {
    guard let caller = callers[name] else { return false }
    handle(.left(waiter: caller.waiter, error))
    check(callers[name] == nil, "caller \(name) did not leave at once")
    return true
  }

  private mutating func softTimeout(_ name: Character) -> Bool {
    guard let caller = callers[name], loading.softTimeout != nil, !caller.isOutOfPatience
    else { return false }
    callers[name]?.isOutOfPatience = true
    handle(.softTimeout(waiter: caller.waiter))
    return true
  }
}

// MARK: - Effects, and the specification

extension LoadWorld {
  private mutating func handle(_ event: Machine.Event) {
    var again: [(name: Character, caller: Caller)] = []
    for effect in machine.handle(event, moment) {
      apply(effect, after: event)
      guard case .askAgain(let waiter) = effect,
        let name = callers.first(where: { $0.value.waiter == waiter })?.key,
        let caller = callers.removeValue(forKey: name)
      else { continue }
      again.append((name, caller))
    }
    for (name, caller) in again { askAgain(name, caller) }
    checkAll()
  }

  private mutating func apply(_ effect: Machine.Effect, after event: Machine.Event) {
    switch effect {
    case .look(let id):
      check(flights[id] != nil, "a flight starts beside an open one, or in spite of the throttle")
    case .joined(let id):
      check(
        flights[id].map { id == openFlight && $0.epoch >= epoch } ?? false,
        "a caller joins a flight that is over")
    case .load(let id):
      check(flights[id]?.isCancelled == false, "a cancelled flight loads")
      check(
        loading.hardTimeout == nil || flights[id]?.isLimited == true, "a load without hard timeout")
      flights[id]?.work = .load
      // An abandoned flight gives its slot to another one.
      let running = flights.values.filter { flight in
        flight.work == .load && !flight.isEnded && !(flight.isOverdue && flight.isCancelled)
      }.count
      check(running <= loading.concurrent ?? .max, "\(running) loads at once")
      let isThrottled = flights[id].map { self.isThrottled($0.key) } ?? false
      if case .found = event, isThrottled {
        check(!waiters(of: id).isEmpty, "a refresh in spite of the throttle")
      }
      if case .found = event, isThrottled, flights[id]?.found == .stale,
        loading.staleWhileRevalidate || loading.staleIfError != nil
      {
        check(waiters(of: id).contains(where: \.isForced), "a load in spite of the throttle")
      }
    case .save(let id):
      check(flights[id]?.isCancelled == false, "a cancelled flight saves")
      flights[id]?.work = .save
    case .delay(let id, _, _):
      check((flights[id]?.attempts ?? 0) <= loading.retries.extra, "too many repetitions")
      flights[id]?.work = .delay
    case .limit(let id):
      check(loading.hardTimeout != nil && flights[id]?.isLimited == false, "a wrong hard timeout")
      flights[id]?.isLimited = true
    case .cancel(let flight):
      let id = flight.id
      check(waiters(of: id).isEmpty, "a flight with waiters is cancelled")
      check(flights[id]?.isPromised == false, "a refresh is cancelled")
      flights[id]?.isCancelled = true
    case .end(let flight):
      check(waiters(of: flight.id).isEmpty, "a flight with waiters ends")
      flights[flight.id]?.isEnded = true
    case .answer(let waiter, let part, let answer):
      guard let name = callers.first(where: { $0.value.waiter == waiter })?.key,
        let caller = callers.removeValue(forKey: name)
      else { return fault("an answer to nobody") }
      check(
        part == nil || part?.ticket === flights[caller.flight]?.ticket,
        "an answer of another flight")
      check(answer, to: caller, after: event)
    case .forget, .askAgain: break
    case .news: fault("news, and nobody wants them")
    }
  }

  private mutating func check(
    _ answer: Machine.Answer, to caller: Caller, after event: Machine.Event
  ) {
    let flight = flights[caller.flight]
    switch answer {
    case .absent: check(absentAt.map { now < $0 + 30 } ?? false, "absent, and nobody said so")
    case .entry(let isRefreshing, let failure):
      guard let flight else { return fault("an entry without a flight") }
      check(!caller.isForced, "a refresh gets the entry that is there")
      if case .asked = event { check(flight.work != .save, "an entry that others no longer see") }
      // A caller that asks after a change never gets what was there before.
      check(
        flight.changes >= caller.changes || flight.work == .look || !flight.isOvertaken,
        "an entry from before the change")
      if case .found = event {
      } else {
        check(!flight.isOvertaken, "an entry that was changed since it was found")
      }
      switch flight.found {
      case .missing, .expired: fault("an entry that cannot be used")
      case .fresh, .due: break
      case .stale:
        check(
          loading.staleWhileRevalidate || caller.isOutOfPatience
            || (failure != nil && loading.staleIfError != nil), "a stale entry without leave")
      }
      if failure != nil, case .found = event {
        check(isThrottled(flight.key), "a throttle without a failure")
      }
      if isRefreshing { flights[caller.flight]?.isPromised = true }
    case .loaded(let saving) where flight.map { $0.reply.isAlone } ?? false:
      guard case .replied = event else { return fault("an answer before the reply") }
      check(flight?.owner == caller.waiter && !saving.isDone, "another one's reply")
    case .loaded(let saving):
      guard case .saved = event else { return fault("a loaded value that was not saved") }
      check(saving.isDone != flight?.isOvertaken, "saved, although a change has won, or not")
      check(flight.map { $0.changes == caller.changes } ?? false, "a value from before the change")
    case .failure(let error):
      if error is TestFailure {
        check(flight?.attempts == loading.retries.extra + 1, "an error before the last repetition")
        check(
          flight?.found != .stale || loading.staleIfError == nil || caller.isForced
            || flight?.isOvertaken == true,
          "an error in spite of a stale entry")
      } else {
        guard case .left(let waiter, _) = event, waiter == caller.waiter else {
          return fault("\(error) without a reason")
        }
      }
    }
  }

  /// What holds after each step.
  private mutating func checkAll() {
    for (name, caller) in callers {
      guard let flight = flights[caller.flight], !flight.isEnded, !flight.isCancelled,
        flight.work != nil
      else {
        fault("\(name) waits, and nothing is under way")
        continue
      }
      let isAllowed = loading.staleWhileRevalidate || caller.isOutOfPatience
      let isKnown = flight.work != .look && flight.work != .save
      if isKnown, !caller.isForced, flight.found == .stale, isAllowed, !flight.isOvertaken {
        fault("\(name) waits although the stale entry is allowed")
      }
    }
    for (id, flight) in flights where !flight.isEnded && !flight.isCancelled {
      if flight.work == .save || flight.isPromised { continue }
      check(!waiters(of: id).isEmpty, "a flight continues for nobody")
    }
    let open = flights.values.filter { flight in
      !flight.isEnded && !flight.isCancelled && !flight.isOvertaken && !flight.isOverdue
        && !flight.isClosed && !flight.isAlone && flight.work != nil
    }
    check(open.count <= 1, "\(open.count) flights for one key")
  }
}

extension LoadReply {
  fileprivate var isAlone: Bool { if case .notShared = content { true } else { false } }
}
