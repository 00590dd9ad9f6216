import Foundation

/// The flights of a cache and their waiters: who loads what, who waits, and what each caller gets.
///
/// Events go in and effects come out; it has no clock, no lock and no I/O. A *flight* is one load
/// with everything around it: reading the disk, waiting for a slot, the closure with its
/// repetitions, and saving. It has a *member* for each key, and a member has the *waiters* of that
/// key. A key has at most one open flight, which further callers join. ``Loads`` keeps the machine
/// under its lock, and keeps in each flight and waiter what it needs to execute the effects.
///
///     a caller asks       A flight is over for the caller if its key was changed since it began,
///                         or if any tag was invalidated: the entry that it finds, or its reply,
///                         may have the tag. It is closed then. Without an open flight, one starts
///                         and reads the disk, unless the caller has. Otherwise the caller gets the
///                         entry that the flight has found if it is fresh, or stale and allowed by
///                         the caller's options, and no new value is being saved; else it waits.
///     the disk was read   A fresh entry is returned, and refreshed if it is due. A stale one is
///                         returned if the waiter's options allow it, or after a failure not long
///                         ago. The load begins, once a slot is free, if a waiter needs it or an
///                         entry is to be refreshed.
///     the load failed     It is repeated later. After the last time, each waiter gets a stale
///                         entry that its options allow, or the error.
///     the load replied    The replies are saved; what is not to be saved is returned.
///     it is not shared    The reply, or the error, is for the caller whose closure was called.
///                         Each other waiter then gets its own flight, which no caller joins, and
///                         so do the callers that ask soon after, if the options say so.
///     the save ended      Each waiter gets the value, saved or not.
///     a waiter leaves     A flight without waiters is cancelled, unless it refreshes an entry in
///                         the background or is saving.
///     soft timeout        The waiter gets the stale entry if there is one. The load continues in
///                         the background.
///     hard timeout        The flight is closed, and no longer runs in the background. Once it has
///                         no waiter, it is abandoned: it ends, and its reply has no effect.
///     the store closes    Each waiter gets the error, and each load is cancelled.
///
/// A closed flight continues for its waiters, and later callers start another one. An entry is
/// judged when it is handed out: after a change of its key it can no longer be used.
struct LoadMachine: Sendable {
  typealias Outcome = Result<LoadedEntry<any Sendable>?, any Error>

  /// A key of a flight, by its index.
  struct Place: Hashable {
    let flight: Int
    let member: Int
  }

  /// The state of the entry that a flight has found, by the options of a caller or of the flight.
  enum Found {
    case fresh(isDue: Bool)
    /// For so long after its fresh time.
    case stale(Duration)
    /// Missing, expired, invalidated, unreadable, or of a newer program.
    case unusable
    /// The disk could not be read.
    case failed(any Error)

    /// Whether a refresh in the background loads.
    fileprivate var isDue: Bool {
      switch self {
      case .fresh(let isDue): isDue
      case .stale, .unusable: true
      case .failed: false
      }
    }
  }

  /// What holds when an event comes.
  struct Moment {
    let date: Date
    /// The clock's uptime.
    let now: Duration
    /// Whether the key of a flight was changed since the flight began.
    let isChanged: (WriteTicket) -> Bool
    /// The state of what was found, whether or not it was changed since.
    let judge: (LoadPart, Loading) -> Found

    fileprivate func state(of part: LoadPart, _ loading: Loading) -> Found {
      isChanged(part.ticket) ? .unusable : judge(part, loading)
    }
  }

  enum Phase {
    case looking, queued, loading, delaying, saving
  }

  struct Member {
    var part: LoadPart
    /// The waiter whose call began the flight; nil for a refresh in the background.
    let owner: Int?
    /// The waiters by their numbers, which are in the order in which they asked.
    fileprivate(set) var waiters: Set<Int> = []
    fileprivate(set) var isLoaded = false
    /// Whether the key is remembered as absent once the flight has ended.
    fileprivate(set) var isRemembered = false
  }

  struct Flight {
    let id: Int
    let call: LoadCall
    /// The number of times that tags were invalidated before it began.
    fileprivate let epoch: UInt64
    /// Whether the load continues when no caller waits for it.
    fileprivate var isBackground: Bool
    fileprivate(set) var phase = Phase.looking
    fileprivate(set) var members: [Member] = []
    fileprivate(set) var waiterCount = 0
    fileprivate var attempt = 0
    fileprivate(set) var isCancelled = false
    fileprivate var isNested = false
    fileprivate var hasSlot = false
    /// Whether its hard timeout has begun, and whether it is over.
    fileprivate var isLimited = false
    fileprivate var isOverdue = false

