// Lets the thread sanitizer see Swift's `Mutex` on Linux.
//
// What a contended mutex does happens inside the standard library, which is not instrumented, so
// the sanitizer misses that one thread took it after the other gave it up, and calls whatever the
// mutex guards a race. These functions stand before the library's own, call them, and tell the
// sanitizer. They are in no other build: without the sanitizer this file is empty.

#if defined(__linux__) && __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "CTestSupport.h"

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

// Synchronization._MutexHandle._lockSlow(UInt32), ._tryLockSlow() -> Bool and ._unlockSlow()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

void __tsan_acquire(void *address);
void __tsan_release(void *address);

typedef SWIFT void (*Lock)(uint32_t thread, SELF);
typedef SWIFT bool (*TryLock)(SELF);
typedef SWIFT void (*Unlock)(SELF);

SWIFT void larder_lock(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool larder_try_lock(SELF) __asm__(TRY_LOCK);
SWIFT void larder_unlock(SELF) __asm__(UNLOCK);

SWIFT void larder_lock(uint32_t thread, SELF) {
  ((Lock)dlsym(RTLD_NEXT, LOCK))(thread, self);
  __tsan_acquire(self);
}

SWIFT bool larder_try_lock(SELF) {
  bool is_locked = ((TryLock)dlsym(RTLD_NEXT, TRY_LOCK))(self);
  if (is_locked) __tsan_acquire(self);
  return is_locked;
}

SWIFT void larder_unlock(SELF) {
  __tsan_release(self);
  ((Unlock)dlsym(RTLD_NEXT, UNLOCK))(self);
}

#endif
