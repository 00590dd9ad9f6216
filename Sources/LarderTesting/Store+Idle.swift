public import Larder

extension Store {
  /// Waits until the store has nothing to do in the background.
  ///
  /// ```swift
  /// let shown = try await feed.value(for: "top") { try await server.top() }   // stale
  /// try await store.waitUntilIdle()                                 // refreshed and saved
  /// #expect(try feed.value(for: "top") == server.newest)
  /// ```
  ///
  /// It waits for a moment at which none of this work is under way, whichever call has begun it:
  ///
  /// - loads of the store's caches, with their saves: loads that a caller waits for, refreshes in
  ///   the background and ahead of time, loads that continue after a soft timeout, and loads that
  ///   wait for a repetition or for a free place
  /// - writes that restart lifetimes after reads, in caches with ``/Larder/Expiry/sliding``
  ///
  /// Work that begins during the wait counts, too. So the wait may be long in a store that other
  /// tasks use all the time. A load must not call it, because the load would wait for itself.
  ///
  /// It does not wait for saves and other calls that tasks and threads make themselves, for the
  /// callers of a load to continue, for the elements of `changes()` to be received, for sweeps in
  /// the background, or for tasks that a load has started and not awaited.
  ///
  /// - Throws: `CancellationError` if the task is cancelled, for example by the time limit of a
  ///   test; ``/Larder/StoreError/closed`` if the store is closed before or during the wait.
  public func waitUntilIdle() async throws { try await activity.waitUntilIdle() }
}
