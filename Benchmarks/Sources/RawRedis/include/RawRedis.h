// Commands to a Redis server by hiredis, to compare with a shared cache.
//
// The conventions are those of RawLevelDB.h. If a connection fails, or the server replies with an
// error, the process prints the message and ends. One thread at a time uses a connection.

#ifndef RAW_REDIS_H
#define RAW_REDIS_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
extern "C" {
#endif

typedef struct raw_redis raw_redis;

/// What to send: the keys `prefix` followed by a number from `first` on.
typedef struct raw_redis_plan {
  const char *prefix;
  size_t first;
  size_t count;
  /// The number of bytes of each value.
  size_t value_bytes;
  /// How many commands are sent before the first reply is read.
  size_t depth;
} raw_redis_plan;

/// Connects to a server's Unix socket; null if it cannot.
raw_redis *_Nullable raw_redis_open(const char *path);
void raw_redis_close(raw_redis *redis);

/// Sets the planned values, which have a time to live. Returns the number of values that were set.
size_t raw_redis_set(raw_redis *redis, raw_redis_plan plan);

/// Gets the planned values. Returns how many have the planned number of bytes.
size_t raw_redis_get(raw_redis *redis, raw_redis_plan plan);

/// Gets eight bytes of each of the planned values. Returns how many replies have eight bytes.
size_t raw_redis_get_part(raw_redis *redis, raw_redis_plan plan);


#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // RAW_REDIS_H
