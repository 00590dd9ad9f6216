#include <cerrno>
#include <cstdio>

#if defined(__linux__)
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "CLarderSystem.h"

// Swift's Glibc module does not have renameat2, and some C libraries do not declare it.
int clarder_exchange(const char* path, const char* other) noexcept {
#if defined(__linux__)
  constexpr unsigned kExchange = 1 << 1;
  return syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, kExchange) == 0 ? 0 : errno;
#elif defined(__APPLE__)
  return renamex_np(path, other, RENAME_SWAP) == 0 ? 0 : errno;
#else
  return ENOTSUP;
#endif
}

int clarder_begin_writing(int descriptor, int64_t offset, int64_t count) noexcept {
#if defined(__linux__)
  return sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE) == 0 ? 0 : errno;
#else
  (void)descriptor, (void)offset, (void)count;
  return 0;
#endif
}
