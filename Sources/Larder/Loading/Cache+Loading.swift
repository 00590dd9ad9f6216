extension Cache {
  /// A closure that loads the value of a key.
  ///
  /// It is passed the entry of the key; nil if the key has no entry that can be used.
  public typealias Load = @Sendable (Previous<Value>?) async throws -> LoadReply<Value>

  /// Returns the value of a key, and loads and saves it if there is no fresh one.
  ///
  /// ```swift
  /// let page = try await pages.value(for: url) { try await download(url) }
  /// ```
  ///
  /// Memory is read first, then the disk, on the store's threads. A key is loaded once at a time:
  /// calls that come during a load get its value or its error. A save, removal, clear or
  /// invalidation of the key during the load wins: the callers get the loaded value, but it is not
  /// saved, and calls that come after the change start another load. A value that cannot be saved
  /// is returned nevertheless; ``entry(for:loading:load:)`` tells why. A cancelled caller leaves at
  /// once; the load is cancelled when its last caller has left. ``value(for:)`` and other
  /// synchronous calls neither start a load nor wait for one.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Returns the value to save, at most 32 MiB encoded. It is not called if another call
  ///     is loading the key. It must not ask the cache for the same key. From its own task and the
  ///     tasks that it starts, such a call throws. A detached task is not recognized: if the
  ///     closure waits for one that asks for the key, both wait until ``Loading/hardTimeout``, or
  ///     for ever without it.
  /// - Returns: The value.
  /// - Throws: The error of `load`, of this call or of the one that it has joined.
  ///   `CancellationError` if the task is cancelled; ``LoadTimeout``.
  ///   ``StoreError/invalidArgument(_:)`` for a key or an option outside its limits, or if the load
  ///   would wait for itself. ``StoreError/io(_:)`` if the disk cannot be read,
  ///   ``StoreError/closed`` if the store is closed meanwhile.
  /// - Complexity: One point lookup and one decode if the value is not in memory; for a load, one
  ///   encode and one append.
  nonisolated(nonsending) public func value(
    for key: Key, loading: Loading? = nil, load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try loading?.checkRanges()
    let isTimed = loading?.isTimed ?? core.loading.isTimed
    if !isTimed, let value = try core.residentValue(for: key) { return value }
    return try await missedValue(for: key, loading: loading, isTimed: isTimed, load: load)
  }

  // A function of its own: the types of entries are looked up at its beginning, which takes longer
  // than to find a value in memory.
  nonisolated(nonsending) package func missedValue(
    for key: Key, loading: Loading?, isTimed: Bool,
    load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let load: Load = { _ in .value(try await load()) }
    let entry =
      isTimed
      ? try await entry(for: key, loading: loading, load: load)
      : try await missedEntry(for: key, loading: loading, load: load)
    if let entry { return entry.value }
    // Absent by another caller's closure; this one always has a value.
    while true {
      if let entry = try await refresh(key, loading: loading, load: load) { return entry.value }
    }
  }

  /// Returns the value of a key, and loads it if there is no fresh one.
  ///
  /// ```swift
  /// let page = try await pages.value(for: url) { previous in
  ///   let reply = try await get(url, ifNoneMatch: previous?.validator)
  ///   return reply.status == 304
  ///     ? .unchanged : .value(reply.body, validator: Validator(reply.etag))
  /// }
  /// ```
  ///
  /// As `value(for:loading:load:)`, with a closure that knows the previous entry
  /// and decides what is saved.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the entry of the key; nil if the key has no entry that can be used.
  /// - Returns: The value; nil if the load replied ``LoadReply/absent``.
  /// - Throws: As the other form; ``StoreError/invalidArgument(_:)``, too, if the load replied
  ///   ``LoadReply/unchanged`` without a previous entry.
  /// - Complexity: As the other form.
  nonisolated(nonsending) public func value(
    for key: Key, loading: Loading? = nil, load: @escaping Load
  ) async throws -> Value? {
    try await entry(for: key, loading: loading, load: load)?.value
  }

  /// Returns the value of a key as `value(for:loading:load:)` does, and how it was
  /// obtained.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the entry of the key; nil if the key has no entry that can be used.
  /// - Returns: The value; nil if the load replied ``LoadReply/absent``.
  /// - Throws: As `value(for:loading:load:)`.
  /// - Complexity: As `value(for:loading:load:)`.
  nonisolated(nonsending) public func entry(
    for key: Key, loading: Loading? = nil, load: @escaping Load
  ) async throws -> LoadedEntry<Value>? {
    try loading?.checkRanges()
    let options = loading ?? core.loading
    let resident = try core.residentEntry(for: key, options)
    let isDue = resident.map { core.loads.isDue($0, options) } ?? false
    if let resident, !isDue { return LoadedEntry(resident, age: resident.age) }
    guard let resident else {
      return try await missedEntry(for: key, loading: loading, load: load)
    }
    let call = try call(for: [key], loading) { needs in [try await load(needs[0].previous)] }
    return LoadedEntry(resident, age: resident.age, isRefreshing: core.loads.refresh(call))
  }

  /// Returns the entry of a key that was not found in memory; loads it if there is no fresh one.
  nonisolated(nonsending) package func missedEntry(
    for key: Key, loading: Loading?, load: @escaping Load
  ) async throws -> LoadedEntry<Value>? {
    let call = try call(for: [key], loading) { needs in [try await load(needs[0].previous)] }
    return core.typed(try await core.loads.entry(for: call))
  }

  /// Returns the values of several keys, and loads those that are missing with one call.
  ///
  /// Keys that another call is loading are not loaded again. The loaded values are saved together;
  /// a key that was changed meanwhile is left out. Fresh values in memory that
  /// ``Loading/refreshAhead`` would refresh are refreshed with one call of the closure, too. See
  /// `value(for:loading:load:)`.
  ///
  /// - Parameters:
  ///   - keys: Up to 64 KiB encoded each; a key may be repeated.
  ///   - loading: The options of this call; nil, the default, uses the cache's.
  ///   - load: Is passed the keys to load, each of them once, in their order. It returns one reply
  ///     for each key, in the same order.
  /// - Returns: For each key, in their order, its value; nil if a load replied
  ///   ``LoadReply/absent``.
  /// - Throws: As `value(for:loading:load:)`, for the first key with an error: the
  ///   call then waits for no other key. ``StoreError/invalidArgument(_:)``, too, if the number of
  ///   replies is wrong.
  /// - Complexity: Linear in the number of keys: one point lookup and one decode for each; for a
  ///   load, one encode for each value and one append.
  nonisolated(nonsending) public func values(
    for keys: [Key], loading: Loading? = nil,
    load: @escaping @Sendable ([Key]) async throws -> [LoadReply<Value>]
  ) async throws -> [Value?] {
    try loading?.checkRanges()
    let options = loading ?? core.loading
    var (values, missing, due): ([Value?], [Key], [Key]) = ([], [], [])
    for key in keys {
      let resident = try core.residentEntry(for: key, options)
      if let resident, core.loads.isDue(resident, options) { due.append(key) }
      if resident == nil { missing.append(key) }
      values.append(resident?.value)
    }
    if !due.isEmpty { _ = core.loads.refresh(try call(for: due, loading, load)) }
    if missing.isEmpty { return values }
    var entries = try await core.loads.entries(for: try call(for: missing, loading, load))[...]
    for index in values.indices where values[index] == nil {
      values[index] = entries.removeFirst().map { core.value($0.value) }
    }
    return values
  }

  func call(
    for keys: [Key], _ loading: Loading?,
    _ load: @escaping @Sendable ([Key]) async throws -> [LoadReply<Value>]
  ) throws(StoreError) -> LoadCall {
    try call(for: keys, loading) { needs in try await load(needs.map { keys[$0.index] }) }
  }

  /// Loads the value of a key even if there is a fresh one; joins a load that is under way.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - loading: The options of this call; nil, the default, uses the cache's. A stale entry
  ///     is not returned, whatever they say.
  ///   - load: Is passed the entry of the key; nil if the key has no entry that can be used.
  /// - Returns: The loaded value; nil if the load replied ``LoadReply/absent``.
  /// - Throws: As `value(for:loading:load:)`.
  /// - Complexity: One point lookup and one decode; one encode and one append.
  @discardableResult nonisolated(nonsending) public func refresh(
    _ key: Key, loading: Loading? = nil, load: @escaping Load
  ) async throws -> LoadedEntry<Value>? {
    let call = try call(for: [key], loading, isForced: true) { needs in
      [try await load(needs[0].previous)]
    }
    return core.typed(try await core.loads.entries(for: call)[0])
  }

  /// Loads the values of the keys that have no fresh one.
  ///
  /// ```swift
  /// await genres.prefetch(["rock", "jazz"]) { key, _ in .value(try await fetch(key)) }
  /// ```
  ///
  /// Each key is handled as by ``entry(for:loading:load:)``. If the task is cancelled, the
  /// remaining keys fail with `CancellationError`.
  ///
  /// - Parameters:
  ///   - keys: Up to 64 KiB encoded each.
  ///   - atOnce: The maximum number of keys at once; 4 by default. A number below 1 counts as 1.
  ///   - load: Loads one key.
  /// - Returns: The keys that failed, with their errors, in no particular order.
  /// - Complexity: As `value(for:loading:load:)` for each key.
  public func prefetch(
    _ keys: [Key], atOnce: Int = 4,
    load: @escaping @Sendable (Key, Previous<Value>?) async throws -> LoadReply<Value>
  ) async -> [(key: Key, error: any Error)] {
    await withTaskGroup(of: (key: Key, error: any Error)?.self) { group in
      var failures: [(key: Key, error: any Error)] = []
      for (index, key) in keys.enumerated() {
        if index >= max(1, atOnce), let failure = await group.next() ?? nil {
          failures.append(failure)
        }
        group.addTask {
          do {
            _ = try await entry(for: key) { try await load(key, $0) }
            return nil
          } catch {
            return (key, error)
          }
        }
      }
      for await failure in group { if let failure { failures.append(failure) } }
      return failures
    }
  }

  func call(
    for keys: [Key], _ loading: Loading?, isForced: Bool = false,
    _ load:
      @escaping @Sendable ([(index: Int, previous: Previous<Value>?)]) async throws
      -> [LoadReply<Value>]
  ) throws(StoreError) -> LoadCall {
    try loading?.checkRanges()
    try core.context.engine.checkOpen()
    let id = core.id
    var recordKeys: [RecordKey] = []
    for key in keys { recordKeys.append(try core.recordKey(of: key, id: id)) }
    return LoadCall(
      keys: recordKeys, loading: loading ?? core.loading, isForced: isForced, store: store,
      core: core
    ) { [core] needs in
      let needs = needs.map { (index: $0.index, previous: $0.previous.map(core.typed)) }
      return try await load(needs).map(\.ofAnyType)
    }
  }
}

