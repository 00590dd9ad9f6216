import Foundation

/// The loads of a cache: executes what its ``LoadMachine`` decides.
///
/// One lock guards the machine, which has all flights and waiters. Closures of the program,
/// continuations and timers run outside of it. The register's lock is taken inside of it: the keys
/// of a load are removed from the register before its callers are resumed.
///
/// A call for one key looks for its entry first, and asks for a flight if there is no fresh one. A
/// flight has a task on the store's threads, which reads, unless a call has, and saves what was
/// loaded; only the closure runs elsewhere. The task waits while the machine has nothing for it to
/// do.
final class Loads: LoadOwner {
  typealias Machine = LoadMachine

  struct State: Sendable {
    var machine: Machine
    /// The keys that calls look for before there is a flight.
    var looks: [RecordKey: Look] = [:]
    /// Who hears of the loads of a key, by the user's key and a number.
    var watches: [[UInt8]: [Int: @Sendable (Machine.News) -> Void]] = [:]
    /// What is to be done without the lock.
    var work: [@Sendable () -> Void] = []
  }

  let state: Lock<State>
  let register: LoadRegister
  private let invalidatedTags: InvalidatedTags
  let activity: Activity
  let lifetime: Lifetime
  let clock: any WallClock
  let timer: LoadTimer
  private let random: @Sendable () -> Double
  /// Spreads the refreshes ahead of time over processes.
  let seed: Double
  let cacheCounts: CacheCounts

  init(of context: StoreContext, _ lifetime: Lifetime, limit: Int?, counts: CacheCounts) {
    state = Lock(State(machine: Machine(limit: limit)))
    (register, activity) = (context.loads, context.activity)
    invalidatedTags = context.invalidatedTags
    (clock, timer, random) = (context.clock, context.loadTimer, context.random)
    (self.lifetime, cacheCounts) = (lifetime, counts)
    seed = random()
  }

  func close() { handle(.closed) }
}

// MARK: - Events

extension Loads {
  private func handle(_ event: Machine.Event) {
    // Before the lock: the clock may call the store.
    let moment = moment()
    perform { state in apply(event, to: &state, moment) }
  }

  func moment() -> Machine.Moment {
    let (date, now) = (clock.now(), clock.uptime())
    return Machine.Moment(
      date: date, now: now, isChanged: \.isRevoked,
      judge: { [self] part, loading in judge(part.found, loading, at: date, uptime: now) })
  }

  /// Changes the state, and then does what that has led to.
  func perform(_ body: (inout State) -> Void) {
    let work = state.withLock { state in
      body(&state)
      defer { state.work = [] }
      return state.work
    }
    for work in work { work() }
  }

  func apply(_ event: Machine.Event, to state: inout State, _ moment: Machine.Moment) {
    var isFailure = false
    if case .failed = event { isFailure = true }
    for effect in state.machine.handle(event, moment) {
      switch effect {
      case .look(let id):
        activity.begin()
        state.work.append { [self] in start(id) }
      case .joined(let id): join(id, in: &state)
      case .load(let id):
        if state.machine.flights[id]?.waiterCount == 0 { cacheCounts.loads.refreshes.add() }
        wake(id, in: &state)
      case .save(let id): wake(id, in: &state)
      case .delay(let id, let attempt, let least):
        guard let loading = state.machine.flights[id]?.call.loading else { break }
        let delay = loading.retries.delay(before: attempt, chance: random())
        start(
          max(delay, least ?? .zero), \.cancelDelay, in: &state, then: .delayIsOver(flight: id),
          of: id)
      case .limit(let id):
        guard let span = state.machine.flights[id]?.call.loading.hardTimeout else { break }
        start(span, \.cancelLimit, in: &state, then: .hardTimeout(flight: id), of: id)
      case .cancel(let flight):
        if let task = flight.task { state.work.append { task.cancel() } }
      case .end(let flight): end(flight, in: &state)
      case .answer(let waiter, let part, let answer):
        if case .entry(_, .some) = answer, !isFailure { cacheCounts.loads.throttled.add() }
        resume(waiter, with: answer, part, in: &state, at: moment)
      case .askAgain(let waiter): askAgain(waiter, in: &state, moment)
      case .forget(let key, let ticket): register.remove(key, ticket)
      case .news(let key, let news):
        for hear in state.watches[Array(key.userKey), default: [:]].values { hear(news) }
      }
    }
  }

