/// Decides who loads what, who waits, and what each caller gets.
///
/// Events go in and effects come out; it has no clock, no task, no lock and no I/O. A *flight* is
/// one load with everything around it: reading the disk, waiting for a slot, the closure with its
/// repetitions, and saving. It has a *member* for each key, and a member has the *waiters* of that
/// key. A key has at most one open flight, which further callers join.
///
///     a caller asks       Without an open flight, one starts and reads the disk. Otherwise the
///                         caller gets the entry that the flight has found if it is fresh, or
///                         stale and allowed by the caller's options, and no new value is being
///                         saved; else it waits. A flight that began before a tag was invalidated
///                         is closed first: the entry that it finds, or its reply, may have the
///                         tag.
///     the disk was read   A fresh entry is returned, and refreshed if it is due. A stale one is
///                         returned if the waiter's options allow it, or after a failure not long
///                         ago. The load begins, once a slot is free, if a waiter needs it or an
///                         entry is to be refreshed.
///     the load failed     It is repeated later. After the last time, each waiter gets a stale
///                         entry that its options allow, or the error.
///     the load replied    The replies are saved; what is not to be saved is returned.
///     the save ended      Each waiter gets the value, saved or not.
///     the key changed     The flight is closed: it continues for its waiters, and later callers
///                         start another one.
///     a waiter leaves     A flight without waiters is cancelled, unless it refreshes an entry in
///                         the background or is saving.
///     soft timeout        The waiter gets the stale entry if there is one. The load continues in
///                         the background.
///     hard timeout        The flight is closed. Once it has no waiter, it is abandoned: it ends,
///                         and its reply has no effect.
///     the store closes    Each waiter gets the error, and each load is cancelled.
struct LoadMachine {
  typealias Key = [UInt8]

  /// A key of a flight, by its index.
  struct Place: Hashable {
    let flight: Int
    let member: Int
  }

  /// The state of the entry that a flight has found, by the options of a caller or of the flight.
  typealias State = (Loading) -> Found

  enum Found {
    case fresh(isDue: Bool)
    /// For so long after its fresh time.
    case stale(Duration)
    /// Missing, expired, invalidated, unreadable, or of a newer program.
    case unusable
    /// The disk could not be read.
    case failed(any Error)
  }

  enum Reply {
    case save, unsaved, absent
    case failed(any Error)
  }

  enum Saving {
    /// On disk.
    case done
    /// Not to be saved.
    case unwanted
    /// A change of the key during the load has won.
    case overtaken
    case failed(StoreError)

    var isDone: Bool { if case .done = self { true } else { false } }
  }

  /// A caller, or a refresh for which no caller waits.
  struct Ask {
    let key: Key
    let waiter: Int?
    /// The flight to start if none is open for the key.
    let flight: Int
    let loading: Loading
    var isForced = false
    /// Whether the caller is a load itself.
    var isNested = false
    /// The state of the entry of the open flight by `loading`; nil if it is not known.
    var found: Found?
    /// The number of times that tags were invalidated before the call.
    var epoch: UInt64 = 0
    /// The clock's uptime.
    let now: Duration
  }

  enum Event {
    case asked(Ask)
    case found(flight: Int, [State], now: Duration)
    case failed(flight: Int, any Error, isFinal: Bool, [State], now: Duration)
    /// One reply for each member to load.
    case replied(flight: Int, [Reply])
    /// One outcome for each member to save.
    case saved(flight: Int, [Saving], now: Duration)
    case delayIsOver(flight: Int)
    case changed(Key)
    case left(waiter: Int, any Error)
    case softTimeout(waiter: Int, State?)
    case hardTimeout(flight: Int)
    case closed
  }

  enum Answer {
    /// The entry that the flight has found; with the error of a load that failed.
    case entry(isRefreshing: Bool, failure: (any Error)?)
    /// What the load has brought.
    case loaded(Saving)
    case absent
    case failure(any Error)
  }

  enum Effect {
    case look(flight: Int)
    case load(flight: Int, members: [Int])
    case save(flight: Int, members: [Int])
    case delay(flight: Int, attempt: Int)
    /// The hard timeout of the flight begins.
    case limit(flight: Int)
    case cancel(flight: Int)
    case end(flight: Int)
    case answer(waiter: Int, Place?, Answer)
    /// The key of the place is remembered as absent.
    case remember(Place)
    case forget(Key)
  }

  private enum Phase {
    case looking, queued, loading, delaying, saving
  }

  fileprivate struct Waiter {
    let id: Int
    let loading: Loading
    let isForced: Bool
    var isOutOfPatience = false
  }

