// C interface to operations that Swift cannot call, or not alike on all systems: the processor's
// CRC32C instruction, the system's exchange of two names, room behind the end of a file, the start
// of a thread, and sockets in the file system.

#ifndef CLARDER_SYSTEM_H
#define CLARDER_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
#define CLARDER_NOEXCEPT noexcept
extern "C" {
#else
#define CLARDER_NOEXCEPT
#endif

/// The CRC32C of the data that `crc` was computed over, followed by `count` bytes. Begin with 0.
///
/// Uses the processor's instruction if there is one. `bytes` may be NULL only when `count` is 0.
uint32_t clarder_crc32c(uint32_t crc, const void *_Nullable bytes, size_t count) CLARDER_NOEXCEPT;

/// The same number by table, as on processors without the instruction. For tests.
uint32_t clarder_crc32c_by_table(uint32_t crc, const void *_Nullable bytes,
                                 size_t count) CLARDER_NOEXCEPT;

/// Exchanges the names of two files or directories atomically. Returns 0, or an errno.
int clarder_exchange(const char *path, const char *other) CLARDER_NOEXCEPT;

/// Allocates `count` bytes of room behind the end of a file, from `start` on where the system can
/// say so, without changing the file's size. Returns 0, or an errno.
int clarder_allocate(int descriptor, int64_t start, int64_t count) CLARDER_NOEXCEPT;

/// Starts a detached thread that calls `body` with `context` and then ends. Returns false if the
/// system refuses one.
bool clarder_start_thread(void (*body)(void *context), void *context) CLARDER_NOEXCEPT;

/// The nanoseconds since some start, including the time that the system was asleep.
int64_t clarder_continuous_nanoseconds(void) CLARDER_NOEXCEPT;

/// The whole seconds of the coarse monotonic clock.
int64_t clarder_uptime_seconds(void) CLARDER_NOEXCEPT;

/// The coarse clock's date, in seconds since 2001-01-01 00:00 UTC.
double clarder_coarse_date(void) CLARDER_NOEXCEPT;

/// Listens on a socket that is the file `name` in a directory, with mode 0600. The file is created
/// as `temporary` and then renamed, which replaces an older one.
///
/// On Linux a path may be longer than the 107 bytes of an address, if /proc is mounted. Returns a
/// descriptor that does not block, or a negated errno. The caller closes it, and removes the file.
int clarder_listen(const char *directory, const char *name,
                   const char *temporary) CLARDER_NOEXCEPT;

/// Connects to such a socket. The call, and every one that sends or receives over it, waits for at
/// most `seconds`. Returns a descriptor, or a negated errno: EAGAIN if the time is over.
int clarder_connect(const char *directory, const char *name, int seconds) CLARDER_NOEXCEPT;

/// Accepts a connection. Returns a descriptor that does not block, or a negated errno.
///
/// A connection never takes the last descriptor of the process. It waits then, and the call returns
/// -EMFILE. The reason: libdispatch on Linux opens a file of /proc once a second, and ends the
/// process if it cannot.
int clarder_accept(int descriptor) CLARDER_NOEXCEPT;

/// The user and the process at the other end of a connection; process 0 if it is not known.
/// Returns 0, or an errno.
int clarder_peer(int descriptor, uint32_t *user, int32_t *process) CLARDER_NOEXCEPT;

/// Sends bytes, and raises no SIGPIPE. Returns the number of bytes sent, or a negated errno.
int64_t clarder_send(int descriptor, const void *bytes, size_t count) CLARDER_NOEXCEPT;

/// Receives up to `count` bytes. Returns their number, 0 at the end, or a negated errno.
int64_t clarder_receive(int descriptor, void *bytes, size_t count) CLARDER_NOEXCEPT;

/// Waits for some nanoseconds, in a loop that looks for a change by another thread.
static inline void clarder_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // CLARDER_SYSTEM_H
