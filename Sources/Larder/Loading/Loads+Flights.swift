import Foundation

// The tasks of flights.

extension Loads {
  /// Starts the task of a flight.
  func start(_ id: Int) {
    guard let flight = state.withLock({ $0.machine.flights[id] }) else { return }
    let task = Task(executorPreference: flight.call.store.executor) { [self] in
      await fly(flight)
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

  private func fly(_ flight: Machine.Flight) async {
    let (core, store) = (flight.call.core, flight.call.store)
    let tier = core.tier
    var found: [LoadFound]
    if case .done(let looked) = await looking(for: flight) {
      found = [looked]
    } else {
      found = await look(for: flight, tier)
    }
    var claimed: [UInt8]?
    if let tier {
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

  /// Registers the keys of a flight, reads their entries and asks the tier.
  private func look(
    for flight: Machine.Flight, _ tier: (any RecordTier)?
  ) async -> [LoadFound] {
    let (core, parts) = (flight.call.core, flight.members.map { $0.part })
    var isOpen = true
    for part in parts { isOpen = register.add(part.key, part.ticket, of: self) && isOpen }
    let found = parts.map { isOpen ? core.find($0) : LoadFound(failure: .closed) }
    guard let tier else { return found }
    return await core.ask(tier, parts, found)
  }

  /// Who looks for a flight, after a call that does has ended its look.
  private func looking(for flight: Machine.Flight) async -> Machine.Looking {
    guard case .byCall = flight.looking else { return flight.looking }
    let key = flight.members[0].part.key
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        guard state.looks[key]?.flight == flight.id else { return true }
        state.looks[key]?.waking = continuation
        return false
      }
      if isOver { continuation.resume() }
    }
    return state.withLock { $0.machine.flights[flight.id]?.looking } ?? .byTask
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
