#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

import Synchronization

// A child process that came by `fork` and runs on has the memory of its parent, and shares its
// files and locks. Of its threads it has one: whoever held a lock at that moment will never give it
// up, and LevelDB's thread for compactions is missing. So an open store is of no use in it, and
// whatever it did to one would be done to the parent's.

/// How many forks lie between the process that counts them and this one.
///
/// `posix_spawn` and programs that are started do not count.
enum ForkCount {
  private static let count = Atomic<Int>(0)
  private static let isWatching: Bool = {
    pthread_atfork(nil, nil) { _ = ForkCount.count.add(1, ordering: .relaxed) }
    return true
  }()

  /// The count as it is now; from the first call on, forks are counted.
  static func watch() -> Int {
    _ = isWatching
    return current
  }

  static var current: Int { count.load(ordering: .relaxed) }
}