extension Cache {
  /// The entry of a key if its value is in memory, and fresh; nil otherwise.
  package func residentEntry(for key: Key) throws(StoreError) -> Entry<Value>? {
    try core.residentEntry(for: key, core.loading)
  }
}

extension CacheCore {
  /// What the cache's loads have returned.
  func typed(_ entry: LoadedEntry<any Sendable>?) -> LoadedEntry<Value>? {
    entry.map { $0.with(value: value($0.value)) }
  }

  /// What a load is given, as its closure expects it.
  fileprivate func typed(_ previous: Previous<any Sendable>) -> Previous<Value> {
    Previous(
      value: previous.value.map(value), validator: previous.validator, savedAt: previous.savedAt)
  }

  /// The value of a key if it is in memory, and fresh; nil otherwise.
  ///
  /// With `isConfirmed`, also nil unless a tier is known to have the value.
  func residentValue(
    for key: some CacheKey, isConfirmed: Bool = false
  ) throws(StoreError) -> Value? {
    // Before the loan: a clock of the program's may call the store.
    let uptime = isConfirmed ? memory?.uptimeNanoseconds ?? 0 : 0
    var missed = Missed()
    guard let loan = try lend(key, &missed) else { return nil }
    if isConfirmed, !loan.isConfirmed(atNanoseconds: uptime) {
      loan.end()
      memory?.takeBackHit(hash: missed.hash)
      return nil
    }
    defer {
      counts.reads.add(.memory)
      if isReporting { report(.memory, of: key) }
    }
    defer { loan.end() }
    return entry(loan)._withUnsafeGuaranteedRef { $0.value }
  }

  /// The entry of a key if its value is in memory, and fresh by the options; nil otherwise.
  ///
  /// With `isConfirmed`, also nil if a refresh is due, or no tier is known to have the value.
  func residentEntry(
    for key: some CacheKey, _ loading: Loading, isConfirmed: Bool = false
  ) throws(StoreError) -> Entry<Value>? {
    var missed = Missed()
    guard let resident = try resident(of: key, &missed) else { return nil }
    let entry = Entry(resident, readAt: clock.now())
    var isUsable = loading.admits(entry.savedAt, at: entry.readAt)
    if isConfirmed {
      let isLeased = resident.lease?.isRunning(at: clock.uptime()) == true
      isUsable = isUsable && isLeased && !loads.isDue(entry, loading)
    }
    guard isUsable else {
      memory?.takeBackHit(hash: missed.hash)
      return nil
    }
    counts.reads.add(.memory)
    if isReporting { report(.memory, of: key) }
    return entry
  }
}
