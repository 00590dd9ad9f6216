import Foundation
import LarderEngine
import Synchronization

/// The loads of a cache: executes what its ``LoadMachine`` decides.
///
/// One lock guards the machine, the flights and the waiters. Closures of the program, continuations
/// and timers run outside of it. The register's lock is taken inside of it, so that the keys of a
/// load are no longer registered when its callers go on. The task of a flight reads, loads and
/// saves, one step after another, and waits for the next step when the machine has none yet.
final class Loads<Value: Sendable>: LoadOwner {
  private let state: Mutex<State>
  private let register: LoadRegister
  private let invalidatedTags: InvalidatedTags
  private let activity: Activity
  private let lifetime: Lifetime
  private let clock: any WallClock
  private let timer: LoadTimer
  private let random: @Sendable () -> Double
  private let seed: Double
  private let cacheCounts: CacheCounts

  init(of context: StoreContext, _ lifetime: Lifetime, limit: Int?, counts: CacheCounts) {
    state = Mutex(State(machine: LoadMachine(limit: limit)))
    (register, activity) = (context.loads, context.activity)
    invalidatedTags = context.invalidatedTags
    (clock, timer, random) = (context.clock, context.loadTimer, context.random)
    (self.lifetime, cacheCounts) = (lifetime, counts)
    seed = random()
  }

  func close() { handle { _, _ in .closed } }
}

// MARK: - Events

extension Loads {
  /// Handles an event that `make` returns; nil for none.
  private func handle(_ make: (inout State, Date) -> LoadMachine.Event?) {
    // Before the lock: the clock may call the store.
    let date = clock.now()
    perform { state in
      if let event = make(&state, date) { apply(event, to: &state, at: date) }
    }
  }

  /// Changes the state, and then does what that has led to.
  private func perform(_ body: (inout State) -> Void) {
    let work = state.withLock { state in
      body(&state)
      defer { state.work = [] }
      return state.work
    }
    for work in work { work() }
  }

  private func apply(_ event: LoadMachine.Event, to state: inout State, at date: Date) {
    var isFailure = false
    if case .failed = event { isFailure = true }
    for effect in state.machine.handle(event) {
      switch effect {
      case .look(let id): state.work.append { [self] in look(id) }
      case .load(let id, let members):
        if !state.machine.hasWaiters(id) { cacheCounts.loads.refreshes.add() }
        step(.load(members), of: id, in: &state)
      case .save(let id, let members): step(.save(members), of: id, in: &state)
      case .delay(let id, let attempt): delay(id, attempt, in: &state)
      case .limit(let id): limit(id, in: &state)
      case .cancel(let id):
        state.flights[id]?.isCancelled = true
        if let task = state.flights[id]?.task { state.work.append { task.cancel() } }
      case .end(let id): end(id, in: &state)
      case .answer(let waiter, let place, let answer):
        if case .entry(_, .some) = answer, !isFailure { cacheCounts.loads.throttled.add() }
        let flight = place.flatMap { state.flights[$0.flight] }
        let loading = state.waiters[waiter]?.loading ?? Loading()
        let outcome = outcome(of: answer, in: flight, place?.member ?? 0, loading, at: date)
        resume(waiter, with: outcome, in: &state)
      case .remember(let place):
        if let flight = state.flights[place.flight] {
          let (key, ticket) = (flight.keys[place.member], flight.tickets[place.member])
          state.absences[key.bytes] = State.Absence(key: key, ticket: ticket)
          register.remember(key, ticket)
        }
      case .forget(let key):
        if let absence = state.absences.removeValue(forKey: key) {
          register.remove(absence.key, absence.ticket)
        }
      }
    }
  }

  private func step(_ step: Step, of id: Int, in state: inout State) {
    guard let continuation = state.flights[id]?.awaitsStep else {
      state.flights[id]?.step = step
      return
    }
    state.flights[id]?.awaitsStep = nil
    state.work.append { continuation.resume(returning: step) }
  }

  private func delay(_ id: Int, _ attempt: Int, in state: inout State) {
    guard let loading = state.flights[id]?.loading else { return }
    let delay = loading.retries.delay(before: attempt, chance: random())
    start(delay, of: id, \.cancelDelay, in: &state) { .delayIsOver(flight: id) }
  }

  private func limit(_ id: Int, in state: inout State) {
    guard let span = state.flights[id]?.loading.hardTimeout else { return }
    start(span, of: id, \.cancelLimit, in: &state) { .hardTimeout(flight: id) }
  }

