import Foundation
import Synchronization

/// The loads of a cache: executes what its ``LoadMachine`` decides.
///
/// One lock guards the machine, which has all flights and waiters. Closures of the program,
/// continuations and timers run outside of it. The register's lock is taken inside of it: the keys
/// of a load are removed from the register before its callers are resumed.
///
/// A flight has a task on the store's threads, which reads, and saves what was loaded; only the
/// closure runs elsewhere. The task waits while the machine has nothing for it to do.
final class Loads: LoadOwner {
  typealias Machine = LoadMachine

  struct State: Sendable {
    var machine: Machine
    /// The keys that are looked for without a flight.
    var looks: Set<RecordKey> = []
    /// Who hears of the loads of a key, by the user's key and a number.
    var watches: [[UInt8]: [Int: @Sendable (Machine.News) -> Void]] = [:]
    /// What is to be done without the lock.
    var work: [@Sendable () -> Void] = []
  }

  private let state: BusyLock<State>
  private let register: LoadRegister
  private let invalidatedTags: InvalidatedTags
  private let activity: Activity
  let lifetime: Lifetime
  private let clock: any WallClock
  private let timer: LoadTimer
  private let random: @Sendable () -> Double
  /// Spreads the refreshes ahead of time over processes.
  let seed: Double
  private let cacheCounts: CacheCounts

