// The workloads in C++, straight on LevelDB: what Larder's engine is measured against.
//
// Conventions:
//
//   1. Every function runs its whole loop, so that one call from Swift costs nothing.
//   2. A LevelDB error ends the process with its message: a benchmark has no use for one.
//   3. Reads check every result against the plan while they are timed, as the Swift side does.

#ifndef RAW_LEVELDB_H
#define RAW_LEVELDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
extern "C" {
#endif

typedef struct raw_db raw_db;

/// What Larder opens its own databases with, member by member. What is not here is as Larder has
/// it, too: paranoid checks on, checksums verified by every read, no log of LevelDB's doings.
typedef struct raw_options {
  bool compression;
  bool reuse_logs;
  int filter_bits_per_key;
  int max_open_files;
  size_t block_bytes;
  size_t write_buffer_bytes;
  size_t block_cache_bytes;
  size_t max_file_bytes;
} raw_options;

/// Which records are visited in which order, and what they hold. All memory is the caller's.
///
/// Record `r` has the `key_bytes` bytes at `keys + r * key_bytes`, and the `value_bytes` bytes of
/// the pool at `r * value_bytes % value_span`.
typedef struct raw_plan {
  const uint8_t *keys;
  size_t key_bytes;
  const uint8_t *pool;
  size_t value_span;
  size_t value_bytes;
  const uint32_t *order;
  size_t count;
} raw_plan;

raw_db *raw_open(const char *path, raw_options options);
void raw_close(raw_db *db);

/// Puts the planned records, one by one.
void raw_put_each(raw_db *db, const raw_plan *plan);

/// Puts the planned records, so many in one batch.
void raw_put_batches(raw_db *db, const raw_plan *plan, size_t batch_records);

/// Puts the planned records, an equal share of them by each thread, each with an fsync.
void raw_put_synced(raw_db *db, const raw_plan *plan, size_t threads);

/// Gets the planned records. Returns how many held what the plan says.
size_t raw_get_each(raw_db *db, const raw_plan *plan);

/// Asks for the planned keys, none of which is there. Returns how many were missing.
size_t raw_miss_each(raw_db *db, const raw_plan *plan);

/// Walks the entries from the first planned key on, against a plan that lists the records in the
/// order of their keys. Returns how many were what the plan says.
size_t raw_scan(raw_db *db, const raw_plan *plan);

/// Puts each planned record as Larder does: a record with a header of 36 bytes before the value,
/// and a row of an index, of `row_prefix_bytes` bytes (8 at least) and the key, with the record's
/// size. So many records go into one batch.
void raw_put_pairs(raw_db *db, const raw_plan *plan, const uint8_t *row_prefix,
                   size_t row_prefix_bytes, size_t batch_records);

/// Deletes the rows from `first` on, below `end`, and the records they name, in batches of
/// `batch_rows`.
///
/// A record has the key behind the first `row_prefix_bytes` bytes of its row's, behind
/// `record_prefix`, both prefixes of records being 2 bytes long. It is deleted if the double at its
/// byte 16 is not above `now`. Returns how many records were deleted.
size_t raw_sweep(raw_db *db, const uint8_t *first, const uint8_t *end, size_t row_prefix_bytes,
                 const uint8_t *record_prefix, double now, size_t batch_rows);

#ifdef __cplusplus
}

namespace leveldb {
class DB;
}

/// The database itself, for C++.
leveldb::DB *raw_database(raw_db *db);
#endif

#pragma clang assume_nonnull end

#endif  // RAW_LEVELDB_H
