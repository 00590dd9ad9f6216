import Foundation

/// What a screen shows of a key: the value, that it is being loaded, or why there is none.
public enum LoadState<Value: Sendable>: Sendable {
  /// There is no value, and one is being loaded.
  case loading
  /// The value; ``LoadedEntry/isRefreshing`` tells whether it is being loaded again.
  case value(LoadedEntry<Value>)
  /// There is no value: the load replied ``LoadReply/absent``, or the entry was removed.
  case absent
  /// Loading has failed, with the value that was there before; nil if there was none.
  case failed(any Error, LoadedEntry<Value>?)

  /// The value that can be shown, with its date; nil if there is none.
  public var entry: LoadedEntry<Value>? {
    switch self {
    case .value(let entry): entry
    case .failed(_, let entry): entry
    case .loading, .absent: nil
    }
  }

  /// The value that can be shown; nil if there is none.
  public var value: Value? { entry?.value }

  /// Whether a load is under way.
  public var isLoading: Bool {
    if case .loading = self { true } else { entry?.isRefreshing ?? false }
  }

  /// Why the last load failed; nil if it did not.
  public var error: (any Error)? {
    if case .failed(let error, _) = self { error } else { nil }
  }
}

/// The states of a key, as an asynchronous sequence; see `Cache.states(for:loading:load:)`.
public struct LoadStates<Key: CacheKey, Value: Sendable>: AsyncSequence, Sendable {
  /// The sequence does not throw.
  public typealias Failure = Never

  let cache: Cache<Key, Value>
  let key: Key
  let loading: Loading?
  let load: Cache<Key, Value>.Load

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    let states: LoadStates
    let watch: StateWatch<Value>
    /// Rings when there is another state.
    var bell: AsyncStream<Void>.Iterator
    var hasBegun = false
    /// The value that is shown, and its version if the cache has it; nil for none.
    var shown: LoadedEntry<Value>?
    var version: Version?
    /// The last state that was returned.
    var last: Shown?
    /// Whether the value was invalidated that is shown or is loaded, so that another one is to be
    /// loaded.
    var isInvalidated = false