  init(of context: StoreContext, _ lifetime: Lifetime, limit: Int?, counts: CacheCounts) {
    state = BusyLock(State(machine: Machine(limit: limit)))
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

  private func moment() -> Machine.Moment {
    let (date, now) = (clock.now(), clock.uptime())
    return Machine.Moment(
      date: date, now: now, isChanged: \.isRevoked,
      judge: { [self] part, loading in
        let found = judge(part.found, loading, at: date)
        guard let sharing = part.found.sharing else { return found }
        return sharing.judge(found, at: now)
      })
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

  private func apply(_ event: Machine.Event, to state: inout State, _ moment: Machine.Moment) {
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

  /// The entry that was found for a part, if it is fresh.
  func entry(
    of part: LoadPart, _ loading: Loading
  ) throws -> LoadedEntry<any Sendable>? {
    let moment = moment()
    switch moment.judge(part, loading) {
    case .failed(let failure): throw failure
    case .fresh:
      return try outcome(
        of: .entry(isRefreshing: false, failure: nil), part, loading, at: moment
      ).get()
    case .stale, .unusable: return nil
    }
  }
}

// MARK: - Callers

extension Loads {
  /// Looks for a fresh entry on disk, without a flight, which would take three times as long.
  ///
  /// - Returns: The entry of the call's key; nil if there is no fresh one, if it was changed during
  ///   the look, or if only a flight can answer: the key is being loaded, something is remembered
  ///   of its last load, a tier can be asked, or the options ask for more than a fresh entry.
  func freshEntry(for call: LoadCall) async throws -> LoadedEntry<any Sendable>? {
    let (key, loading) = (call.keys[0], call.loading)
    guard !loading.isTimed, loading.softTimeout == nil, loading.hardTimeout == nil else {
      return nil
    }
    // A flight asks for a key that is missing once; a look before it would ask twice.
    let tier = call.core.tier
    if let tier, !tier.servesLocal || tier.canBeAsked(for: key.userKey) { return nil }
    try Task.checkCancellation()
    // Of many callers at once one looks, and the others share a flight.
    let looks = state.withLock { state in
      state.machine.isUnknown(key) && state.looks.insert(key).inserted
    }
    guard looks else { return nil }
    return await withCheckedContinuation { continuation in
      Task(executorPreference: call.store.executor) { [self] in
        let entry =
          if let tier {
            await call.core.localEntry(under: key, in: tier)
          } else {
            freshEntry(under: key, call.core)
          }
        state.withLock { _ = $0.looks.remove(key) }
        continuation.resume(returning: entry)
      }
    }
  }

  private func freshEntry(
    under key: RecordKey, _ core: any LoadingCache
  ) -> LoadedEntry<any Sendable>? {
    let ticket = WriteTicket()
    guard register.add(key, ticket, of: self) else { return nil }
    defer { register.remove(key, ticket) }
    let found = core.find(key, isFinal: false)
    register.add(tags: found.tags, to: key, ticket)
    let date = clock.now()
    guard let entry = found.entry, freshness(of: entry, Loading(), at: date) == .fresh,
      !ticket.isRevoked
    else { return nil }
    return LoadedEntry(entry, age: Duration(from: entry.savedAt, to: date))
  }

  /// Returns the value of each key of a call, loaded if need be.
  ///
  /// Throws the first error of a key; the call then waits for no other key.
  func entries(for call: LoadCall) async throws -> [LoadedEntry<any Sendable>?] {
    try Task.checkCancellation()
    let waiters = ask(call)
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
  private func ask(_ call: LoadCall, isWaiting: Bool = true) -> [Int] {
    let (moment, epoch) = (moment(), invalidatedTags.epoch)
    let chain = isWaiting ? LoadChain.running : nil
    let flight = LoadChain.newNumber()
    var waiters: [Int] = []
    perform { state in
      for (index, key) in call.keys.enumerated() {
        let waiter = isWaiting ? LoadChain.newNumber() : nil
        if let waiter { waiters.append(waiter) }
        let ask = Machine.Ask(
          call: call, index: index, waiter: waiter, flight: flight, isNested: chain != nil,
          epoch: epoch)
        if let waiter, chain?.includes(key, of: ObjectIdentifier(self)) == true {
          state.machine.waiters[waiter] = Machine.Waiter(
            call: call, outcome: .failure(call.circle(at: key)))
          continue
        }
        apply(.asked(ask), to: &state, moment)
        if let chain, let waiter { link(waiter, chain, at: key, in: &state, moment) }
      }
    }
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
  fileprivate func escalate(to priority: TaskPriority) {
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

// MARK: - Flights

extension Loads {
  /// Registers the keys of a flight, and starts its task.
  private func start(_ id: Int) {
    guard let flight = state.withLock({ $0.machine.flights[id] }) else { return }
    var isOpen = true
    for member in flight.members {
      isOpen = register.add(member.part.key, member.part.ticket, of: self) && isOpen
    }
    let task = Task(executorPreference: flight.call.store.executor) { [self] in
      await fly(flight, isOpen: isOpen)
    }
    let (isCancelled, priority) = state.withLock { state in
      state.machine.flights[id]?.task = task
      // A flight that has ended was abandoned, or its task is about to return.
      let flight = state.machine.flights[id]
      return (flight?.isCancelled ?? true, flight?.priority)
    }
    if isCancelled { task.cancel() }
    if let priority, priority > flight.priority { task.escalate(to: priority) }
  }

  private func fly(_ flight: Machine.Flight, isOpen: Bool) async {
    let (core, store) = (flight.call.core, flight.call.store)
    let tier = core.tier
    var found = flight.members.map { isOpen ? core.find($0.part) : LoadFound(failure: .closed) }
    var claimed: [UInt8]?
    if let tier {
      found = await core.ask(tier, flight.members.map { $0.part }, found)
      // Loads of several keys, or within another load, could wait for each other.
      if found.count == 1, !flight.call.isForced, LoadChain.running == nil {
        (found[0], claimed) = await core.claimLoad(
          of: flight.members[0].part, found[0], in: tier, timer)
        if claimed != nil { activity.begin() }
      }
    }
    var step = await next(of: flight.id, after: .found(flight: flight.id, found))
    while let flight = step {
      if flight.phase == .saving {
        let parts = flight.loaded.map { flight.members[$0].part }
        let outcomes =
          if let tier { await core.save(parts, by: store, in: tier) } else {
            core.save(parts, by: store)
          }
        step = await next(of: flight.id, after: .saved(flight: flight.id, outcomes))
      } else {
        step = await withTaskExecutorPreference(globalConcurrentExecutor) {
          await next(of: flight.id, after: await load(flight))
        }
      }
    }
    if let tier, let claimed {
      await tier.releaseLoad(of: claimed)
      for waiter in activity.end() { waiter.resume() }
    }
  }

  /// Handles an event of a flight, and waits until there is something to do for its task.
  ///
  /// - Returns: The flight; nil once it has ended.
  private func next(of id: Int, after event: Machine.Event) async -> Machine.Flight? {
    let moment = moment()
    var isOver = false
    await withCheckedContinuation { continuation in
      perform { state in
        apply(event, to: &state, moment)
        isOver = state.machine.flights[id] == nil
        if state.machine.flights[id]?.isReady == false {
          state.machine.flights[id]?.waking = continuation
        } else {
          state.work.append { continuation.resume() }
        }
      }
    }
    if isOver { return nil }
    return state.withLock { state in
      state.machine.flights[id]?.isReady = false
      return state.machine.flights[id]
    }
  }

  /// Calls the closure of a flight, and returns how that has ended.
  private func load(_ flight: Machine.Flight) async -> Machine.Event {
    cacheCounts.loads.loads.add()
    let (date, start) = (clock.now(), clock.uptime())
    let (call, parts) = (flight.call, flight.loaded.map { flight.members[$0].part })
    let needs = parts.map { ($0.index, previous($0.found, at: date)) }
    var (replies, failure): ([LoadReply<any Sendable>], (any Error)?) = ([], nil)
    let chain = LoadChain(
      flight.id, Set(flight.members.map { $0.part.key }), of: ObjectIdentifier(self))
    state.withLock { $0.machine.flights[flight.id]?.chain = chain }
    do {
      replies = try await LoadChain.$current.withValue(chain) {
        #if Tracing
          try await inSpan(flight) { try await call.load(needs) }
        #else
          try await call.load(needs)
        #endif
      }
    } catch {
      failure = error
    }
    chain.end()
    let time = clock.uptime() - start
    call.core.context.log.loaded(parts.count, of: call.core.name, in: time, failure: failure)
    let nanoseconds = max(0, time.limited.wholeNanoseconds)
    if call.core.isReporting {
      for part in parts { call.core.report(.loaded(in: time, failure: failure), of: part.key) }
    }
    cacheCounts.loads.nanoseconds.add(nanoseconds)
    cacheCounts.loads.times.add(nanoseconds: nanoseconds)
    var isFinal = failure is CancellationError || failure is NotShared
    if failure == nil, replies.count != parts.count {
      isFinal = true
      failure = StoreError.invalidArgument(
        """
        the load of \(parts.count) keys returned \(replies.count) replies; return one for each \
        key, in their order
        """)
    }
    if let failure {
      cacheCounts.loads.failures.add()
      return .failed(flight: flight.id, failure, isFinal: isFinal)
    }
    return .replied(flight: flight.id, replies)
  }
}
