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
