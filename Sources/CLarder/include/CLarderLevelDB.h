// C interface to the part of LevelDB, and of Snappy, that this package uses.
//
// Conventions:
//
//   1. A function that can fail returns a `clarder_status *`. NULL means success. Anything else is
//      owned by the caller, who frees it with `clarder_status_free`.
//   2. A `clarder_slice` borrows. A slice argument is read during the call only; a returned slice
//      lives as long as its function states.
//   3. A pointer from an `_open` or `_create` function is owned by the caller and has one matching
//      `_close` or `_free`. Freeing NULL does nothing.
//   4. Cursors are freed before their database is closed. Closing a database frees its filter,
//      logger and cache in the right order.
//   5. A `clarder_db` may be used from any thread at once, with two exceptions: the caller lets one
//      thread at a time into `clarder_stage_...` and `clarder_commit`, and no thread into any
//      function while the database closes.
//      A cursor and a buffer belong to one thread at a time.
//   6. Absence is not a failure: a lookup returns whether it found something.
//   7. No function throws or calls back into its caller. Running out of memory ends the process.
//
// Keys are ordered by their bytes, as unsigned numbers, shorter first. The checksum of every block
// read is verified, and damage found by opening or compacting is never skipped (`paranoid_checks`).
//
// Missing on purpose:
//
//   - Snapshots: in LevelDB 1.23, a snapshot held across a compaction can expose old data.
//     A cursor reads one consistent state, too.
//   - Repair: it takes no lock and brings deleted keys back.
//   - Classes derived from LevelDB's: its builds differ in run-time type information.

#ifndef CLARDER_LEVELDB_H
#define CLARDER_LEVELDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