    init(_ states: LoadStates) {
      self.states = states
      let (stream, ringing) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))
      (watch, bell) = (StateWatch(ringing: ringing), stream.makeAsyncIterator())
    }

    /// Waits for the next state; returns nil at the end of the sequence.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async -> LoadState<Value>? {
      if !hasBegun {
        hasBegun = true
        return await begin()
      }
      while await bell.next(isolation: actor) != nil {
        if let state = await update() { return state }
      }
      return nil
    }

    /// Waits for the next state; returns nil at the end of the sequence.
    public mutating func next() async -> LoadState<Value>? { await next(isolation: nil) }
  }

  /// The first state if its value is in memory; nil if it is not.
  package var inMemory: LoadState<Value>? {
    do throws(StoreError) {
      return try residentEntry()?.shown.map { .value($0) }
    } catch {
      return nil
    }
  }

  /// Creates an iterator, which begins with the present state.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension LoadStates.Iterator {
  /// What two equal states have in common.
  struct Shown: Equatable {
    let version: Version?
    /// A touch changes it, and keeps the version.
    let savedAt: Date?
    let isStale: Bool
    let isLoading: Bool
  }

  /// The state with what is shown; nil if it is the last one again.
  private mutating func state(isLoading: Bool, failure: (any Error)?) -> LoadState<Value>? {
    if let failure, !isLoading {
      last = nil
      return .failed(failure, shown?.with(isRefreshing: false))
    }
    let now = Shown(
      version: version, savedAt: shown?.savedAt, isStale: shown?.isStale ?? false,
      isLoading: isLoading)
    if now == last, shown == nil || version != nil { return nil }
    last = now
    if let shown { return .value(shown.with(isRefreshing: isLoading)) }
    return isLoading ? .loading : .absent
  }

  /// Watches the key, and returns the first state.
  nonisolated(nonsending) private mutating func begin() async -> LoadState<Value>? {
    let (cache, userKey) = (states.cache, states.key.encoded())
    do throws(StoreError) {
      try states.loading?.checkRanges()
      try RecordKey(cacheID: 0, userKey: userKey).checkLimit()
    } catch {
      watch.finish()
      return .failed(error, nil)
    }
    guard let stop = cache.store.context.observations.add(watch, of: cache.core, key: userKey)
    else {
      watch.finish()
      return .failed(await find().failure ?? .closed, nil)
    }
    let stopLoads = cache.core.loads.watch(userKey) { [watch] in watch.hear($0) }
    watch.whenOver {
      stop()
      stopLoads()
    }
    let found = await find()
    if let failure = found.failure { return .failed(failure, nil) }
    (shown, version) = (found.shown, found.version)
    if found.isToBeLoaded { call() }
    let isRefreshing = found.isDue && states.refresh()
    return state(isLoading: found.isToBeLoaded || isRefreshing || watch.isLoading, failure: nil)
  }

  /// The state after what has happened since the last one.
  nonisolated(nonsending) private mutating func update() async -> LoadState<Value>? {
    var news = watch.take()
    if case .success(let entry)? = news.outcome {
      // A change has won over a load that was not saved.
      let isOvertaken = entry.map { !$0.isSaved && $0.saveFailure == nil } ?? false
      if !isOvertaken || news.change == nil {
        (shown, version, isInvalidated) = (entry, nil, false)
      }
    }
    if let change = news.change {
      let found = await find()
      if let failure = found.failure {
        news.failure = failure
      } else if found.shown != nil {
        (shown, version, isInvalidated) = (found.shown, found.version, false)
      } else {
        switch change {
        case .invalidated:
          isInvalidated = shown != nil || news.isCalling || news.outcome != nil
        // It is there, but has expired at once.
        case .set: break
        case .removed: (shown, version, isInvalidated) = (nil, nil, false)
        }
      }
    }
    if isInvalidated, !news.isCalling {
      isInvalidated = false
      shown = shown?.with(isStale: true)
      call()
      (news.isCalling, news.failure) = (true, nil)
    }
    return state(isLoading: news.isCalling || news.loads > 0, failure: news.failure)
  }

  /// Loads the value, unless it is there by now.
  private func call() {
    watch.callBegins()
    // Its outcome is the next state, or a part of it.
    let task = Task { [states, watch] in
      do {
        let entry = try await states.cache.entry(
          for: states.key, loading: states.loading, load: states.load)
        watch.callEnded(.success(entry))
      } catch {
        watch.callEnded(.failure(error))
      }
    }
    watch.callBegan(task)
  }

  /// Reads the entry, from memory if it is there.
  nonisolated(nonsending) private func find() async -> StateFound<Value> {
    let states = states
    do throws(StoreError) {
      if let found = try states.residentEntry() { return found }
    } catch {
      return StateFound(failure: error)
    }
    return await states.cache.store.run { states.find() }
  }
}

/// What a sequence of states has found in the cache.
struct StateFound<Value: Sendable>: Sendable {
  /// The entry; nil if there is none that may be shown.
  var shown: LoadedEntry<Value>?
  var version: Version?
  var isToBeLoaded = false
  /// Whether it is fresh, and to be refreshed ahead of time.
  var isDue = false
  var failure: StoreError?
}

extension LoadStates {
  private var options: Loading { loading ?? cache.core.loading }

  fileprivate func residentEntry() throws(StoreError) -> StateFound<Value>? {
    guard let entry = try cache.core.residentEntry(for: key, options) else { return nil }
    return StateFound(
      shown: LoadedEntry(entry, age: entry.age), version: entry.version,
      isDue: cache.core.loads.isDue(entry, options))
  }