  private struct Member {
    let key: Key
    /// The waiters by their numbers, which are in the order in which they asked.
    var waiters: [Int: Waiter] = [:]
    var isLoaded = false
    var isAbsent = false

    var inOrder: [Waiter] { waiters.values.sorted { $0.id < $1.id } }
  }

  private struct Flight {
    let loading: Loading
    /// The number of times that tags were invalidated before it began.
    let epoch: UInt64
    /// Whether the load continues when no caller waits for it.
    var isBackground: Bool
    var phase = Phase.looking
    var members: [Member] = []
    var waiterCount = 0
    var attempt = 0
    var isCancelled = false
    var isNested = false
    var hasSlot = false
    /// Whether its hard timeout has begun, and whether it is over.
    var isLimited = false
    var isOverdue = false

    /// The members that are loaded, or saved.
    var loaded: [Int] { members.indices.filter { members[$0].isLoaded } }
  }

  private let limit: Int?
  private var isClosed = false
  private var flights: [Int: Flight] = [:]
  private var open: [Key: Place] = [:]
  private var places: [Int: Place] = [:]
  private var queue: [Int] = []
  private var running = 0
  private var memos = LoadMemos()
  private var effects: [Effect] = []

  /// - Parameter limit: The maximum number of loads at once; nil for none.
  init(limit: Int? = nil) { self.limit = limit }

  /// The open flight of a key.
  func place(of key: Key) -> Place? { open[key] }

  /// The place where a waiter waits.
  func place(ofWaiter waiter: Int) -> Place? { places[waiter] }

  /// Whether any waiter waits for a flight.
  func hasWaiters(_ flight: Int) -> Bool { flights[flight]?.waiterCount ?? 0 > 0 }

  mutating func handle(_ event: Event) -> [Effect] {
    effects = []
    switch event {
    case .asked(let ask): asked(ask)
    case .found(let flight, let found, let now): looked(flight, found, now)
    case .failed(let flight, let error, let isFinal, let found, let now):
      failed(flight, error, isFinal: isFinal, found, now)
    case .replied(let flight, let replies): replied(flight, replies)
    case .saved(let flight, let outcomes, let now): saved(flight, outcomes, now)
    case .delayIsOver(let flight): if flights[flight]?.phase == .delaying { begin(flight) }
    case .changed(let key):
      open[key] = nil
      forget(memos.removeAbsence(of: key))
    case .left(let waiter, let error): left(waiter, error)
    case .softTimeout(let waiter, let found): softTimeout(waiter, found)
    case .hardTimeout(let flight): hardTimeout(flight)
    case .closed: close()
    }
    return effects
  }
}

// MARK: - Callers

extension LoadMachine {
  private mutating func asked(_ ask: Ask) {
    if let waiter = ask.waiter {
      if isClosed { return answer(waiter, nil, .failure(StoreError.closed)) }
      if !ask.isForced, memos.isAbsent(ask.key, at: ask.now) {
        return answer(waiter, nil, .absent)
      }
    }
    if isClosed { return }
    if let place = open[ask.key] {
      let isOutdated = flights[place.flight].map { $0.epoch < ask.epoch } ?? true
      // A refresh for which no caller waits returns nothing.
      guard isOutdated, ask.waiter != nil else { return join(place, ask) }
      shut(place)
    }
    // A refresh in the background is not repeated shortly after a failure.
    if ask.waiter == nil, memos.failure(of: ask.key, at: ask.now) != nil { return }
    // The flight has a ticket of its own, so changes no longer end the absence.
    forget(memos.removeAbsence(of: ask.key))
    if flights[ask.flight] == nil {
      flights[ask.flight] = Flight(
        loading: ask.loading, epoch: ask.epoch, isBackground: ask.waiter == nil)
      effects.append(.look(flight: ask.flight))
    }
    let place = Place(flight: ask.flight, member: flights[ask.flight]?.members.count ?? 0)
    flights[ask.flight]?.members.append(Member(key: ask.key))
    open[ask.key] = place
    wait(at: place, ask)
  }

  private mutating func join(_ place: Place, _ ask: Ask) {
    let waiter = Waiter(ask)
    // While a new value is saved, other reads may return it, so the entry is no longer returned.
    let hasEntry = ![nil, .looking, .saving].contains(flights[place.flight]?.phase)
    if let waiter, let found = ask.found, hasEntry,
      let entry = waiter.entry(found, isLoading: true)
    {
      flights[place.flight]?.isBackground = true
      return answer(waiter.id, place, entry)
    }
    wait(at: place, ask)
  }