  /// Starts a timer that ends with the flight.
  private func start(
    _ delay: Duration, of id: Int,
    _ cancel: any WritableKeyPath<Flight, (@Sendable () -> Void)?> & Sendable,
    in state: inout State, _ event: @escaping @Sendable () -> LoadMachine.Event
  ) {
    state.work.append { [self] in
      let stop = timer(delay) { [self] in handle { _, _ in event() } }
      let isOver = self.state.withLock { state in
        state.flights[id]?[keyPath: cancel] = stop
        return state.flights[id] == nil
      }
      if isOver { stop() }
    }
  }

  private func end(_ id: Int, in state: inout State) {
    guard let flight = state.flights[id] else { return }
    step(.end, of: id, in: &state)
    state.flights[id] = nil
    for cancel in [flight.cancelDelay, flight.cancelLimit] {
      if let cancel { state.work.append(cancel) }
    }
    flight.chain?.end()
    for waiter in activity.end() { state.work.append { waiter.resume() } }
    for (key, ticket) in zip(flight.keys, flight.tickets)
    where state.absences[key.bytes]?.ticket !== ticket {
      register.remove(key, ticket)
    }
  }

  private func resume(_ id: Int, with outcome: Outcome, in state: inout State) {
    guard let waiter = state.waiters[id], waiter.outcome == nil else { return }
    if let link = waiter.link { link.from.unlink(from: link.to) }
    guard let continuation = waiter.continuation else {
      state.waiters[id]?.outcome = outcome
      return
    }
    state.waiters[id] = nil
    state.work.append { continuation.resume(returning: outcome) }
  }
}

// MARK: - Answers

extension Loads {
  private func outcome(
    of answer: LoadMachine.Answer, in flight: Flight?, _ member: Int, _ loading: Loading,
    at date: Date
  ) -> Outcome {
    switch answer {
    case .failure(let error): return .failure(error)
    case .absent: return .success(nil)
    case .entry(let isRefreshing, let failure):
      guard let entry = flight?.found[member].entry else { return .success(nil) }
      let isStale = freshness(of: entry, loading, at: date) != .fresh
      if isStale { cacheCounts.loads.staleServed.add() }
      return .success(
        LoadedEntry(
          entry, age: Duration(from: entry.savedAt, to: date), isStale: isStale,
          isRefreshing: isRefreshing, loadFailure: failure))
    case .loaded(let saving):
      switch flight?.replies[member]?.content {
      case .value(let value, _, _, _)?, .unsaved(let value)?:
        return .success(LoadedEntry(value, from: .loaded, saving))
      case .unchanged?:
        guard let entry = flight?.found[member].entry else { return .success(nil) }
        return .success(LoadedEntry(entry.value, from: entry.origin, saving))
      case .absent?, nil: return .success(nil)
      }
    }
  }

  private func lifetime(of entry: Entry<Value>) -> Lifetime { entry.lifetime ?? lifetime }

  private func freshness(
    of entry: Entry<Value>, _ loading: Loading, at date: Date
  ) -> Freshness {
    let freshness = lifetime(of: entry).freshness(of: entry.savedAt, at: date)
    return freshness == .fresh && !loading.admits(entry.savedAt, at: date) ? .stale : freshness
  }

  /// The state of what a flight has found, at a date.
  private func judge(
    _ found: LoadFound<Value>, _ loading: Loading, at date: Date
  ) -> LoadMachine.Found {
    if let failure = found.failure { return .failed(failure) }
    guard let entry = found.entry else { return .unusable }
    switch freshness(of: entry, loading, at: date) {
    case .fresh: return .fresh(isDue: isDue(entry, loading, at: date))
    case .stale:
      let ends = [lifetime(of: entry).fresh, loading.maxAge ?? .unlimited]
        .compactMap { $0.end(from: entry.savedAt) }
      return .stale(Duration(from: ends.min() ?? date, to: date))
    case .expired: return .unusable
    }
  }

  /// Whether a fresh entry is to be refreshed ahead of time.
  func isDue(_ entry: Entry<Value>, _ loading: Loading, at date: Date? = nil) -> Bool {
    guard let share = loading.refreshAhead,
      let end = lifetime(of: entry).fresh.end(from: entry.savedAt)
    else { return false }
    // Another one for each save, because the sequence is part of the version.
    let golden = 0.618_033_988_749_895
    let chance = (seed + Double(entry.version.sequence % (1 << 32)) * golden)
      .truncatingRemainder(dividingBy: 1)
    let total = end.timeIntervalSince(entry.savedAt)
    let left = end.timeIntervalSince(date ?? entry.readAt)
    return left < total * share * (0.5 + 0.5 * chance)
  }