  fileprivate func find() -> StateFound<Value> {
    do throws(StoreError) {
      let core = cache.core
      try core.context.engine.checkOpen()
      let found = core.find(try core.recordKey(of: key, id: try core.usableID()))
      let (now, uptime) = (core.clock.now(), core.clock.uptime())
      switch core.loads.judge(found, options, at: now, uptime: uptime) {
      case .fresh(let isDue):
        return StateFound(
          shown: core.typed(found.entry.map { LoadedEntry($0, age: $0.age) }),
          version: found.entry?.version, isDue: isDue)
      case .stale:
        return StateFound(
          shown: core.typed(found.entry.map { LoadedEntry($0, age: $0.age, isStale: true) }),
          version: found.entry?.version, isToBeLoaded: true)
      case .unusable: return StateFound(isToBeLoaded: true)
      case .failed: return StateFound(failure: found.failure)
      }
    } catch {
      return StateFound(failure: error)
    }
  }

  /// Refreshes the entry in the background; returns whether a load is under way.
  fileprivate func refresh() -> Bool {
    do throws(StoreError) {
      let load = load
      let call = try cache.call(for: [key], loading) { needs in [try await load(needs[0].previous)]
      }
      return cache.core.loads.refresh(call)
    } catch {
      return false
    }
  }
}

/// What has happened to a key since its last state was returned.
///
/// It has no list of events, so it does not grow while nobody asks: the next state is computed from
/// the cache.
final class StateWatch<Value: Sendable>: ChangeObserver {
  enum Changed {
    case set, removed, invalidated
  }

  struct News {
    /// The last change of the entry; nil for none.
    var change: Changed?
    /// The number of loads under way, and of those whose replies are being saved.
    var loads = 0
    var saving = 0
    /// Whether the sequence itself waits for a load, and the last change of the entry meanwhile.
    var isCalling = false
    var changeSinceCall: Changed?
    /// What that load has brought.
    var outcome: Result<LoadedEntry<Value>?, any Error>?
    /// The error of the last load; nil after another one has begun, or the entry was changed.
    var failure: (any Error)?
  }

  private struct State {
    var news = News()
    var call: Task<Void, Never>?
    var isOver = false
  }

  // It does not hold the stream, which ends when its iterator is released.
  private let ringing: AsyncStream<Void>.Continuation
  private let state = Lock(State())

  init(ringing: AsyncStream<Void>.Continuation) { self.ringing = ringing }

  /// Calls `body`, and cancels the sequence's own load, when nobody listens any more.
  func whenOver(_ body: @escaping @Sendable () -> Void) {
    ringing.onTermination = { [weak self] _ in
      body()
      let call = self?.state.withLock { state in
        state.isOver = true
        return state.call
      }
      call?.cancel()
    }
  }

  /// Notes the task of the sequence's own load.
  func callBegan(_ task: Task<Void, Never>) {
    let isOver = state.withLock { state in
      state.call = task
      return state.isOver
    }
    if isOver { task.cancel() }
  }

  /// Returns the news, and forgets those that a state shows only once.
  func take() -> News {
    state.withLock { state in
      defer { (state.news.change, state.news.outcome) = (nil, nil) }
      return state.news
    }
  }

  /// Whether a load is under way.
  var isLoading: Bool { state.withLock { $0.news.loads > 0 } }

  /// Changes the news by `body`, which returns whether there is another state.
  private func note(_ body: (inout News) -> Bool) {
    if state.withLock({ body(&$0.news) }) { ringing.yield() }
  }
}

extension StateWatch {
  func report(_ change: CommittedChange) {
    note { news in
      switch change.what {
      // The shown value is as good as before.
      case .removed(.expired), .removed(.evicted): return false
      case .set: news.change = .set
      case .removed, .cleared: news.change = .removed
      // Shown until it is found or loaded again.
      case .invalidated, .reopened: news.change = .invalidated
      }
      if news.change != .invalidated { news.failure = nil }
      if news.isCalling { news.changeSinceCall = news.change }
      // The end of the load follows, and shows this, too.
      return news.saving == 0
    }
  }

