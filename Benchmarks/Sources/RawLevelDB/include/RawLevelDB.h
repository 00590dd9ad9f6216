// The workloads in C++, directly on LevelDB, to compare with Larder's engine.
//
// Conventions:
//
//   1. Every function runs its whole loop, so that the cost of the call from Swift is negligible.
//   2. A LevelDB error ends the process with its message.
//   3. Reads check every result within the measured time, as the Swift side does.

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

/// Larder's own options. The others are fixed to Larder's values: paranoid checks on, checksums
/// verified by every read, no info log.
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

/// The records to visit in order, and their keys and values. The caller owns all memory.
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

/// Puts the planned records, `batch_records` per batch.
void raw_put_batches(raw_db *db, const raw_plan *plan, size_t batch_records);

/// Puts the planned records, an equal share of them by each thread, each with an fsync.
void raw_put_synced(raw_db *db, const raw_plan *plan, size_t threads);

/// Gets the planned records. Returns the number of values that match the plan.
size_t raw_get_each(raw_db *db, const raw_plan *plan);

/// Gets the planned keys, which the database does not have. Returns the number of missing keys.
size_t raw_miss_each(raw_db *db, const raw_plan *plan);

/// Scans the entries from the first planned key on, with a plan that lists the records in key
/// order. Returns the number of entries that match the plan.
size_t raw_scan(raw_db *db, const raw_plan *plan);

/// Deletes the rows from `first` up to `end`, and their expired records, in batches of
/// `batch_rows`. Returns the number of deleted records.
///
/// A record's key is `record_prefix`, which has 2 bytes, and the row's key without its first
/// `row_prefix_bytes` bytes. The record is expired if the double at its byte 16 is not above `now`.
size_t raw_sweep(raw_db *db, const uint8_t *first, const uint8_t *end, size_t row_prefix_bytes,
                 const uint8_t *record_prefix, double now, size_t batch_rows);

#ifdef __cplusplus
}

namespace leveldb {
class DB;
}

/// The LevelDB database, for C++ callers.
leveldb::DB *raw_database(raw_db *db);
#endif

#pragma clang assume_nonnull end

#endif  // RAW_LEVELDB_H