  /// Notes a caller that joins a flight, and lends the flight its priority.
  private func join(_ id: Int, in state: inout State) {
    cacheCounts.loads.joins.add()
    let priority = Task.currentPriority
    guard let flight = state.machine.flights[id], flight.priority < priority else { return }
    state.machine.flights[id]?.priority = priority
    if let task = flight.task { state.work.append { task.escalate(to: priority) } }
  }

  private func wake(_ id: Int, in state: inout State) {
    state.machine.flights[id]?.isReady = true
    guard let waking = state.machine.flights[id]?.waking else { return }
    state.machine.flights[id]?.waking = nil
    state.work.append { waking.resume() }
  }

  /// Starts a timer that ends with its flight.
  private func start(
    _ delay: Duration,
    _ cancel: any WritableKeyPath<Machine.Flight, (@Sendable () -> Void)?> & Sendable,
    in state: inout State, then event: Machine.Event, of id: Int
  ) {
    state.work.append { [self] in
      let stop = timer(delay) { [self] in handle(event) }
      let isOver = self.state.withLock { state in
        state.machine.flights[id]?[keyPath: cancel] = stop
        return state.machine.flights[id] == nil
      }
      if isOver { stop() }
    }
  }

  private func end(_ flight: Machine.Flight, in state: inout State) {
    if let waking = flight.waking { state.work.append { waking.resume() } }
    for cancel in [flight.cancelDelay, flight.cancelLimit] {
      if let cancel { state.work.append(cancel) }
    }
    flight.chain?.end()
    for waiter in activity.end() { state.work.append { waiter.resume() } }
    for member in flight.members {
      let (key, ticket) = (member.part.key, member.part.ticket)
      if member.isRemembered {
        register.remember(key, ticket)
      } else {
        register.remove(key, ticket)
      }
    }
  }

  private func resume(
    _ id: Int, with answer: Machine.Answer, _ part: LoadPart?, in state: inout State,
    at moment: Machine.Moment
  ) {
    guard let waiter = state.machine.waiters[id] else { return }
    let outcome = outcome(of: answer, part, waiter.call.loading, at: moment)
    if let link = waiter.link { link.from.unlink(from: link.to) }
    guard let continuation = waiter.continuation else {
      state.machine.waiters[id]?.outcome = outcome
      return
    }
    state.machine.waiters[id] = nil
    state.work.append { continuation.resume(returning: outcome) }
  }
}

// MARK: - Answers

extension Loads {
  private func outcome(
    of answer: Machine.Answer, _ part: LoadPart?, _ loading: Loading,
    at moment: Machine.Moment
  ) -> Machine.Outcome {
    switch answer {
    case .failure(let error): return .failure(error)
    case .absent: return .success(nil)
    case .entry(let isRefreshing, let failure):
      guard let entry = part?.found.entry else { return .success(nil) }
      let isStale = freshness(of: entry, loading, at: moment.date) != .fresh
      if isStale { cacheCounts.loads.staleServed.add() }
      var loaded = LoadedEntry(
        entry, age: Duration(from: entry.savedAt, to: moment.date), isStale: isStale,
        isRefreshing: isRefreshing, loadFailure: failure)
      loaded.isConfirmed = !isStale && part?.found.sharing?.isConfirmed(at: moment.now) == true
      return .success(loaded)
    case .loaded(let saving):
      switch part?.reply?.content {
      case .value(let value, _, let validator, let tags)?:
        return .success(
          LoadedEntry(value, from: .loaded, saving, validator: validator, tags: tags))
      case .unsaved(let value)?, .notShared(let value)?:
        return .success(LoadedEntry(value, from: .loaded, saving))
      case .unchanged(_, let validator)?:
        return .success(
          part?.found.entry.map {
            LoadedEntry(
              $0.value, from: $0.origin, saving, validator: validator ?? $0.validator,
              tags: $0.tags)
          })
      case .absent?, nil: return .success(nil)
      }
    }
  }
}

