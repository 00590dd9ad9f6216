// Tells ThreadSanitizer what Swift's `Mutex` does on Linux, to be loaded with LD_PRELOAD.
//
// A mutex without contention is an atomic exchange in our own code, which the sanitizer sees. With
// contention it is a call into libswiftSynchronization, which is not built with the sanitizer: it
// then takes everything that a mutex guards for a race. These two functions stand in front of the
// library's and say who waited for whom. Real races are found as before.
//
// The names are those of `_MutexHandle._lockSlow(_:)` and `_MutexHandle._unlockSlow()`.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

typedef SWIFT void (*lock_function)(uint32_t thread, SELF);
typedef SWIFT void (*unlock_function)(SELF);

// Missing in processes that are loaded with this library and not built with the sanitizer.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK_SLOW);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK_SLOW);

SWIFT void lock_slow(uint32_t thread, SELF) {
  ((lock_function)dlsym(RTLD_NEXT, LOCK_SLOW))(thread, self);
  if (__tsan_acquire != NULL) __tsan_acquire(self);
}

SWIFT void unlock_slow(SELF) {
  if (__tsan_release != NULL) __tsan_release(self);
  ((unlock_function)dlsym(RTLD_NEXT, UNLOCK_SLOW))(self);
}
