#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

import Synchronization

/// The process that has opened a store: no other may use it.
package struct ProcessOwner: Sendable {
  private let process: Int32
  private let forks: Int

  /// The calling process; from now on, forks are counted.
  package init() { (process, forks) = (getpid(), ForkCount.watch()) }

  /// Whether the calling process is the owner, and not a child of it.
  package var isCurrent: Bool { ForkCount.current == forks }

  /// Whether the owner was itself forked from a process that had opened a store.
  var isForked: Bool { forks > 0 }

  /// Throws ``StoreError/locked(pid:)`` in a child process of the owner.
  ///
  /// Call it before taking any lock: in the child, the thread that held the lock may be missing.
  func require() throws(StoreError) {
    guard isCurrent else { throw .locked(pid: process) }
  }
}

// A child process made by `fork` that starts no new program has a copy of its parent's memory, and
// shares its files and file locks. It has only one thread: a lock that another thread held at that
// moment is never released, and LevelDB's thread for compactions is missing. So the child cannot
// use an open store, and any change to its files would be a change to the parent's store.

/// Counts the forks between the process that began to count and the current one.
///
/// `posix_spawn`, and programs started after a fork, do not count.
enum ForkCount {
  private static let count = Atomic<Int>(0)
  private static let isWatching: Bool = {
    pthread_atfork(nil, nil) { _ = ForkCount.count.add(1, ordering: .relaxed) }
    return true
  }()

  /// Returns the current count; from the first call on, forks are counted.
  static func watch() -> Int {
    _ = isWatching
    return current
  }

  static var current: Int { count.load(ordering: .relaxed) }
}