// MARK: - Callers

extension Loads {
  /// A call that looks for the entry of its key, on disk and in the tier, before there is a flight.
  ///
  /// It is what a flight begins with, and takes half as long without one. The ticket of the look is
  /// registered, so a flight can begin with what was found. If another call asks for the key before
  /// the look has ended, it starts that flight, which waits for the look. Otherwise this call
  /// starts it, if there is no fresh entry.
  struct Look: Sendable {
    let ticket: WriteTicket
    /// The number of times that tags were invalidated before it.
    let epoch: UInt64
    /// The flight that waits for the look; nil for none.
    var flight: Int?
    /// Wakes the task of that flight.
    var waking: CheckedContinuation<Void, Never>?
  }

  /// What has become of a look.
  private enum Looked {
    case entry(LoadedEntry<any Sendable>)
    /// The caller waits for a flight.
    case waiting([Int])
    /// What was found cannot be used.
    case unusable
  }

  /// Returns the entry of a call's key, loaded if need be.
  func entry(for call: LoadCall) async throws -> LoadedEntry<any Sendable>? {
    try Task.checkCancellation()
    guard let look = beginLook(for: call) else { return try await entries(for: call)[0] }
    // The look ends on the store's threads: others wait for it, and the caller's may be busy.
    let looked = await withTaskExecutorPreference(call.store.executor) {
      await finish(look, call)
    }
    switch looked {
    case .entry(let entry): return entry
    case .waiting(let waiters): return try await entries(of: waiters, call)[0]
    case .unusable: return try await entries(for: call)[0]
    }
  }

  /// Begins to look for the entry of a call's key.
  ///
  /// - Returns: The look; nil if a flight is to look, because the key is being loaded or looked
  ///   for, something is remembered of its last load, or the options ask for more than a fresh
  ///   entry.
  private func beginLook(for call: LoadCall) -> Look? {
    let (key, loading) = (call.keys[0], call.loading)
    guard !loading.isTimed, loading.softTimeout == nil, loading.hardTimeout == nil else {
      return nil
    }
    let look = Look(ticket: WriteTicket(), epoch: invalidatedTags.epoch)
    let isFirst = state.withLock { state in
      guard state.machine.isUnknown(key), state.looks[key] == nil else { return false }
      state.looks[key] = look
      return true
    }
    return isFirst ? look : nil
  }

  /// Reads the disk and the tier, and asks for a flight if there is no fresh entry.
  private func finish(_ look: Look, _ call: LoadCall) async -> Looked {
    let part = LoadPart(key: call.keys[0], index: 0, ticket: look.ticket)
    let isOpen = register.add(part.key, part.ticket, of: self)
    var found = LoadFound()
    if isOpen, let tier = call.core.tier {
      found = await call.core.look(for: part, in: tier)
    } else if isOpen {
      found = call.core.find(part)
    }
    // A key that was changed is looked for again. What a cancelled task has found may not be what
    // the tier has.
    if !isOpen || look.ticket.isRevoked || Task.isCancelled {
      // Before a flight that has waited registers the ticket again.
      register.remove(part.key, part.ticket)
      _ = handOver(.byTask, of: part.key)
      return .unusable
    }
    do {
      if let entry = try freshEntry(found, call.loading) {
        if !handOver(.done(found), of: part.key) { register.remove(part.key, part.ticket) }
        return .entry(entry)
      }
    } catch {
      // A flight throws it.
    }
    return .waiting(ask(call, after: (look, found)))
  }

  private func handOver(_ looking: Machine.Looking, of key: RecordKey) -> Bool {
    var isHandedOver = false
    perform { state in isHandedOver = handOver(looking, of: key, in: &state) }
    return isHandedOver
  }

