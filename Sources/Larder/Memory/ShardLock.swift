#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The memory of a lock that one function takes and another one releases.
///
/// `Mutex` can only call a closure, and a value of a generic type that a closure returns is copied
/// by slow, general code: it would double the time of a read from memory.
struct ShardLock: ~Copyable {
  #if canImport(Darwin)
    private var lock = os_unfair_lock()
  #else
    private var lock = pthread_mutex_t()
  #endif

  /// Makes a lock; it must then stay at its address.
  static func initialize(_ lock: UnsafeMutablePointer<ShardLock>) {
    lock.initialize(to: ShardLock())
    #if canImport(Glibc)
      var attributes = pthread_mutexattr_t()
      pthread_mutexattr_init(&attributes)
      // Waits for some hundred steps before it calls the system: the lock is held for fewer.
      pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
      pthread_mutex_init(&lock.pointee.lock, &attributes)
      pthread_mutexattr_destroy(&attributes)
    #endif
  }

  @inline(__always)
  static func take(_ lock: UnsafeMutablePointer<ShardLock>) {
    #if canImport(Darwin)
      os_unfair_lock_lock(&lock.pointee.lock)
    #else
      // It fails only for kinds of locks that this is not.
      pthread_mutex_lock(&lock.pointee.lock)
    #endif
  }

  @inline(__always)
  static func release(_ lock: UnsafeMutablePointer<ShardLock>) {
    #if canImport(Darwin)
      os_unfair_lock_unlock(&lock.pointee.lock)
    #else
      pthread_mutex_unlock(&lock.pointee.lock)
    #endif
  }
}
