// Stores of other makers, each as a cache would use it: what Larder's saves, reads and sweeps are
// measured against.
//
// Conventions:
//
//   1. A record is a value under a number. It may expire; then an index by that moment has a row
//      for it, written together with the record, so that it can be swept.
//   2. A write that has returned survives a crash of the process. None is made to survive a power
//      loss: that is what a save of Larder promises.
//   3. An error of a store ends the process with its message: a benchmark has no use for one.
//   4. One thread at a time.

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
  /// RocksDB, with each option of `raw_options` that it has, and its own defaults for the rest.
  peer_kind_rocksdb,
  /// LMDB with `MDB_NOSYNC`: a commit is written to the file and not synced. What `MDB_NOMETASYNC`
  /// leaves out is one of the two fsyncs of a commit, and no save of Larder has one.
  peer_kind_lmdb,
} peer_kind;

typedef struct peer peer;

/// Opens the store in the directory at `path`, which must be there, or creates it.
peer *peer_open(peer_kind kind, const char *path, raw_options options);
void peer_close(peer *store);

/// Gathers what is put from now on into one write.
void peer_begin(peer *store);
/// Writes what was gathered.
void peer_commit(peer *store);

/// Puts a record, by itself unless puts are gathered. `expires` is infinite for one that stays.
void peer_put(peer *store, int64_t key, const void *_Nullable value, size_t count, double expires);

/// Gets a value, which is lent until the next call. Returns NULL when there is none.
const void *_Nullable peer_get(peer *store, int64_t key, size_t *count);

/// Deletes what expires at `now` or earlier. Returns how many records that were.
size_t peer_sweep(peer *store, double now);

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // PEERS_H