  func finish() { ringing.finish() }

  /// Called under the lock of the loads.
  func hear(_ event: LoadMachine.News) {
    note { news in
      switch event {
      case .began:
        news.loads += 1
        if !news.isCalling { news.failure = nil }
        return !news.isCalling
      case .saving:
        news.saving += 1
        return false
      case .ended(let failure, let wasSaving):
        news.loads -= 1
        // It may have begun to save before anybody watched.
        if wasSaving { news.saving = max(0, news.saving - 1) }
        if !news.isCalling, let failure { news.failure = failure }
        // The outcome of the sequence's own call follows.
        return !news.isCalling || news.loads > 0
      }
    }
  }

  func callBegins() {
    note { news in
      (news.isCalling, news.changeSinceCall, news.failure) = (true, nil, nil)
      return false
    }
  }

  func callEnded(_ outcome: Result<LoadedEntry<Value>?, any Error>) {
    note { news in
      (news.isCalling, news.outcome) = (false, outcome)
      // Whether the change or the load came first is unknown, also if a state has shown the change:
      // the key has what is in the cache.
      news.change = news.change ?? news.changeSinceCall
      news.changeSinceCall = nil
      switch outcome {
      case .success(let entry): news.failure = entry?.loadFailure
      case .failure(let error): news.failure = error
      }
      return true
    }
  }
}

extension Cache {
  /// Observes a key as a screen does: what is there at once, then what is loaded and changed.
  ///
  /// ```swift
  /// for await state in feed.states(for: id, load: { try await fetch(id) }) {
  ///   switch state {
  ///   case .loading: showSpinner()
  ///   case .value(let entry): show(entry.value, isRefreshing: entry.isRefreshing)
  ///   case .absent: showNothing()
  ///   case .failed(let error, let old): show(error, over: old?.value)
  ///   }
  /// }
  /// ```
  ///
  /// The first state is what the cache has, fresh or stale. If that is stale, or if there is
  /// nothing, the key is loaded, as by `value(for:loading:load:)`. The sequence goes on with
  /// the end of that load, with each change of the entry, and with the beginning and end of every
  /// other load of the key, by whomever: a failed refresh in the background is
  /// ``LoadState/failed(_:_:)``. When a tag of the entry is invalidated, it is loaded again. When
  /// the entry is removed, it is ``LoadState/absent`` and not loaded again. Time alone changes
  /// nothing: an entry that expires while it is shown stays, and `refresh(_:loading:load:)` loads
  /// another one.
  ///
  /// A state that nobody has asked for is replaced by the next one, so a slow loop skips states and
  /// always gets the last one. A value that was loaded and could not be saved is shown until the
  /// next change. The loop keeps the store alive. When the task of the loop is cancelled, the
  /// sequence ends, and its load is cancelled unless others wait for it. The sequence ends, too,
  /// when the cache is dropped or the store is closed.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded; the only state of a longer one is its error.
  ///   - loading: The options of this sequence; nil, the default, uses the cache's. A stale entry
  ///     is shown whatever they say.
  ///   - load: Is passed the entry of the key; nil if the key has no entry that can be used.
  /// - Returns: The states. Each loop over them begins anew.
  /// - Complexity: A point lookup and a decode for each state whose value is not in memory.
  public func states(
    for key: Key, loading: Loading? = nil, load: @escaping Load
  ) -> LoadStates<Key, Value> {
    LoadStates(cache: self, key: key, loading: loading, load: load)
  }

  /// Observes a key as the other form does, with a closure that always has a value.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of this sequence; nil, the default, uses the cache's.
  ///   - load: Returns the value to save, at most 32 MiB encoded.
  /// - Returns: The states.
  /// - Complexity: As the other form.
  public func states(
    for key: Key, loading: Loading? = nil, load: @escaping @Sendable () async throws -> Value
  ) -> LoadStates<Key, Value> {
    states(for: key, loading: loading) { _ in .value(try await load()) }
  }
}