  /// Ends the look for a key; returns whether a flight has waited for it.
  private func handOver(
    _ looking: Machine.Looking, of key: RecordKey, in state: inout State
  ) -> Bool {
    let look = state.looks.removeValue(forKey: key)
    guard let flight = look?.flight else { return false }
    state.machine.flights[flight]?.looking = looking
    if let waking = look?.waking { state.work.append { waking.resume() } }
    return true
  }

  /// Returns the value of each key of a call, loaded if need be.
  ///
  /// Throws the first error of a key; the call then waits for no other key.
  func entries(for call: LoadCall) async throws -> [LoadedEntry<any Sendable>?] {
    try Task.checkCancellation()
    return try await entries(of: ask(call), call)
  }

  private func entries(
    of waiters: [Int], _ call: LoadCall
  ) async throws -> [LoadedEntry<any Sendable>?] {
    var entries: [LoadedEntry<any Sendable>?] = []
    // The others have their outcomes.
    defer { for waiter in waiters.dropFirst(entries.count) { leave(waiter) } }
    let cancels = schedule(call.loading, for: waiters)
    defer { for cancel in cancels { cancel() } }
    return try await withTaskCancellationHandler {
      for waiter in waiters { entries.append(try await outcome(of: waiter).get()) }
      return entries
    } onCancel: {
      for waiter in waiters { handle(.left(waiter: waiter, CancellationError())) }
    }
  }

  /// Refreshes the entry of a key in the background, if it is due and no flight is open.
  ///
  /// - Returns: Whether a flight is open; false shortly after a load has failed.
  func refresh(_ call: LoadCall) -> Bool {
    _ = ask(call, isWaiting: false)
    return state.withLock { state in call.keys.contains { state.machine.open[$0] != nil } }
  }

  /// Asks for keys; starts a flight for those without an open one.
  ///
  /// Returns the waiters, one for each key.
  private func ask(
    _ call: LoadCall, isWaiting: Bool = true, after looked: (look: Look, found: LoadFound)? = nil
  ) -> [Int] {
    let (moment, epoch) = (moment(), looked?.look.epoch ?? invalidatedTags.epoch)
    let chain = isWaiting ? LoadChain.running : nil
    let flight = LoadChain.newNumber()
    var (waiters, isHandedOver) = ([Int](), false)
    perform { state in
      if let looked {
        isHandedOver = handOver(.done(looked.found), of: call.keys[0], in: &state)
      }
      for (index, key) in call.keys.enumerated() {
        let waiter = isWaiting ? LoadChain.newNumber() : nil
        if let waiter { waiters.append(waiter) }
        var ask = Machine.Ask(
          call: call, index: index, waiter: waiter, flight: flight, isNested: chain != nil,
          epoch: epoch)
        if let waiter, chain?.includes(key, of: ObjectIdentifier(self)) == true {
          state.machine.waiters[waiter] = Machine.Waiter(
            call: call, outcome: .failure(call.circle(at: key)))
          continue
        }
        if let looked, !isHandedOver {
          (ask.ticket, ask.looking) = (looked.look.ticket, .done(looked.found))
        } else if let look = state.looks[key], look.flight == nil, look.epoch == epoch,
          !look.ticket.isRevoked, isWaiting, !call.isForced, call.keys.count == 1
        {
          (ask.ticket, ask.looking) = (look.ticket, .byCall)
        }
        apply(.asked(ask), to: &state, moment)
        let isStarted = state.machine.flights[flight] != nil
        switch ask.looking {
        case .byTask: break
        case .byCall: if isStarted { state.looks[key]?.flight = flight }
        case .done: isHandedOver = isStarted
        }
        if let chain, let waiter { link(waiter, chain, at: key, in: &state, moment) }
      }
    }
    // Another flight may be open by now.
    if let looked, !isHandedOver { register.remove(call.keys[0], looked.look.ticket) }
    return waiters
  }