// An exception must end the process at this boundary, not unwind into Swift.
#ifdef __cplusplus
#define CLARDER_NOEXCEPT noexcept
extern "C" {
#else
#define CLARDER_NOEXCEPT
#endif

typedef struct clarder_status clarder_status;
typedef struct clarder_buffer clarder_buffer;
typedef struct clarder_db clarder_db;
typedef struct clarder_cursor clarder_cursor;
/// A `leveldb::Env`.
typedef struct clarder_env clarder_env;

/// Bytes borrowed from someone else. `bytes` may be NULL only when `count` is 0.
typedef struct clarder_slice {
  const void *_Nullable bytes;
  size_t count;
} clarder_slice;

// MARK: - Failures

/// The kind of failure. The values are part of this interface; LevelDB's own codes are private.
typedef enum __attribute__((enum_extensibility(closed))) clarder_code {
  clarder_code_corruption = 1,
  clarder_code_not_supported = 2,
  clarder_code_invalid_argument = 3,
  clarder_code_io_error = 4,
  /// An I/O error because no space or no quota is left. Recognised by the message.
  clarder_code_no_space = 5,
  /// The lock of the database is held, in this process or another. Recognised by the message.
  clarder_code_locked = 6,
} clarder_code;

/// The kind of failure that `status` reports.
clarder_code clarder_status_code(const clarder_status *status) CLARDER_NOEXCEPT;

/// LevelDB's message, NUL-terminated. Lives as long as `status`.
const char *clarder_status_message(const clarder_status *status) CLARDER_NOEXCEPT;

/// Frees a status.
void clarder_status_free(clarder_status *_Nullable status) CLARDER_NOEXCEPT;

// MARK: - Buffers

/// Creates an empty buffer. Its memory grows with the values read into it and is kept until the
/// buffer is freed.
clarder_buffer *clarder_buffer_create(void) CLARDER_NOEXCEPT;

/// Frees a buffer.
void clarder_buffer_free(clarder_buffer *_Nullable buffer) CLARDER_NOEXCEPT;

/// The bytes of `buffer`. They live until the buffer is changed or freed.
clarder_slice clarder_buffer_slice(const clarder_buffer *buffer) CLARDER_NOEXCEPT;

/// Makes `buffer` `count` bytes long, and returns them, to be changed before the next call. New
/// bytes are zero.
void *clarder_buffer_resize(clarder_buffer *buffer, size_t count) CLARDER_NOEXCEPT;

/// Replaces the contents of `buffer` by a copy of `bytes`.
void clarder_buffer_assign(clarder_buffer *buffer, clarder_slice bytes) CLARDER_NOEXCEPT;

// MARK: - Databases

/// The options of opening a database. Every member is read; there are no defaults here.
typedef struct clarder_options {
  /// Whether a missing database is created. Otherwise opening it fails.
  bool create_if_missing;
  /// Whether blocks are compressed with Snappy. Existing blocks can be read either way.
  bool compression;
  /// Whether opening appends to the last log instead of writing it into a table.
  bool reuse_logs;
  /// Whether compactions begin after the first `clarder_commit`, not with the opening. On a full
  /// disk a compaction would take the room that the commit needs. Linux only.
  bool hold_compactions;
  /// Bits of Bloom filter for each key; 0 for no filter.
  int filter_bits_per_key;
  /// The largest number of files that the database keeps open.
  int max_open_files;
  /// Bytes of entries in a block, before compression.
  size_t block_bytes;
  /// Bytes collected in memory before they become a table. Up to two such buffers exist at once.
  size_t write_buffer_bytes;
  /// Bytes of uncompressed blocks kept in memory.
  size_t block_cache_bytes;
  /// Bytes of a table before the next one is begun.
  size_t max_file_bytes;
  /// The file for LevelDB's log of its own work, such as "/dev/null". The file is overwritten.
  const char *info_log_path;
  /// The `leveldb::Env` for file access, or NULL for LevelDB's own. It must outlive the database.
  clarder_env *_Nullable env;
} clarder_options;

/// Opens the database in the directory `path`. On failure `*db` is NULL.
///
/// Opening writes to the directory even if nothing has to be recovered, and even if it then fails:
/// check the directory first.
///
/// The first opening in a process starts LevelDB's background thread. If the system refuses a
/// thread, opening fails and writes nothing.
clarder_status *_Nullable clarder_open(const char *path, const clarder_options *options,
                                       clarder_db *_Nullable *_Nonnull db) CLARDER_NOEXCEPT;

/// Waits for the compaction under way to stop, and frees the database.
void clarder_close(clarder_db *_Nullable db) CLARDER_NOEXCEPT;

/// Reads the value under `key` into `buffer`, replacing its contents.
///
/// `*found` is false and the buffer is empty if the key is absent, and on failure.
clarder_status *_Nullable clarder_get(clarder_db *db, clarder_slice key, clarder_buffer *buffer,
                                      bool *found) CLARDER_NOEXCEPT;

/// Adds a put to the changes that the next `clarder_commit` applies.
///
/// Only one thread at a time may be in this and `clarder_commit`: the batch is built in memory of
/// the database.
void clarder_stage_put(clarder_db *db, clarder_slice key, clarder_slice value) CLARDER_NOEXCEPT;

/// Adds a removal, as `clarder_stage_put` adds a put.
void clarder_stage_removal(clarder_db *db, clarder_slice key) CLARDER_NOEXCEPT;

/// Applies the staged changes in their order, all or none, and clears them.
///
/// With `synced`, the log has reached the device when this returns. Without changes it appends an
/// empty record, and so reports the failure of a compaction in the background, if any. After a
/// failure the log may end in a part of the record, and records after it could not be recovered:
/// commit nothing more before `clarder_renew_log`.
///
/// After a failure, `*in_doubt` says whether the log holds the whole record, because the sync of it
/// failed: the changes may then be applied when the database is opened again. On systems other than
/// Linux it is true after each failure with `synced`.
clarder_status *_Nullable clarder_commit(clarder_db *db, bool synced,
                                         bool *_Nullable in_doubt) CLARDER_NOEXCEPT;

/// Clears the staged changes, without applying them.
void clarder_discard(clarder_db *db) CLARDER_NOEXCEPT;

/// Starts a new log, as LevelDB does when its memory is full, and does not wait for the table.
///
/// Like `clarder_commit`, it is called by one thread at a time. The old log must not be empty.
clarder_status *_Nullable clarder_begin_log(clarder_db *db) CLARDER_NOEXCEPT;

/// Starts a new log, and returns when the rows of the old one are in a table, or when that has
/// failed; `clarder_commit` reports the failure.
void clarder_renew_log(clarder_db *db) CLARDER_NOEXCEPT;

/// Roughly the number of bytes in files of the keys from `lower` on and below `upper`, which is
/// NULL for no bound.
uint64_t clarder_approximate_bytes(clarder_db *db, clarder_slice lower,
                                   const clarder_slice *_Nullable upper) CLARDER_NOEXCEPT;

/// Writes LevelDB's memory into a table and rewrites the tables that hold keys from `lower` to
/// `upper` inclusive, or to the end if `upper` is NULL. Returns when that is done or has failed;
/// `clarder_commit` reports the failure.
void clarder_compact(clarder_db *db, clarder_slice lower,
                     const clarder_slice *_Nullable upper) CLARDER_NOEXCEPT;

/// Reads LevelDB's property `name` into `buffer`. False if there is none of that name.
bool clarder_property(clarder_db *db, const char *name, clarder_buffer *buffer) CLARDER_NOEXCEPT;

// MARK: - Cursors

/// Creates a cursor that reads the current state. It has no position until it seeks.
///
/// It keeps the files and the memory of that state alive: do not keep it for long.
clarder_cursor *clarder_cursor_create(clarder_db *db) CLARDER_NOEXCEPT;

/// Frees a cursor. Its database must still be open.
void clarder_cursor_free(clarder_cursor *_Nullable cursor) CLARDER_NOEXCEPT;

/// The position after a move.
typedef struct clarder_position {
  /// The current entry, empty if there is none. Both live until the cursor moves.
  clarder_slice key;
  clarder_slice value;
  bool is_entry;
  /// Whether the cursor has skipped an unreadable block, in this move or before. The current entry
  /// may then be outdated: a skipped one may have replaced or removed it. Without an entry, the
  /// rest may be unreadable.
  bool has_failed;
} clarder_position;

/// Moves to the first entry whose key is `key` or greater.
clarder_position clarder_cursor_seek(clarder_cursor *cursor, clarder_slice key) CLARDER_NOEXCEPT;

/// Moves to the last entry.
clarder_position clarder_cursor_seek_to_last(clarder_cursor *cursor) CLARDER_NOEXCEPT;

/// Moves to the next entry. The cursor must stand on one.
clarder_position clarder_cursor_next(clarder_cursor *cursor) CLARDER_NOEXCEPT;

/// Moves to the previous entry. The cursor must stand on one.
clarder_position clarder_cursor_previous(clarder_cursor *cursor) CLARDER_NOEXCEPT;

/// Copies entries to `bytes`, starting with the current one, and moves behind them.
///
/// An entry is copied as the lengths of its key and value, two numbers of 4 bytes, followed by key
/// and value. Copying ends before a key that is `upper` or greater, before an entry that does not
/// fit into the `*count` bytes, and after `max_entries`. `*count` is then the number of bytes
/// copied. The cursor must stand on an entry.
clarder_position clarder_cursor_copy(clarder_cursor *cursor, const clarder_slice *_Nullable upper,
                                     size_t max_entries, void *bytes,
                                     size_t *count) CLARDER_NOEXCEPT;

/// The first failure of all moves of the cursor, or NULL.
clarder_status *_Nullable clarder_cursor_status(const clarder_cursor *cursor) CLARDER_NOEXCEPT;

// MARK: - Files in memory

/// Creates a file system in memory, for `clarder_options.env`.
clarder_env *clarder_memory_create(void) CLARDER_NOEXCEPT;

/// Frees the file system. No database may be using it.
void clarder_memory_free(clarder_env *_Nullable memory) CLARDER_NOEXCEPT;

/// Whether there is a file at `path`.
bool clarder_memory_has(clarder_env *memory, const char *path) CLARDER_NOEXCEPT;

/// Reads a whole file into `buffer`, replacing its contents.
clarder_status *_Nullable clarder_memory_read(clarder_env *memory, const char *path,
                                              clarder_buffer *buffer) CLARDER_NOEXCEPT;

/// Reads up to `*count` bytes of a file from `offset` on to `bytes`. `*count` is then the number of
/// bytes read, fewer if the file ends before.
clarder_status *_Nullable clarder_memory_read_part(clarder_env *memory, const char *path,
                                                   uint64_t offset, void *bytes,
                                                   size_t *count) CLARDER_NOEXCEPT;

/// Replaces the contents of a file by `bytes`. A missing file is created.
clarder_status *_Nullable clarder_memory_write(clarder_env *memory, const char *path,
                                               clarder_slice bytes) CLARDER_NOEXCEPT;

/// Removes a file.
clarder_status *_Nullable clarder_memory_remove(clarder_env *memory,
                                                const char *path) CLARDER_NOEXCEPT;

/// Renames a file.
clarder_status *_Nullable clarder_memory_rename(clarder_env *memory, const char *path,
                                                const char *other) CLARDER_NOEXCEPT;

/// Writes the names of the files in a directory into `buffer`, each followed by a zero byte.
clarder_status *_Nullable clarder_memory_list(clarder_env *memory, const char *path,
                                              clarder_buffer *buffer) CLARDER_NOEXCEPT;

// MARK: - Compression

// The raw format of Snappy, which LevelDB's blocks have, too.

/// The most bytes that `clarder_snappy_compress` writes for `count` bytes.
size_t clarder_snappy_most_bytes(size_t count) CLARDER_NOEXCEPT;

/// Compresses `bytes`, and returns the size of the result. `compressed` has room for
/// `clarder_snappy_most_bytes(bytes.count)`, and does not overlap `bytes`.
size_t clarder_snappy_compress(clarder_slice bytes, void *compressed) CLARDER_NOEXCEPT;

/// Reads the size of the bytes that were compressed, which `compressed` begins with; false if it
/// begins with no size. The rest is not checked.
bool clarder_snappy_count(clarder_slice compressed, size_t *count) CLARDER_NOEXCEPT;

/// Whether `compressed` can be decompressed.
bool clarder_snappy_is_valid(clarder_slice compressed) CLARDER_NOEXCEPT;

/// Decompresses into `bytes`, which has room for the `count` of `clarder_snappy_count`; false if
/// `compressed` is not valid. `bytes` may have changed then.
bool clarder_snappy_decompress(clarder_slice compressed, void *bytes,
                               size_t count) CLARDER_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif  // CLARDER_LEVELDB_H