  private func previous(_ found: LoadFound<Value>, at date: Date) -> Previous<Value>? {
    guard let entry = found.entry else { return nil }
    let isExpired = freshness(of: entry, Loading(), at: date) == .expired
    return Previous(
      value: isExpired ? nil : entry.value, validator: entry.validator, savedAt: entry.savedAt)
  }
}

// MARK: - Callers

extension Loads {
  /// A call for one or more keys.
  struct Call: Sendable {
    let keys: [RecordKey]
    let loading: Loading
    var isForced = false
    let work: LoadWork<Value>
  }

  /// Returns the value of each key of a call, loaded if need be.
  ///
  /// Throws the first error of a key; the call then waits for no other key.
  func entries(for call: Call) async throws -> [LoadedEntry<Value>?] {
    try Task.checkCancellation()
    let waiters = ask(call)
    defer { for waiter in waiters { leave(waiter, CancellationError()) } }
    let cancels = schedule(call.loading, for: waiters)
    defer { for cancel in cancels { cancel() } }
    return try await withTaskCancellationHandler {
      var entries: [LoadedEntry<Value>?] = []
      for waiter in waiters { entries.append(try await outcome(of: waiter).get()) }
      return entries
    } onCancel: {
      for waiter in waiters { expire(waiter, CancellationError()) }
    }
  }

  /// Refreshes the entry of a key in the background, if it is due and no flight is open.
  ///
  /// - Returns: Whether a flight is open; false shortly after a load has failed.
  func refresh(_ call: Call) -> Bool {
    _ = ask(call, isWaiting: false)
    return state.withLock { state in
      call.keys.contains { state.machine.place(of: $0.bytes) != nil }
    }
  }

  /// Asks for keys; starts a flight for those without an open one.
  ///
  /// Returns the waiters, one for each key.
  private func ask(_ call: Call, isWaiting: Bool = true) -> [Int] {
    let (date, now, epoch) = (clock.now(), clock.uptime(), invalidatedTags.epoch)
    let chain = isWaiting ? LoadChain.running : nil
    var waiters: [Int] = []
    perform { state in
      let flight = state.newID()
      for (index, key) in call.keys.enumerated() {
        var waiter: Int?
        if isWaiting {
          let id = state.newID()
          state.waiters[id] = Waiter(loading: call.loading)
          waiters.append(id)
          waiter = id
          if let chain, chain.includes(key.bytes, of: ObjectIdentifier(self)) {
            state.waiters[id]?.outcome = .failure(call.work.circle(at: key))
            continue
          }
        }
        forgetIfChanged(key, in: &state, at: date)
        var ask = LoadMachine.Ask(
          key: key.bytes, waiter: waiter, flight: flight, loading: call.loading,
          isForced: call.isForced, isNested: chain != nil, epoch: epoch, now: now)
        if let place = state.machine.place(of: key.bytes), let open = state.flights[place.flight] {
          if open.found.indices.contains(place.member) {
            ask.found = judge(open.found[place.member], call.loading, at: date)
          }
        }
        let open = state.machine.place(of: key.bytes)
        apply(.asked(ask), to: &state, at: date)
        if let open, isWaiting, open.flight != flight, open == state.machine.place(of: key.bytes) {
          join(open.flight, in: &state)
        }
        if let place = state.machine.place(of: key.bytes), place.flight == flight {
          add(index, to: flight, of: call, at: place.member, in: &state)
        }
        if let waiter, let chain { link(waiter, chain, call.work.circle(at: key), &state, date) }
      }
    }
    return waiters
  }

  /// Closes the flight of a key, and forgets that it is absent, if the key was changed.
  private func forgetIfChanged(_ key: RecordKey, in state: inout State, at date: Date) {
    let ticket =
      state.machine.place(of: key.bytes).map { state.flights[$0.flight]?.tickets[$0.member] }
      ?? state.absences[key.bytes]?.ticket
    if ticket?.isRevoked == true { apply(.changed(key.bytes), to: &state, at: date) }
  }