    // What executes it, which no transition reads.
    var looking: Looking
    var task: Task<Void, Never>?
    var priority = Task.currentPriority
    /// Whether its task has something to do, and what wakes the task then.
    var isReady = false
    var waking: CheckedContinuation<Void, Never>?
    /// The timers that run.
    var cancelDelay: (@Sendable () -> Void)?
    var cancelLimit: (@Sendable () -> Void)?
    /// The mark of the tasks of the closure that runs.
    var chain: LoadChain?

    /// The members that are loaded, or saved.
    var loaded: [Int] { members.indices.filter { members[$0].isLoaded } }
  }

  struct Waiter {
    let call: LoadCall
    /// The place of the key in the call.
    var index = 0
    /// Where it waits; nil once it was answered.
    fileprivate(set) var place: Place?
    fileprivate(set) var isOutOfPatience = false

    /// The load that waits, and the flight that it waits for.
    var link: (from: LoadChain, to: Int)?
    var continuation: CheckedContinuation<Outcome, Never>?
    /// The answer that the caller has not fetched.
    var outcome: Outcome?
  }

  /// Whether ``Effect/news(_:_:)`` is wanted.
  var isWatched = false
  private let limit: Int?
  private var isClosed = false
  var flights: [Int: Flight] = [:]
  /// The callers, until they have fetched their answers.
  var waiters: [Int: Waiter] = [:]
  /// The number of loads of a key that are under way.
  func loads(of userKey: [UInt8]) -> Int {
    flights.values.reduce(0) { sum, flight in
      sum + flight.loaded.count { flight.members[$0].part.key.userKey.elementsEqual(userKey) }
    }
  }

  /// The open flights.
  private(set) var open: [RecordKey: Place] = [:]
  private var queue: [Int] = []
  private var running = 0
  private var memos = LoadMemos()
  private var effects: [Effect] = []

  /// - Parameter limit: The maximum number of loads at once; nil for none.
  init(limit: Int? = nil) { self.limit = limit }

  mutating func handle(_ event: Event, _ moment: Moment) -> [Effect] {
    // An effect may have a flight, which holds the store: none is kept.
    defer { effects = [] }
    switch event {
    case .asked(let ask): asked(ask, moment)
    case .found(let flight, let found): looked(flight, found, moment)
    case .failed(let flight, let error, let isFinal): failed(flight, error, isFinal, moment)
    case .replied(let flight, let replies): replied(flight, replies, moment)
    case .saved(let flight, let outcomes): saved(flight, outcomes, moment)
    case .delayIsOver(let flight): if flights[flight]?.phase == .delaying { begin(flight) }
    case .left(let waiter, let error): left(waiter, error)
    case .softTimeout(let waiter): softTimeout(waiter, moment)
    case .hardTimeout(let flight): hardTimeout(flight)
    case .closed: close()
    }
    return effects
  }
}

// MARK: - Callers

extension LoadMachine {
  /// Whether a key has no open flight, and nothing is remembered of its last load.
  func isUnknown(_ key: RecordKey) -> Bool { open[key] == nil && !memos.has(key) }
}

extension LoadMachine {
  private mutating func asked(_ ask: Ask, _ moment: Moment) {
    if let waiter = ask.waiter {
      if waiters[waiter] == nil { waiters[waiter] = Waiter(call: ask.call, index: ask.index) }
      if isClosed { return answer(waiter, .failure(StoreError.closed)) }
      if !ask.call.isForced, let ticket = memos.absence(of: ask.key, at: moment.now),
        !moment.isChanged(ticket)
      {
        return answer(waiter, .absent)
      }
    }
    if isClosed { return }
    if let place = open[ask.key], isOver(place, for: ask, moment) { shut(place) }
    let isAlone =
      ask.isAlone || ask.waiter != nil && memos.isNotShared(ask.key, at: moment.now)
    if !isAlone, let place = open[ask.key] {
      if ask.waiter != nil, place.flight != ask.flight {
        effects.append(.joined(flight: place.flight))
      }
      return wait(at: place, ask, moment)
    }
    // A refresh in the background is not repeated shortly after a failure.
    if ask.waiter == nil, memos.failure(of: ask.key, at: moment.now) != nil { return }
    // The flight has a ticket of its own, so changes no longer end the absence.
    forget(memos.removeAbsence(of: ask.key))
    if flights[ask.flight] == nil {
      flights[ask.flight] = Flight(
        id: ask.flight, call: ask.call, epoch: ask.epoch, isBackground: ask.waiter == nil,
        looking: ask.looking)
      effects.append(.look(flight: ask.flight))
    }
    let place = Place(flight: ask.flight, member: flights[ask.flight]?.members.count ?? 0)
    flights[ask.flight]?.members.append(
      Member(
        part: LoadPart(key: ask.key, index: ask.index, ticket: ask.ticket), owner: ask.waiter))
    if !isAlone { open[ask.key] = place }
    wait(at: place, ask, moment)
  }

