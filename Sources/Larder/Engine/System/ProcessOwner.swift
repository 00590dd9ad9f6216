#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

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