  private mutating func wait(at place: Place, _ ask: Ask) {
    guard let waiter = Waiter(ask) else { return }
    flights[place.flight]?.members[place.member].waiters[waiter.id] = waiter
    flights[place.flight]?.waiterCount += 1
    places[waiter.id] = place
    guard ask.isNested else { return }
    // It may wait for a slot that the caller's own load has.
    flights[place.flight]?.isNested = true
    if let index = queue.firstIndex(of: place.flight) {
      queue.remove(at: index)
      begin(place.flight)
    }
  }

  private mutating func left(_ waiter: Int, _ error: any Error) {
    guard let place = remove(waiter) else { return }
    answer(waiter, place, .failure(error))
    guard let flight = flights[place.flight], !flight.isBackground, !flight.isCancelled,
      flight.phase != .saving, !hasWaiters(place.flight)
    else { return }
    cancel(place.flight)
  }

  private mutating func softTimeout(_ waiter: Int, _ state: State?) {
    guard let place = places[waiter], let phase = flights[place.flight]?.phase,
      var waiter = flights[place.flight]?.members[place.member].waiters[waiter]
    else { return }
    waiter.isOutOfPatience = true
    flights[place.flight]?.members[place.member].waiters[waiter.id] = waiter
    let isOverdue = flights[place.flight]?.isOverdue ?? false
    guard phase != .looking, let state,
      case .entry(_, let failure)? = waiter.entry(state(waiter.loading))
    else { return }
    _ = remove(waiter.id)
    answer(waiter.id, place, .entry(isRefreshing: !isOverdue, failure: failure))
    if !isOverdue {
      flights[place.flight]?.isBackground = true
    } else if phase != .saving, !hasWaiters(place.flight) {
      cancel(place.flight)
    }
  }

  private mutating func remove(_ waiter: Int) -> Place? {
    guard let place = places.removeValue(forKey: waiter) else { return nil }
    flights[place.flight]?.members[place.member].waiters[waiter] = nil
    flights[place.flight]?.waiterCount -= 1
    return place
  }

  private mutating func answer(_ waiter: Int, _ place: Place?, _ answer: Answer) {
    places[waiter] = nil
    effects.append(.answer(waiter: waiter, place, answer))
  }

  /// Answers all waiters of a member, and closes it.
  private mutating func settle(_ place: Place, _ answer: (Waiter) -> Answer) {
    for waiter in flights[place.flight]?.members[place.member].inOrder ?? [] {
      _ = remove(waiter.id)
      self.answer(waiter.id, place, answer(waiter))
    }
    flights[place.flight]?.members[place.member].isLoaded = false
    shut(place)
  }
}

extension LoadMachine.Waiter {
  fileprivate init?(_ ask: LoadMachine.Ask) {
    guard let id = ask.waiter else { return nil }
    self.init(id: id, loading: ask.loading, isForced: ask.isForced)
  }

  /// The entry as an answer, if the waiter may get it before the load has ended.
  fileprivate func entry(
    _ found: LoadMachine.Found, isLoading: Bool = false, after failure: (any Error)? = nil
  ) -> LoadMachine.Answer? {
    if case .failed(let error) = found { return .failure(error) }
    if isForced { return nil }
    switch found {
    case .fresh(let isDue):
      return .entry(isRefreshing: isLoading || isDue && failure == nil, failure: nil)
    case .stale(let span):
      if let failure, loading.staleWhileRevalidate || mayReturnAfterError(span) {
        return .entry(isRefreshing: false, failure: failure)
      }
      guard loading.staleWhileRevalidate || isOutOfPatience else { return nil }
      return .entry(isRefreshing: true, failure: nil)
    case .unusable, .failed: return nil
    }
  }

  fileprivate func mayReturnAfterError(_ span: Duration) -> Bool {
    loading.staleIfError.map { span <= $0 } ?? false
  }
}

// MARK: - Flights