  /// Adds a key of a call as a member to the flight that the call has started.
  private func add(
    _ index: Int, to id: Int, of call: Call, at member: Int, in state: inout State
  ) {
    if state.flights[id] == nil {
      state.flights[id] = Flight(
        number: LoadChain.newNumber(), loading: call.loading, work: call.work)
      activity.begin()
    }
    // The key may be repeated.
    guard member == state.flights[id]?.keys.count else { return }
    state.flights[id]?.keys.append(call.keys[index])
    state.flights[id]?.indices.append(index)
    state.flights[id]?.tickets.append(WriteTicket())
  }

  /// Notes a caller that joins a flight, and lends the flight its priority.
  private func join(_ id: Int, in state: inout State) {
    cacheCounts.loads.joins.add()
    let priority = Task.currentPriority
    guard let flight = state.flights[id], flight.priority < priority else { return }
    state.flights[id]?.priority = priority
    if let task = flight.task { state.work.append { task.escalate(to: priority) } }
  }

  /// Notes that a load waits for another one; ends the wait if that one waits for the load.
  private func link(
    _ waiter: Int, _ chain: LoadChain, _ circle: StoreError, _ state: inout State, _ date: Date
  ) {
    guard let place = state.machine.place(ofWaiter: waiter),
      let number = state.flights[place.flight]?.number
    else { return }
    if chain.link(to: number) {
      state.waiters[waiter]?.link = (chain, number)
    } else {
      apply(.left(waiter: waiter, circle), to: &state, at: date)
    }
  }

  private func schedule(_ loading: Loading, for waiters: [Int]) -> [@Sendable () -> Void] {
    guard loading.softTimeout != nil || loading.hardTimeout != nil,
      state.withLock({ state in waiters.contains { state.waiters[$0]?.outcome == nil } })
    else { return [] }
    var cancels: [@Sendable () -> Void] = []
    if let span = loading.softTimeout {
      cancels.append(timer(span) { [self] in for waiter in waiters { loseSoftly(waiter) } })
    }
    if let span = loading.hardTimeout {
      cancels.append(
        timer(span) { [self] in for waiter in waiters { expire(waiter, LoadTimeout()) } })
    }
    return cancels
  }

  private func loseSoftly(_ waiter: Int) {
    handle { state, date in
      let place = state.machine.place(ofWaiter: waiter)
      let flight = place.flatMap { state.flights[$0.flight] }
      guard let place, let flight, flight.found.indices.contains(place.member) else {
        return .softTimeout(waiter: waiter, nil)
      }
      return .softTimeout(
        waiter: waiter,
        self.state(of: flight.found[place.member], flight.tickets[place.member], at: date))
    }
  }

  private func expire(_ waiter: Int, _ error: any Error) {
    handle { _, _ in .left(waiter: waiter, error) }
  }

  /// Ends a wait whose outcome is no longer needed.
  private func leave(_ waiter: Int, _ error: any Error) {
    guard state.withLock({ $0.waiters[waiter] != nil }) else { return }
    expire(waiter, error)
    state.withLock { $0.waiters[waiter] = nil }
  }

  private func outcome(of waiter: Int) async -> Outcome {
    await withCheckedContinuation { continuation in
      let outcome = state.withLock { state in
        guard let outcome = state.waiters[waiter]?.outcome else {
          state.waiters[waiter]?.continuation = continuation
          return nil as Outcome?
        }
        state.waiters[waiter] = nil
        return outcome
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }
}

extension Task {
  /// Raises the priority, where the system can.
  fileprivate func escalate(to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      escalatePriority(to: priority)
    }
  }
}

// MARK: - Flights

extension Loads {
  /// Registers the keys of a flight, and starts its task.
  private func look(_ id: Int) {
    guard let flight = state.withLock({ $0.flights[id] }) else { return }
    var isOpen = true
    for (key, ticket) in zip(flight.keys, flight.tickets) {
      isOpen = register.add(key, ticket, of: self) && isOpen
    }
    let task = Task { await fly(id, flight, isOpen: isOpen) }
    let (isCancelled, priority) = state.withLock { state in
      state.flights[id]?.task = task
      // A flight that has ended was abandoned, or its task is about to return.
      return (state.flights[id]?.isCancelled ?? true, state.flights[id]?.priority)
    }
    if isCancelled { task.cancel() }
    if let priority, priority > flight.priority { task.escalate(to: priority) }
  }

