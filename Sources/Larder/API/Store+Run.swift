// Calls from async functions, on threads of the store.

extension Store {
  /// Threads on which tasks may wait for the disk.
  ///
  /// Tasks that prefer this executor make plain calls there, and hold no thread of Swift's
  /// cooperative pool while they wait:
  ///
  /// ```swift
  /// try await withTaskExecutorPreference(store.executor) {
  ///   try await importFeeds(into: cache)   // its synchronous calls may wait
  /// }
  /// ```
  ///
  /// At most 64 tasks run at once; others wait in the order of their arrival, without regard to
  /// their priority. A thread is started when it is needed, and ends after ten seconds without
  /// work, or when the store is closed or freed. Tasks may use the executor afterwards, too.
  public var executor: any TaskExecutor { threads }

  /// Runs work that may wait for the disk on one of the store's threads, and returns its result.
  ///
  /// ```swift
  /// try await store.run { try cache.removeAll() }
  /// ```
  ///
  /// Up to 64 pieces of work run at once, and further ones start in the order of their arrival.
  /// The calling task holds no thread while it waits, so any number of tasks may call this at
  /// once. Work that waits for other work may wait for ever once 64 threads wait like that.
  /// Cancelling the task does not cancel the work.
  ///
  /// - Parameter work: Runs once, even if the task is cancelled or the store is closed; the store's
  ///   calls then throw ``StoreError/closed``.
  /// - Returns: The result of `work`.
  /// - Throws: The error of `work`.
  /// - Complexity: Two changes of thread; none in a task that prefers ``executor``.
  @concurrent public func run<R: Sendable, E: Error>(
    _ work: @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    try await withTaskExecutorPreference(threads) { () async throws(E) -> R in try work() }
  }

  /// Runs work on one of the store's threads, and returns its result once what it has changed is
  /// durable.
  ///
  /// ```swift
  /// try await store.run(durability: .powerLoss) {
  ///   try orders.save(order, for: order.id)
  ///   try stock.remove(order.item)
  /// }
  /// // Both survive a power loss.
  /// ```
  ///
  /// The calls of `work` need no durability of their own: one fsync makes all that `work` has
  /// changed and read durable. Tasks that call this at the same time share it, and wait for it
  /// without a thread. Before it, other callers see changes that a power loss may undo, and it may
  /// undo some of them only: changes that belong together go into one ``write(durability:_:)``.
  ///
  /// Everything else is as with ``run(_:)``.
  ///
  /// - Parameters:
  ///   - durability: What the changes survive once this returns. With ``Durability/processCrash``
  ///     it is ``run(_:)``.
  ///   - work: Runs once, even if the task is cancelled or the store is closed; the store's calls
  ///     then throw ``StoreError/closed``.
  /// - Returns: The result of `work`.
  /// - Throws: The error of `work`: what it has changed before may be lost by a power loss. As
  ///   ``flush()`` if the fsync failed, and also if the store was closed or suspended before it, or
  ///   opened for reading only: the changes are made, but may be lost.
  /// - Complexity: Two changes of thread, and the share of an fsync.
  @concurrent public func run<R: Sendable>(
    durability: Durability, _ work: @escaping @Sendable () throws -> R
  ) async throws -> R {
    guard durability == .powerLoss else { return try await run(work) }
    // A child, for its parent then needs no change of thread between the work and the fsync.
    return try await withThrowingDiscardingTaskGroup { group in
      try await withCheckedThrowingContinuation { waiter in
        group.addTask(executorPreference: threads) {
          do {
            let result = try work()
            self.groupFlush.wait { outcome in waiter.resume(with: outcome.map { result }) }
          } catch {
            waiter.resume(throwing: error)
          }
        }
      }
    }
  }
}