  /// Whether a caller must not join the flight; a refresh without a caller returns nothing of it.
  private func isOver(_ place: Place, for ask: Ask, _ moment: Moment) -> Bool {
    guard let flight = flights[place.flight] else { return true }
    return moment.isChanged(flight.members[place.member].part.ticket)
      || ask.waiter != nil && flight.epoch < ask.epoch
  }

  private mutating func wait(at place: Place, _ ask: Ask, _ moment: Moment) {
    guard let waiter = ask.waiter, let phase = flights[place.flight]?.phase else { return }
    waiters[waiter]?.place = place
    flights[place.flight]?.members[place.member].waiters.insert(waiter)
    flights[place.flight]?.waiterCount += 1
    // While a new value is saved, other reads may return it, so the entry is no longer returned.
    // An entry of a shared cache is not returned either: the tier may have another one by now.
    let isShared = flights[place.flight]?.members[place.member].part.found.sharing != nil
    if phase != .saving, !isShared, let entry = entry(for: waiter, moment, isLoading: true) {
      flights[place.flight]?.isBackground = true
      return answer(waiter, entry)
    }
    guard ask.isNested else { return }
    // It may wait for a slot that the caller's own load has.
    flights[place.flight]?.isNested = true
    if let index = queue.firstIndex(of: place.flight) {
      queue.remove(at: index)
      begin(place.flight)
    }
  }

  /// The entry as an answer, if the waiter may get it before the load has ended.
  private func entry(for waiter: Int, _ moment: Moment, isLoading: Bool = false) -> Answer? {
    guard let waiter = waiters[waiter], let place = waiter.place,
      let part = flights[place.flight]?.members[place.member].part
    else { return nil }
    return waiter.entry(moment.state(of: part, waiter.call.loading), isLoading: isLoading)
  }

  private mutating func left(_ waiter: Int, _ error: any Error) {
    guard let place = waiters[waiter]?.place else { return }
    answer(waiter, .failure(error))
    cancelIfUnneeded(place.flight)
  }

  private mutating func softTimeout(_ waiter: Int, _ moment: Moment) {
    guard let place = waiters[waiter]?.place else { return }
    waiters[waiter]?.isOutOfPatience = true
    guard case .entry(_, let failure)? = entry(for: waiter, moment) else { return }
    let isOverdue = flights[place.flight]?.isOverdue ?? true
    answer(waiter, .entry(isRefreshing: !isOverdue, failure: failure))
    if !isOverdue { flights[place.flight]?.isBackground = true }
    cancelIfUnneeded(place.flight)
  }

  /// Answers a waiter, which waits no longer.
  private mutating func answer(_ waiter: Int, _ answer: Answer) {
    var part: LoadPart?
    if let place = waiters[waiter]?.place {
      waiters[waiter]?.place = nil
      flights[place.flight]?.members[place.member].waiters.remove(waiter)
      flights[place.flight]?.waiterCount -= 1
      part = flights[place.flight]?.members[place.member].part
    }
    effects.append(.answer(waiter: waiter, part, answer))
  }

  /// Answers all waiters of a member, and closes it.
  private mutating func settle(
    _ place: Place, failure: (any Error)? = nil, _ answer: (Waiter) -> Answer
  ) {
    reportEnd(of: place, failure)
    for id in flights[place.flight]?.members[place.member].waiters.sorted() ?? [] {
      if let waiter = waiters[id] { self.answer(id, answer(waiter)) }
    }
    flights[place.flight]?.members[place.member].isLoaded = false
    shut(place)
  }

  /// Answers the waiter whose closure was called, and lets each of the others load for itself.
  private mutating func settleAlone(_ place: Place, _ answer: (Waiter) -> Answer) {
    let owner = flights[place.flight]?.members[place.member].owner
    for id in flights[place.flight]?.members[place.member].waiters.sorted() ?? []
    where id != owner {
      waiters[id]?.place = nil
      flights[place.flight]?.members[place.member].waiters.remove(id)
      flights[place.flight]?.waiterCount -= 1
      effects.append(.askAgain(waiter: id))
    }
    settle(place, answer)
  }