  /// Notes that a load waits, or ends its wait if it would wait for itself.
  private func link(
    _ waiter: Int, _ chain: LoadChain, at key: RecordKey, in state: inout State,
    _ moment: Machine.Moment
  ) {
    guard let place = state.machine.waiters[waiter]?.place,
      let call = state.machine.waiters[waiter]?.call
    else { return }
    // The flight that a load waits for must not wait for the load.
    if chain.link(to: place.flight) {
      state.machine.waiters[waiter]?.link = (chain, place.flight)
    } else {
      apply(.left(waiter: waiter, call.circle(at: key)), to: &state, moment)
    }
  }

  /// Asks for a waiter whose load has replied for another caller alone.
  private func askAgain(_ id: Int, in state: inout State, _ moment: Machine.Moment) {
    guard let waiter = state.machine.waiters[id] else { return }
    let chain = waiter.link?.from
    if let link = waiter.link { link.from.unlink(from: link.to) }
    state.machine.waiters[id]?.link = nil
    let ask = Machine.Ask(
      call: waiter.call, index: waiter.index, waiter: id, flight: LoadChain.newNumber(),
      isNested: chain != nil, isAlone: true, epoch: invalidatedTags.epoch)
    apply(.asked(ask), to: &state, moment)
    if let chain { link(id, chain, at: ask.key, in: &state, moment) }
  }

  /// Starts the timers of a call that waits.
  private func schedule(_ loading: Loading, for waiters: [Int]) -> [@Sendable () -> Void] {
    let timeouts: [(span: Duration?, event: @Sendable (Int) -> Machine.Event)] = [
      (loading.softTimeout, { .softTimeout(waiter: $0) }),
      (loading.hardTimeout, { .left(waiter: $0, LoadTimeout()) }),
    ]
    guard timeouts.contains(where: { $0.span != nil }) else { return [] }
    let isWaiting = state.withLock { state in
      waiters.contains { state.machine.waiters[$0]?.place != nil }
    }
    guard isWaiting else { return [] }
    return timeouts.compactMap { timeout in
      timeout.span.map { span in
        timer(span) { [self] in for waiter in waiters { handle(timeout.event(waiter)) } }
      }
    }
  }

  /// Ends a wait whose outcome is no longer needed.
  private func leave(_ waiter: Int) {
    guard state.withLock({ $0.machine.waiters[waiter] != nil }) else { return }
    handle(.left(waiter: waiter, CancellationError()))
    state.withLock { $0.machine.waiters[waiter] = nil }
  }

  private func outcome(of waiter: Int) async -> Machine.Outcome {
    await withCheckedContinuation { continuation in
      let outcome = state.withLock { state -> Machine.Outcome? in
        guard let outcome = state.machine.waiters[waiter]?.outcome else {
          state.machine.waiters[waiter]?.continuation = continuation
          return nil
        }
        state.machine.waiters[waiter] = nil
        return outcome
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }
}

extension Task {
  /// Raises the priority, where the system can.
  func escalate(to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      escalatePriority(to: priority)
    }
  }
}

// MARK: - Watching

extension Loads {
  /// Whether somebody hears of the loads of a key.
  var isWatched: Bool { state.withLock { $0.machine.isWatched } }

  /// Calls `hear` for what happens to the loads of a key, those that are under way included.
  ///
  /// - Parameters:
  ///   - userKey: The key.
  ///   - hear: Called under the lock of the loads.
  /// - Returns: A closure that ends it.
  func watch(
    _ userKey: [UInt8], _ hear: @escaping @Sendable (Machine.News) -> Void
  ) -> @Sendable () -> Void {
    let number = LoadChain.newNumber()
    state.withLock { state in
      state.watches[userKey, default: [:]][number] = hear
      state.machine.isWatched = true
      for _ in 0..<state.machine.loads(of: userKey) { hear(.began) }
    }
    return { [weak self] in
      let removed = self?.state.withLock { state in
        let removed = state.watches[userKey]?.removeValue(forKey: number)
        if state.watches[userKey]?.isEmpty == true { state.watches[userKey] = nil }
        state.machine.isWatched = !state.watches.isEmpty
        return removed
      }
      // Released without the lock, because its end may run any code.
      _ = removed
    }
  }
}