  private func fly(_ id: Int, _ flight: Flight, isOpen: Bool) async {
    let found =
      isOpen
      ? await flight.work.store.run { find(flight) }
      : flight.keys.map { _ in LoadFound(failure: .closed) }
    let now = clock.uptime()
    handle { state, date in
      state.flights[id]?.found = found
      return .found(
        flight: id, found.map { found in { self.judge(found, $0, at: date) } }, now: now)
    }
    while true {
      switch await step(of: id) {
      case .load(let members): await load(members, of: id, flight, found)
      case .save(let members): await save(members, of: id, flight, found)
      case .end: return
      }
    }
  }

  /// Reads the entries of a flight.
  ///
  /// An entry that was changed meanwhile, or a tag of which was invalidated, is read again: callers
  /// get what is there now.
  private func find(_ flight: Flight) -> [LoadFound<Value>] {
    zip(flight.keys, flight.tickets).map { key, ticket in
      let found = flight.work.core.find(key)
      register.add(tags: found.tags, to: key, ticket)
      return ticket.isRevoked ? flight.work.core.find(key) : found
    }
  }

  /// The state of what each member has found, at a date.
  private func states(of id: Int, in state: State, at date: Date) -> [LoadMachine.State] {
    guard let flight = state.flights[id] else { return [] }
    return zip(flight.found, flight.tickets).map { self.state(of: $0, $1, at: date) }
  }

  /// The state of what a member has found some time ago: it may have been changed since.
  private func state(
    of found: LoadFound<Value>, _ ticket: WriteTicket, at date: Date
  ) -> LoadMachine.State {
    { ticket.isRevoked ? .unusable : self.judge(found, $0, at: date) }
  }

  private func step(of id: Int) async -> Step {
    await withCheckedContinuation { continuation in
      let step = state.withLock { state in
        guard state.flights[id] != nil else { return Step.end as Step? }
        guard let step = state.flights[id]?.step else {
          state.flights[id]?.awaitsStep = continuation
          return nil
        }
        state.flights[id]?.step = nil
        return step
      }
      if let step { continuation.resume(returning: step) }
    }
  }

  private func load(
    _ members: [Int], of id: Int, _ flight: Flight, _ found: [LoadFound<Value>]
  ) async {
    cacheCounts.loads.loads.add()
    let (date, start) = (clock.now(), clock.uptime())
    let needs = members.map { LoadNeed(index: flight.indices[$0], previous(found[$0], at: date)) }
    var (replies, failure): ([LoadReply<Value>], (any Error)?) = ([], nil)
    let chain = LoadChain(
      flight.number, Set(flight.keys.map(\.bytes)), of: ObjectIdentifier(self))
    state.withLock { $0.flights[id]?.chain = chain }
    do {
      replies = try await LoadChain.$current.withValue(chain) {
        try await flight.work.load(needs)
      }
    } catch {
      failure = error
    }
    chain.end()
    let now = clock.uptime()
    let core = flight.work.core
    core.context.log.loaded(members.count, of: core.name, in: now - start, failure: failure)
    cacheCounts.loads.nanoseconds.add(max(0, (now - start).limited.wholeNanoseconds))
    var isFinal = failure is CancellationError
    if failure == nil, replies.count != members.count {
      isFinal = true
      failure = StoreError.invalidArgument(
        """
        the load of \(members.count) keys returned \(replies.count) replies; return one for each \
        key, in their order
        """)
    }
    if let failure {
      cacheCounts.loads.failures.add()
      handle { state, date in
        .failed(
          flight: id, failure, isFinal: isFinal, states(of: id, in: state, at: date), now: now)
      }
      return
    }
    handle { state, _ in
      for (member, reply) in zip(members, replies) { state.flights[id]?.replies[member] = reply }
      return .replied(
        flight: id, zip(members, replies).map { $1.machineReply(to: found[$0]) })
    }
  }

  private func save(
    _ members: [Int], of id: Int, _ flight: Flight, _ found: [LoadFound<Value>]
  ) async {
    let replies = state.withLock { $0.flights[id]?.replies } ?? [:]
    let parts = members.compactMap { member in
      replies[member].map {
        LoadedPart(
          key: flight.keys[member], ticket: flight.tickets[member], found: found[member], reply: $0)
      }
    }
    let work = flight.work
    let outcomes = await work.store.run { work.core.save(parts, by: work.store) }
    let now = clock.uptime()
    handle { _, _ in .saved(flight: id, outcomes, now: now) }
  }
}

extension Duration {
  fileprivate var wholeNanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