  private mutating func reportEnd(of place: Place, _ failure: (any Error)?) {
    guard isWatched, let flight = flights[place.flight], flight.members[place.member].isLoaded
    else { return }
    let news = News.ended(failure: failure, wasSaving: flight.phase == .saving)
    effects.append(.news(flight.members[place.member].part.key, news))
  }
}

extension LoadMachine.Waiter {
  fileprivate func entry(
    _ found: LoadMachine.Found, isLoading: Bool = false, after failure: (any Error)? = nil
  ) -> LoadMachine.Answer? {
    if case .failed(let error) = found { return .failure(error) }
    if call.isForced { return nil }
    switch found {
    case .fresh(let isDue):
      return .entry(isRefreshing: isLoading || isDue && failure == nil, failure: nil)
    case .stale(let span):
      if let failure, call.loading.staleWhileRevalidate || mayReturnAfterError(span) {
        return .entry(isRefreshing: false, failure: failure)
      }
      guard call.loading.staleWhileRevalidate || isOutOfPatience else { return nil }
      return .entry(isRefreshing: true, failure: nil)
    case .unusable, .failed: return nil
    }
  }

  fileprivate func mayReturnAfterError(_ span: Duration) -> Bool {
    call.loading.staleIfError.map { span <= $0 } ?? false
  }
}

// MARK: - Flights

extension LoadMachine {
  private mutating func looked(_ id: Int, _ found: [LoadFound], _ moment: Moment) {
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    for (index, found) in found.enumerated() {
      var part = flight.members[index].part
      part.found = found
      flights[id]?.members[index].part = part
      let waiting = flight.members[index].waiters.sorted()
      let failure = memos.failure(of: part.key, at: moment.now)
      var isLoaded =
        waiting.isEmpty && flight.isBackground && failure == nil
        && moment.judge(part, flight.call.loading).isDue
      for waiter in waiting {
        // It was just read, after the last change of the key that any of them knows of.
        let entry = waiters[waiter].flatMap {
          $0.entry(moment.judge(part, $0.call.loading), after: failure)
        }
        guard let entry else {
          isLoaded = true
          continue
        }
        answer(waiter, entry)
        if case .entry(isRefreshing: true, _) = entry {
          isLoaded = true
          flights[id]?.isBackground = true
        }
      }
      flights[id]?.members[index].isLoaded = isLoaded
      if isLoaded, isWatched { effects.append(.news(part.key, .began)) }
      if !isLoaded { shut(Place(flight: id, member: index)) }
    }
    if flights[id]?.loaded.isEmpty == true { end(id) } else { begin(id) }
  }

  private mutating func begin(_ id: Int) {
    guard let flight = flights[id] else { return }
    if !flight.isNested, let limit {
      guard running < limit else {
        flights[id]?.phase = .queued
        queue.append(id)
        return
      }
      running += 1
      flights[id]?.hasSlot = true
    }
    flights[id]?.phase = .loading
    if !flight.isLimited, flight.call.loading.hardTimeout != nil {
      flights[id]?.isLimited = true
      effects.append(.limit(flight: id))
    }
    effects.append(.load(flight: id))
  }

  private mutating func failed(
    _ id: Int, _ error: any Error, _ isFinal: Bool, _ moment: Moment
  ) {
    releaseSlot(id)
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    let loading = flight.call.loading
    let wait = (error as? any RetryTimeError)?.retryAfter
    if !isFinal, flight.attempt < loading.retries.extra, wait ?? .zero <= loading.retries.upTo {
      flights[id]?.attempt += 1
      flights[id]?.phase = .delaying
      effects.append(.delay(flight: id, attempt: flight.attempt + 1, atLeast: wait))
      return
    }
    let alone = error as? NotShared
    for index in flight.loaded {
      let (place, part) = (Place(flight: id, member: index), flight.members[index].part)
      func answer(_ waiter: Waiter) -> Answer {
        let error = alone?.error ?? error
        if case .stale(let span) = moment.state(of: part, waiter.call.loading),
          !waiter.call.isForced, waiter.mayReturnAfterError(span)
        {
          return .entry(isRefreshing: false, failure: error)
        }
        return .failure(error)
      }
      if alone != nil {
        settleAlone(place, answer)
        continue
      }
      if let throttle = loading.retryThrottle {
        let span = max(throttle, min(wait ?? .zero, .seconds(86_400)))
        forget(memos.set(.failure(error), of: part.key, until: moment.now + span.limited))
      }
      settle(place, failure: error, answer)
    }
    end(id)
  }

