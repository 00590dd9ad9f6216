// A suspended engine has closed its database and given up the guard: another process may open the
// store. The state in memory (ids, counts, notes, values) is what it was, so the engine may go on
// only if nobody has opened the store since. Opening a LevelDB database begins a new MANIFEST,
// which CURRENT names; only `reusesLogs`, which no user of this library can set, may keep the old
// one. So if CURRENT is unchanged, in a directory that is still the same, nobody has opened it.

extension LevelDBEngine {
  package func suspend() throws(StoreError) {
    try owner.require()
    try directory.withLock { directory throws(StoreError) in
      guard let path = directory?.path else { throw .closed }
      guard !database.isSuspended else { return }
      schedule.stop(because: .suspended)
      closeDatabase(in: path, as: .suspended)
      directory?.giveUp(options.files)
    }
  }

  package func resume() throws(StoreError) {
    try owner.require()
    try directory.withLock { directory throws(StoreError) in
      guard let path = directory?.path else { throw .closed }
      guard database.isSuspended else { return }
      try directory?.takeBack(options.files)
      do throws(StoreError) {
        try control.restart(in: path)
        try openAgain(in: path, isCertain: queue.withWriter { $0.disabledCause == nil })
      } catch {
        control.end()
        // The attempt may have changed CURRENT, which the next one must not take for another's.
        directory?.giveUp(options.files)
        throw error
      }
      schedule.restart()
      statistics.restart()
    }
  }
}
