#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A lock and the value that it protects.
///
/// The library uses it in place of `Mutex`. On Linux, a released `Mutex` belongs to the first
/// thread that waits for it, even if that thread still sleeps. No other thread can take it before
/// that one was woken, so each use waits for a switch of threads. Any thread can take a released
/// `Lock`.
struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  private struct Memory: ~Copyable {
    /// First, so that it has the address of the memory.
    var lock = SystemLock()
    var value: Value
  }

  private let memory: UnsafeMutablePointer<Memory>
  private var lock: UnsafeMutablePointer<SystemLock> {
    UnsafeMutableRawPointer(memory).assumingMemoryBound(to: SystemLock.self)
  }

  init(_ value: consuming sending Value) {
    memory = .allocate(capacity: 1)
    memory.initialize(to: Memory(value: value))
    SystemLock.initialize(lock)
  }

  deinit {
    SystemLock.destroy(lock)
    memory.deinitialize(count: 1)
    memory.deallocate()
  }

  /// Calls a closure with exclusive access to the value.
  ///
  /// The closure must not take the same lock.
  func withLock<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending R
  ) throws(E) -> sending R {
    SystemLock.take(lock)
    defer { SystemLock.release(lock) }
    return try body(&memory.pointee.value)
  }

  /// Calls a closure with exclusive access to the value; returns nil if the lock is taken.
  func withLockIfAvailable<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending R
  ) throws(E) -> sending R? {
    guard SystemLock.takeIfAvailable(lock) else { return nil }
    defer { SystemLock.release(lock) }
    return try body(&memory.pointee.value)
  }
}

/// The memory of a lock, which must stay at its address.
///
/// The shards of a memory cache use it without a ``Lock``, whose closures would double the time of
/// a read: a value of a generic type that a closure returns is copied by slow, general code.
struct SystemLock: ~Copyable {
  #if canImport(Darwin)
    private var lock = os_unfair_lock()
  #else
    private var lock = pthread_mutex_t()
  #endif

  /// Prepares a lock for its use, at its address.
  static func initialize(_ lock: UnsafeMutablePointer<SystemLock>) {
    #if canImport(Glibc)
      var attributes = pthread_mutexattr_t()
      pthread_mutexattr_init(&attributes)
      // Tries for some hundred steps before it calls the system: most locks are held for fewer.
      pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
      pthread_mutex_init(&lock.pointee.lock, &attributes)
      pthread_mutexattr_destroy(&attributes)
    #endif
  }

  /// Ends the use of the lock, which is not taken.
  static func destroy(_ lock: UnsafeMutablePointer<SystemLock>) {
    #if !canImport(Darwin)
      pthread_mutex_destroy(&lock.pointee.lock)
    #endif
  }

  @inline(__always)
  static func take(_ lock: UnsafeMutablePointer<SystemLock>) {
    #if canImport(Darwin)
      os_unfair_lock_lock(&lock.pointee.lock)
    #else
      // It fails only for kinds of locks that this is not.
      pthread_mutex_lock(&lock.pointee.lock)
    #endif
  }

  /// Takes the lock unless it is taken; returns whether it did.
  @inline(__always)
  static func takeIfAvailable(_ lock: UnsafeMutablePointer<SystemLock>) -> Bool {
    #if canImport(Darwin)
      os_unfair_lock_trylock(&lock.pointee.lock)
    #else
      pthread_mutex_trylock(&lock.pointee.lock) == 0
    #endif
  }

  @inline(__always)
  static func release(_ lock: UnsafeMutablePointer<SystemLock>) {
    #if canImport(Darwin)
      os_unfair_lock_unlock(&lock.pointee.lock)
    #else
      pthread_mutex_unlock(&lock.pointee.lock)
    #endif
  }
}