  private mutating func replied(
    _ id: Int, _ replies: [LoadReply<any Sendable>], _ moment: Moment
  ) {
    releaseSlot(id)
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    for (index, reply) in zip(flight.loaded, replies) {
      let (place, part) = (Place(flight: id, member: index), flight.members[index].part)
      flights[id]?.members[index].part.reply = reply
      memos.removeOutcome(of: part.key)
      switch reply.content {
      case .unsaved: settle(place) { _ in .loaded(.unwanted) }
      case .notShared:
        if let span = flight.call.loading.notSharedFor, span > .zero {
          forget(memos.set(.notShared, of: part.key, until: moment.now + span.limited))
        }
        settleAlone(place) { _ in .loaded(.unwanted) }
      case .unchanged where part.found.entry == nil:
        let failure = StoreError.unchangedWithoutEntry
        settle(place, failure: failure) { _ in .failure(failure) }
      case .value, .unchanged, .absent: break
      }
    }
    if flights[id]?.loaded.isEmpty == true { return end(id) }
    flights[id]?.phase = .saving
    if isWatched, let flight = flights[id] {
      for index in flight.loaded {
        effects.append(.news(flight.members[index].part.key, .saving))
      }
    }
    effects.append(.save(flight: id))
  }

  private mutating func saved(_ id: Int, _ outcomes: [LoadSaving], _ moment: Moment) {
    guard let flight = flights[id] else { return }
    for (index, outcome) in zip(flight.loaded, outcomes) {
      let (place, part) = (Place(flight: id, member: index), flight.members[index].part)
      if case .absent(let own)? = part.reply?.content, outcome.isDone, open[part.key] == place,
        let span = own ?? flight.call.loading.absentFor, span > .zero
      {
        flights[id]?.members[index].isRemembered = true
        forget(memos.set(.absent(part.ticket), of: part.key, until: moment.now + span.limited))
      }
      settle(place) { _ in .loaded(outcome) }
    }
    end(id)
  }

  /// Lets later callers start another flight for a key.
  private mutating func shut(_ place: Place) {
    guard let key = flights[place.flight]?.members[place.member].part.key, open[key] == place
    else { return }
    open[key] = nil
  }

  private mutating func shutAll(of id: Int) {
    for index in flights[id]?.members.indices ?? 0..<0 { shut(Place(flight: id, member: index)) }
  }

  private mutating func hardTimeout(_ id: Int) {
    guard let flight = flights[id], flight.phase != .saving else { return }
    if flight.isCancelled { return end(id) }
    flights[id]?.isOverdue = true
    flights[id]?.isBackground = false
    shutAll(of: id)
    cancelIfUnneeded(id)
  }

  private mutating func cancelIfUnneeded(_ id: Int) {
    guard let flight = flights[id], flight.waiterCount == 0, !flight.isBackground,
      !flight.isCancelled, flight.phase != .saving
    else { return }
    cancel(id)
  }

  /// Cancels a flight without waiters.
  private mutating func cancel(_ id: Int) {
    guard let flight = flights[id] else { return }
    flights[id]?.isCancelled = true
    shutAll(of: id)
    switch flight.phase {
    case .looking, .loading:
      effects.append(.cancel(flight))
      // A load that ignores this keeps its slot until its hard timeout.
      if flight.isOverdue { end(id) }
    case .queued, .delaying:
      queue.removeAll { $0 == id }
      end(id)
    case .saving: break
    }
  }

  private mutating func end(_ id: Int) {
    shutAll(of: id)
    releaseSlot(id)
    for index in flights[id]?.loaded ?? [] {
      reportEnd(
        of: Place(flight: id, member: index), flights[id]?.isOverdue == true ? LoadTimeout() : nil)
    }
    if let flight = flights.removeValue(forKey: id) { effects.append(.end(flight)) }
  }

  private mutating func releaseSlot(_ id: Int) {
    guard flights[id]?.hasSlot == true, let limit else { return }
    flights[id]?.hasSlot = false
    running -= 1
    while running < limit, !queue.isEmpty { begin(queue.removeFirst()) }
  }

  private mutating func close() {
    isClosed = true
    for id in flights.keys.sorted() {
      for index in flights[id]?.members.indices ?? 0..<0 {
        for waiter in flights[id]?.members[index].waiters.sorted() ?? [] {
          answer(waiter, .failure(StoreError.closed))
        }
      }
      cancel(id)
    }
    forget(memos.removeAll())
  }

  private mutating func forget(_ absences: [LoadMemos.Absence]) {
    for absence in absences { effects.append(.forget(absence.key, absence.ticket)) }
  }
}
