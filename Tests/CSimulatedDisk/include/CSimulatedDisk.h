// C interface to a disk in memory, for tests: a `leveldb::Env`, and the file calls that a store
// makes itself, on the same files.
//
// The disk knows what would survive a power loss. A file has written bytes and synced bytes. Names
// change in one order, that of the file system's journal, and syncing any directory makes every
// change so far durable. Each change of the disk is an entry in its journal, which can be replayed.
// After each entry, a crash model defines what a crash at that moment leaves.
//
// Conventions:
//
//   1. A call that can fail returns an errno, 0 for success. It is counted, and a fault can make it
//      fail. The other functions inspect the disk or change it from outside.
//   2. A pointer from `_create`, `_copy` or `_image` is owned by the caller and has one matching
//      `_free`. Freeing NULL does nothing.
//   3. Paths are absolute. "/" always exists.
//   4. A disk may be used from any thread; a replay and a buffer only from one at a time.
//   5. A disk is freed after every database on it is closed.

#ifndef CSIMULATED_DISK_H
#define CSIMULATED_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

#ifdef __cplusplus
#define CSIMDISK_NOEXCEPT noexcept
extern "C" {
#else
#define CSIMDISK_NOEXCEPT
#endif

typedef struct csimdisk csimdisk;
typedef struct csimdisk_buffer csimdisk_buffer;
typedef struct csimdisk_environment csimdisk_environment;
typedef struct csimdisk_replay csimdisk_replay;

// MARK: - Buffers

/// Creates an empty buffer.
csimdisk_buffer *csimdisk_buffer_create(void) CSIMDISK_NOEXCEPT;

/// Frees a buffer.
void csimdisk_buffer_free(csimdisk_buffer *_Nullable buffer) CSIMDISK_NOEXCEPT;

/// The bytes of a buffer, valid until the buffer is changed or freed.
const uint8_t *csimdisk_buffer_bytes(const csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// The number of bytes in a buffer.
size_t csimdisk_buffer_count(const csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

// MARK: - Disks

/// Creates an empty disk.
csimdisk *csimdisk_create(void) CSIMDISK_NOEXCEPT;

/// Creates a disk with the same files, durable state and journal, and without faults, locks or
/// counted calls. Bytes are shared, so a copy is cheap.
csimdisk *csimdisk_copy(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Frees a disk after its scheduled work has run.
void csimdisk_free(csimdisk *_Nullable disk) CSIMDISK_NOEXCEPT;

/// The `leveldb::Env` of the disk, valid as long as the disk.
csimdisk_environment *csimdisk_env(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// A hash of all names and bytes, equal for disks with the same contents.
uint64_t csimdisk_hash(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Puts the path of every file into `buffer`, in order, each followed by a NUL.
void csimdisk_paths(csimdisk *disk, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Puts all bytes of a file into `buffer`; returns false if the file is missing.
bool csimdisk_bytes(csimdisk *disk, const char *path, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Replaces a file's contents durably, and creates its name and directories if they are missing.
void csimdisk_set_bytes(csimdisk *disk, const char *path, const void *_Nullable bytes,
                        size_t count) CSIMDISK_NOEXCEPT;

/// The number of written bytes of a file that are not durable.
uint64_t csimdisk_unsynced(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Sets the maximum size of all files together; writes beyond it find no space.
void csimdisk_set_capacity(csimdisk *disk, uint64_t bytes) CSIMDISK_NOEXCEPT;

// MARK: - Faults

/// The calls that a fault counts and can make fail.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_calls {
  /// Writes, syncs and all other calls that change the disk.
  csimdisk_calls_mutating = 0,
  /// Writes of bytes.
  csimdisk_calls_writes = 1,
  /// Syncs of files and directories.
  csimdisk_calls_syncs = 2,
  /// Calls that do not change the disk: opening for reading, reading, listing and `stat`.
  csimdisk_calls_reads = 3,
  /// Every call.
  csimdisk_calls_all = 4,
} csimdisk_calls;

/// How a call fails. A failed call has no effect, except for a short write.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_fault {
  csimdisk_fault_eio = 0,
  csimdisk_fault_enospc = 1,
  /// A write stores half of its bytes and then finds no space; other calls find none at once.
  csimdisk_fault_short_write = 2,
} csimdisk_fault;

/// The numbers of calls.
typedef struct csimdisk_counts {
  /// Indexed by the values of `csimdisk_calls`.
  uint64_t calls[5];
  /// The number of calls that a fault made fail.
  uint64_t failed;
} csimdisk_counts;

/// Makes the call with the given number fail, and all later `calls` if `forever` is true. Numbers
/// start at 1 and count the `calls` since the disk was created.
void csimdisk_fail(csimdisk *disk, uint64_t number, csimdisk_calls calls, csimdisk_fault fault,
                   bool forever) CSIMDISK_NOEXCEPT;

/// Ends every fault.
void csimdisk_heal(csimdisk *disk) CSIMDISK_NOEXCEPT;

csimdisk_counts csimdisk_count(csimdisk *disk) CSIMDISK_NOEXCEPT;

// MARK: - Calls

typedef enum __attribute__((enum_extensibility(closed))) csimdisk_kind {
  csimdisk_kind_none = 0,
  csimdisk_kind_file = 1,
  csimdisk_kind_directory = 2,
} csimdisk_kind;

/// Finds out what is at a path.
int csimdisk_stat(csimdisk *disk, const char *path, csimdisk_kind *kind) CSIMDISK_NOEXCEPT;

/// Puts the names in a directory into `buffer`, each followed by a NUL.
int csimdisk_list(csimdisk *disk, const char *path, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Puts the first `limit` bytes of a file into `buffer`.
int csimdisk_read(csimdisk *disk, const char *path, size_t limit,
                  csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Puts up to `count` bytes of a file, from `offset` on, into `buffer`.
int csimdisk_read_part(csimdisk *disk, const char *path, uint64_t offset, size_t count,
                       csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Finds out the number of bytes of a file.
int csimdisk_size(csimdisk *disk, const char *path, uint64_t *count) CSIMDISK_NOEXCEPT;

int csimdisk_make_directory(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Creates or truncates a file, and writes `bytes` in one write.
int csimdisk_write(csimdisk *disk, const char *path, const void *_Nullable bytes,
                   size_t count) CSIMDISK_NOEXCEPT;

/// Appends `bytes` to a file in one write; creates the file if it is missing.
int csimdisk_append(csimdisk *disk, const char *path, const void *_Nullable bytes,
                    size_t count) CSIMDISK_NOEXCEPT;

int csimdisk_truncate(csimdisk *disk, const char *path, uint64_t count) CSIMDISK_NOEXCEPT;

int csimdisk_rename(csimdisk *disk, const char *path, const char *other) CSIMDISK_NOEXCEPT;

/// Exchanges the names of two files or two directories.
int csimdisk_exchange(csimdisk *disk, const char *path, const char *other) CSIMDISK_NOEXCEPT;

/// Makes `other` another name of a file. The journal records it as a creation.
int csimdisk_link(csimdisk *disk, const char *path, const char *other) CSIMDISK_NOEXCEPT;

/// Removes a file.
int csimdisk_remove(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Removes an empty directory.
int csimdisk_remove_directory(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Makes the bytes of a file durable.
int csimdisk_sync(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Makes every change of names durable.
int csimdisk_sync_directory(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

int csimdisk_available(csimdisk *disk, const char *path, uint64_t *bytes) CSIMDISK_NOEXCEPT;

/// Takes the lock of a file, which is created if missing; EWOULDBLOCK if the lock is held.
int csimdisk_lock(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Releases a lock. Not counted.
void csimdisk_unlock(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

// MARK: - The background

/// From now on LevelDB's background work waits before it starts, and before each of its calls that
/// change the disk. No call may depend on that work meanwhile: do not fill two logs, and do not
/// close or compact a database. Such a call blocks for a minute; then the work is released.
void csimdisk_hold_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// From now on calls of other threads that change the disk wait until there is no background work.
void csimdisk_prefer_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Ends `csimdisk_hold_background` and `csimdisk_prefer_background`.
void csimdisk_release_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Lets the background work continue for `calls` of those steps, and waits until it has made them
/// or is finished. If the work is not held, waits until it is finished.
void csimdisk_run_background(csimdisk *disk, size_t calls) CSIMDISK_NOEXCEPT;

// MARK: - Crashes

/// The kind of change that a journal entry records.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_entry_kind {
  csimdisk_entry_create = 0,
  csimdisk_entry_write = 1,
  csimdisk_entry_truncate = 2,
  csimdisk_entry_sync = 3,
  csimdisk_entry_rename = 4,
  csimdisk_entry_unlink = 5,
  csimdisk_entry_mkdir = 6,
  csimdisk_entry_rmdir = 7,
  csimdisk_entry_sync_directory = 8,
  /// A change from outside, by `csimdisk_set_bytes`.
  csimdisk_entry_edit = 9,
  csimdisk_entry_exchange = 10,
} csimdisk_entry_kind;

/// An entry of the journal.
typedef struct csimdisk_entry {
  csimdisk_entry_kind kind;
  /// The number of the file; 0 if the entry does not concern a file.
  uint64_t file;
  /// The number of bytes written, or left after a truncation.
  uint64_t count;
  /// The given path, or "" for calls on open files.
  const char *path;
} csimdisk_entry;

/// What a crash leaves of the changes that are not durable.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_model {
  /// Everything, because only the process ended.
  csimdisk_model_everything = 0,
  /// Nothing.
  csimdisk_model_nothing_unsynced = 1,
  /// All changes of names, and no unsynced bytes.
  csimdisk_model_unsynced_data_lost = 2,
  /// The first `number` changes of names, and all bytes.
  csimdisk_model_names_lost = 3,
  /// A prefix of each file's bytes and of the changes of names. `number` is the random seed, here
  /// and below.
  csimdisk_model_prefix = 4,
  /// Everything, except that the last write is incomplete unless it was synced.
  csimdisk_model_torn_last_append = 5,
  /// Everything, except that the last unsynced bytes of one file are zeros.
  csimdisk_model_zeroed_tail = 6,
  /// Everything, except that the last unsynced bytes of one file are random.
  csimdisk_model_garbage_tail = 7,
  /// Everything, except the unsynced bytes of the oldest file that has some.
  csimdisk_model_old_file_tail_lost = 8,
} csimdisk_model;

/// The number of entries in a disk's journal.
size_t csimdisk_journal_count(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Creates a replay of the current journal, positioned before the first entry.
csimdisk_replay *csimdisk_replay_create(csimdisk *disk) CSIMDISK_NOEXCEPT;

void csimdisk_replay_free(csimdisk_replay *_Nullable replay) CSIMDISK_NOEXCEPT;

/// Applies the next entry and returns it, valid until the next call; NULL at the end.
const csimdisk_entry *_Nullable csimdisk_replay_step(csimdisk_replay *replay) CSIMDISK_NOEXCEPT;

/// The number of changes of names that are not durable.
size_t csimdisk_replay_pending_names(const csimdisk_replay *replay) CSIMDISK_NOEXCEPT;

/// Creates the disk that a crash at this position leaves; its contents are durable.
csimdisk *csimdisk_replay_image(const csimdisk_replay *replay, csimdisk_model model,
                                uint64_t number) CSIMDISK_NOEXCEPT;

// MARK: - LevelDB on the disk, for the disk's own tests

/// Opens or creates a database, and puts `count` entries of 1000 bytes into it, each synced and
/// numbered from `first`. Returns the number of entries that were put before a call failed.
int csimdisk_database_fill(csimdisk *disk, const char *path, int first,
                           int count) CSIMDISK_NOEXCEPT;

/// The number of entries in the database; -1 if it cannot be opened or read, or if an entry before
/// the last one is missing.
int csimdisk_database_count(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

// MARK: - LevelDB's view of its files

/// Writes what LevelDB's `DumpFile` prints of a log, a MANIFEST or a table to `output`. Both are
/// files of the system. Returns false if one of them cannot be read or written.
bool csimdisk_dump_file(const char *path, const char *output) CSIMDISK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif
