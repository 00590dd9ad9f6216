// Other stores, each used as a cache, to compare with Larder's saves, reads and sweeps.
//
// Conventions:
//
//   1. A record is a value under a number. If it expires, an index by date has a row for it,
//      written together with the record, so that it can be swept.
//   2. A completed write survives a crash of the process, but not necessarily a power loss, like a
//      save of Larder.
//   3. An error of a store ends the process with its message.
//   4. A store must be used by one thread at a time.

#ifndef PEERS_H
#define PEERS_H

#include <RawLevelDB.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peer_kind {
  /// LevelDB, opened as `raw_open` does.
  peer_kind_leveldb,
  /// RocksDB, with the options of `raw_options` that it supports, and its defaults for the rest.
  peer_kind_rocksdb,
  /// The same with values from 4 KiB on in blob files, collected from the oldest quarter on.
  peer_kind_blobdb,
  /// LMDB with `MDB_NOSYNC`: a commit is written to the file but not synced, like a save of Larder.
  /// `MDB_NOMETASYNC` would leave out only one of the two fsyncs of a commit.
  peer_kind_lmdb,
} peer_kind;

typedef struct peer peer;

/// Opens or creates the store in the existing directory at `path`.
peer *peer_open(peer_kind kind, const char *path, raw_options options);
void peer_close(peer *store);

/// Starts to combine puts into one write.
void peer_begin(peer *store);
/// Writes the combined puts.
void peer_commit(peer *store);

/// Puts a record, in its own write unless puts are combined. `expires` is infinite for a record
/// that never expires.
void peer_put(peer *store, int64_t key, const void *_Nullable value, size_t count, double expires);

/// Gets a value, which is valid until the next call. Returns NULL if the record is missing.
const void *_Nullable peer_get(peer *store, int64_t key, size_t *count);

/// Deletes the records that expire at `now` or earlier, and returns their number.
size_t peer_sweep(peer *store, double now);

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // PEERS_H
