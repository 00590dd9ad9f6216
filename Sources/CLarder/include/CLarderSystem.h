// C interface to operations that Swift cannot call, or not alike on all systems: the processor's
// CRC32C instruction, the system's exchange of two names, room behind the end of a file, and the
// start of a thread.

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

/// The whole seconds of the coarse monotonic clock.
int64_t clarder_uptime_seconds(void) CLARDER_NOEXCEPT;

/// The coarse clock's date, in seconds since 2001-01-01 00:00 UTC.
double clarder_coarse_date(void) CLARDER_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // CLARDER_SYSTEM_H
