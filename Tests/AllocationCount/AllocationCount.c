// Counts how often the process asks for memory: these functions stand before those of glibc, count,
// and call glibc's own by their other names. Whatever is linked with this file is counted, so only
// one executable is. Under a sanitizer, which has its own in that place, and where there is no
// glibc, nothing is counted.

#include "LarderAllocationCount.h"

#include <stdlib.h>

#if defined(__GLIBC__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Atomic int64_t calls;

static void note(void) { atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed); }

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  note();
  return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
  note();
  void *found = __libc_memalign(alignment, size);
  if (!found) return ENOMEM;
  *block = found;
  return 0;
}

int64_t larder_allocation_count(void) { return atomic_load_explicit(&calls, memory_order_relaxed); }

void larder_return_free_memory(void) { malloc_trim(0); }

#else

int64_t larder_allocation_count(void) { return -1; }

void larder_return_free_memory(void) {}

#endif
