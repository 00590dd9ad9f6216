#include <cerrno>

#include <fcntl.h>

#include "CLarderSystem.h"

// Swift's Glibc module does not have fallocate.
int clarder_allocate(int descriptor, int64_t start, int64_t count) noexcept {
#if defined(__linux__)
  return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, start, count) == 0 ? 0 : errno;
#elif defined(__APPLE__)
  // Counted from the end of what is allocated.
  fstore_t room = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, count, 0};
  return fcntl(descriptor, F_PREALLOCATE, &room) != -1 ? 0 : errno;
#else
  return ENOTSUP;
#endif
}
