extension Store {
  /// Closes the files and releases the directory, until ``resume()``.
  ///
  /// Call it when an app is about to be suspended: iOS ends a suspended process that has a lock in
  /// a directory of an app group. A program may also call it to let another one have the directory
  /// for a while.
  ///
  /// ```swift
  /// func applicationDidEnterBackground(_ application: UIApplication) {
  ///   do { try store.suspend() } catch { report(error) }
  /// }
  /// func applicationWillEnterForeground(_ application: UIApplication) {
  ///   do {
  ///     try store.resume()
  ///   } catch StoreError.changedMeanwhile {
  ///     openAnew()   // an extension has written to it
  ///   } catch { report(error) }
  /// }
  /// ```
  ///
  /// It waits for the calls under way, and sweeps as ``close()`` does. Then every call throws
  /// ``StoreError/suspended``, until ``resume()`` or ``close()``. Loads under way continue;
  /// their callers get the values, which are not saved. Suspending a suspended store does nothing.
  ///
  /// A process that is killed while its store is suspended loses no acknowledged write. If the last
  /// writes are to survive a power loss, call ``flush()`` first.
  ///
  /// A store in memory has no files, but refuses calls likewise.
  ///
  /// - Throws: ``StoreError/readOnly(cause:)`` for a store that is open for reading only: close it
  ///   instead. ``StoreError/closed``; ``StoreError/locked(pid:)`` in a forked child process.
  /// - Complexity: Waits for the calls under way; a ``compact(progress:)`` may take long. Then one
  ///   append, and an fsync if there are large values.
  public func suspend() throws {
    try requireWritable()
    context.diskBudget?.end()
    for cache in allOpenCaches.values { cache.slides?.waitUntilIdle() }
    context.closeNotes(isMarkNew: sweepAtClosing())
    try context.engine.suspend()
  }

  /// Opens the files again after ``suspend()``.
  ///
  /// The store keeps its caches, cursors, observers and values in memory. Resuming a store that is
  /// not suspended does nothing.
  ///
  /// - Throws: ``StoreError/locked(pid:)`` while another process has the store open;
  ///   ``StoreError/changedMeanwhile`` if one has had it open since, also if it wrote nothing: the
  ///   store can then only be closed, and another one be opened.
  ///   ``StoreError/io(_:)``, also if the directory is gone or another one is in its place;
  ///   ``StoreError/diskFull``; ``StoreError/corrupt(cache:key:file:)``; ``StoreError/closed``. The
  ///   store stays suspended, and another call tries again.
  /// - Complexity: Opens LevelDB, which reads its log, at most two write buffers.
  public func resume() throws {
    try context.engine.resume()
    context.diskBudget?.restart()
    // If a tier has connected meanwhile, its caches could not settle their keys then.
    for case let cache as any SharedPart in allOpenCaches.values { cache.connected() }
  }
}