extension LoadMachine {
  private mutating func looked(_ id: Int, _ states: [State], _ now: Duration) {
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    for (index, state) in states.enumerated() {
      let place = Place(flight: id, member: index)
      let member = flight.members[index]
      let failure = memos.failure(of: member.key, at: now)
      var isLoaded =
        member.waiters.isEmpty && flight.isBackground && failure == nil
        && state(flight.loading).isDue
      for waiter in member.inOrder {
        guard let entry = waiter.entry(state(waiter.loading), after: failure) else {
          isLoaded = true
          continue
        }
        _ = remove(waiter.id)
        answer(waiter.id, place, entry)
        if case .entry(isRefreshing: true, _) = entry {
          isLoaded = true
          flights[id]?.isBackground = true
        }
      }
      flights[id]?.members[index].isLoaded = isLoaded
      if !isLoaded { shut(place) }
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
    if !flight.isLimited, flight.loading.hardTimeout != nil {
      flights[id]?.isLimited = true
      effects.append(.limit(flight: id))
    }
    effects.append(.load(flight: id, members: flight.loaded))
  }

  private mutating func failed(
    _ id: Int, _ error: any Error, isFinal: Bool, _ states: [State], _ now: Duration
  ) {
    releaseSlot(id)
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    if !isFinal, flight.attempt < flight.loading.retries.extra {
      flights[id]?.attempt += 1
      flights[id]?.phase = .delaying
      effects.append(.delay(flight: id, attempt: flight.attempt + 1))
      return
    }
    for index in flight.loaded {
      if let throttle = flight.loading.retryThrottle {
        forget(
          memos.set(.failure(error), of: flight.members[index].key, until: now + throttle.limited))
      }
      settle(Place(flight: id, member: index)) { waiter in
        if case .stale(let span) = states[index](waiter.loading), !waiter.isForced,
          waiter.mayReturnAfterError(span)
        {
          return .entry(isRefreshing: false, failure: error)
        }
        return .failure(error)
      }
    }
    end(id)
  }

  private mutating func replied(_ id: Int, _ replies: [Reply]) {
    releaseSlot(id)
    guard let flight = flights[id], !flight.isCancelled else { return end(id) }
    for (index, reply) in zip(flight.loaded, replies) {
      let place = Place(flight: id, member: index)
      memos.removeFailure(of: flight.members[index].key)
      switch reply {
      case .save: break
      case .absent: flights[id]?.members[index].isAbsent = true
      case .unsaved: settle(place) { _ in .loaded(.unwanted) }
      case .failed(let error): settle(place) { _ in .failure(error) }
      }
    }
    let members = flights[id]?.loaded ?? []
    if members.isEmpty { return end(id) }
    flights[id]?.phase = .saving
    effects.append(.save(flight: id, members: members))
  }

  private mutating func saved(_ id: Int, _ outcomes: [Saving], _ now: Duration) {
    guard let flight = flights[id] else { return }
    for (index, outcome) in zip(flight.loaded, outcomes) {
      let place = Place(flight: id, member: index)
      let member = flight.members[index]
      if member.isAbsent, outcome.isDone, open[member.key] == place,
        let span = flight.loading.absentFor
      {
        effects.append(.remember(place))
        forget(memos.set(.absent, of: member.key, until: now + span.limited))
      }
      settle(place) { _ in .loaded(outcome) }
    }
    end(id)
  }

  /// Lets later callers start another flight for a key.
  private mutating func shut(_ place: Place) {
    guard let key = flights[place.flight]?.members[place.member].key, open[key] == place else {
      return
    }
    open[key] = nil
  }

  /// Closes a flight whose load has taken too long, and abandons it if it has no waiter.
  private mutating func hardTimeout(_ id: Int) {
    guard let flight = flights[id], flight.phase != .saving else { return }
    if flight.isCancelled { return end(id) }
    flights[id]?.isOverdue = true
    flights[id]?.isBackground = false
    for index in flight.members.indices { shut(Place(flight: id, member: index)) }
    if flight.waiterCount == 0 { cancel(id) }
  }

  /// Cancels a flight without waiters.
  private mutating func cancel(_ id: Int) {
    guard let flight = flights[id] else { return }
    flights[id]?.isCancelled = true
    for index in flight.members.indices { shut(Place(flight: id, member: index)) }
    switch flight.phase {
    case .looking, .loading:
      effects.append(.cancel(flight: id))
      // A load that ignores this keeps its slot until its hard timeout.
      if flight.isOverdue { end(id) }
    case .queued, .delaying:
      queue.removeAll { $0 == id }
      end(id)
    case .saving: break
    }
  }

  private mutating func end(_ id: Int) {
    guard let flight = flights[id] else { return }
    for index in flight.members.indices { shut(Place(flight: id, member: index)) }
    releaseSlot(id)
    flights[id] = nil
    effects.append(.end(flight: id))
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
        let place = Place(flight: id, member: index)
        for waiter in flights[id]?.members[index].inOrder ?? [] {
          _ = remove(waiter.id)
          answer(waiter.id, place, .failure(StoreError.closed))
        }
      }
      cancel(id)
    }
    for key in memos.removeAll() { effects.append(.forget(key)) }
  }

  private mutating func forget(_ keys: [Key]) {
    for key in keys { effects.append(.forget(key)) }
  }
}

extension LoadMachine.Found {
  /// Whether a refresh in the background loads.
  fileprivate var isDue: Bool {
    switch self {
    case .fresh(let isDue): isDue
    case .stale, .unusable: true
    case .failed: false
    }
  }
}
