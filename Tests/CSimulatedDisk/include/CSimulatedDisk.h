// C interface to a disk that lives in memory, for tests: a `leveldb::Env` and the calls that a
// store makes itself, over the same files.
//
// The disk knows what would survive a power loss. A file has the bytes that were written and those
// that were synced. Names change in one order, that of the file system's journal; syncing any
// directory makes every change so far durable. All that changes the disk is an entry of its
// journal, which can be gone through again: after each entry, a crash model says what a crash at
// that moment leaves.
//
// Conventions:
//
//   1. A call that can fail returns an errno, 0 for success. It is counted, and it can be told to
//      fail. The other functions look at the disk or change it from outside.
//   2. A pointer from `_create`, `_copy` or `_image` is owned by the caller and has one matching
//      `_free`. Freeing NULL does nothing.
//   3. Paths are absolute. "/" is always there.
//   4. A disk may be used from any thread; a replay and a buffer belong to one at a time.
//   5. A disk is freed after every database on it was closed.

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

/// The bytes of a buffer. They live until the buffer is changed or freed.
const uint8_t *csimdisk_buffer_bytes(const csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// How many bytes a buffer holds.
size_t csimdisk_buffer_count(const csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

// MARK: - Disks

/// Creates an empty disk.
csimdisk *csimdisk_create(void) CSIMDISK_NOEXCEPT;

/// Creates a disk with the same files, what is durable of them, and journal; it has no faults, no
/// locks and no calls yet. Bytes are shared, so it is cheap.
csimdisk *csimdisk_copy(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Frees a disk, after what was scheduled on it has run.
void csimdisk_free(csimdisk *_Nullable disk) CSIMDISK_NOEXCEPT;

/// The `leveldb::Env` of the disk. Lives as long as the disk.
csimdisk_environment *csimdisk_env(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// A hash of all names and bytes; disks with the same contents have the same.
uint64_t csimdisk_hash(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Puts the path of every file into `buffer`, in order, each followed by a NUL.
void csimdisk_paths(csimdisk *disk, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Puts all bytes of a file into `buffer`; false when there is no such file.
bool csimdisk_bytes(csimdisk *disk, const char *path, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Makes `bytes` all that a file holds, durably, its name and directories too if they are missing.
void csimdisk_set_bytes(csimdisk *disk, const char *path, const void *_Nullable bytes,
                        size_t count) CSIMDISK_NOEXCEPT;

/// How many bytes of a file are written and not durable.
uint64_t csimdisk_unsynced(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Sets how many bytes all files together may have; what goes beyond finds no space.
void csimdisk_set_capacity(csimdisk *disk, uint64_t bytes) CSIMDISK_NOEXCEPT;

// MARK: - Faults

/// Which calls a fault counts, and can make fail.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_calls {
  /// Those below.
  csimdisk_calls_mutating = 0,
  /// Writes of bytes.
  csimdisk_calls_writes = 1,
  /// Syncs of files and directories.
  csimdisk_calls_syncs = 2,
  /// Not among the mutating: opening for reading, reading, listing, looking.
  csimdisk_calls_reads = 3,
  /// Every call.
  csimdisk_calls_all = 4,
} csimdisk_calls;

/// How a call fails. But for short writes, it does nothing.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_fault {
  csimdisk_fault_eio = 0,
  csimdisk_fault_enospc = 1,
  /// A write leaves half of its bytes and then finds no space; other calls find none at once.
  csimdisk_fault_short_write = 2,
} csimdisk_fault;

/// How many calls there were.
typedef struct csimdisk_counts {
  /// By the values of `csimdisk_calls`.
  uint64_t calls[5];
  /// How many of them were made to fail.
  uint64_t failed;
} csimdisk_counts;

/// Makes the call with the given number fail, counted from 1 among `calls` in the disk's life; and
/// all `calls` after it, if `forever`.
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

int csimdisk_look(csimdisk *disk, const char *path, csimdisk_kind *kind) CSIMDISK_NOEXCEPT;

/// Puts the names in a directory into `buffer`, each followed by a NUL.
int csimdisk_list(csimdisk *disk, const char *path, csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

/// Puts the first `limit` bytes of a file into `buffer`.
int csimdisk_read(csimdisk *disk, const char *path, size_t limit,
                  csimdisk_buffer *buffer) CSIMDISK_NOEXCEPT;

int csimdisk_make_directory(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Creates or empties a file and writes `bytes`, in one write.
int csimdisk_write(csimdisk *disk, const char *path, const void *_Nullable bytes,
                   size_t count) CSIMDISK_NOEXCEPT;

/// Writes `bytes` to the end of a file, in one write; creates it when missing.
int csimdisk_append(csimdisk *disk, const char *path, const void *_Nullable bytes,
                    size_t count) CSIMDISK_NOEXCEPT;

int csimdisk_truncate(csimdisk *disk, const char *path, uint64_t count) CSIMDISK_NOEXCEPT;

int csimdisk_rename(csimdisk *disk, const char *path, const char *other) CSIMDISK_NOEXCEPT;

/// Gives two files or two directories each other's names.
int csimdisk_exchange(csimdisk *disk, const char *path, const char *other) CSIMDISK_NOEXCEPT;

/// Makes `other` another name of a file. The journal tells of it as of a creation.
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

/// Takes the lock of a file, which is created when missing; EWOULDBLOCK when it is held.
int csimdisk_lock(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

/// Gives up a lock. Not counted.
void csimdisk_unlock(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

// MARK: - The background

/// From now on what LevelDB does in the background waits before it begins, and before each of its
/// calls that change the disk. Nobody may wait for it meanwhile: not two logs may be filled, and no
/// database be closed or compacted. Whoever does waits a minute; then it is released.
void csimdisk_hold_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// From now on calls of others that change the disk wait until there is nothing to do in the
/// background.
void csimdisk_prefer_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Ends both.
void csimdisk_release_background(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Lets the work in the background go on for so many of those steps, and waits until it has, or has
/// nothing to do; if it is not held, until it has nothing to do.
void csimdisk_run_background(csimdisk *disk, size_t calls) CSIMDISK_NOEXCEPT;

// MARK: - Crashes

/// What an entry of the journal did.
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
  /// The number of the file, 0 when the entry is not about one.
  uint64_t file;
  /// How many bytes were written, or are left.
  uint64_t count;
  /// The path as it was given, or "" for calls on open files.
  const char *path;
} csimdisk_entry;

/// What a crash leaves of what is not durable.
typedef enum __attribute__((enum_extensibility(closed))) csimdisk_model {
  /// All: the process ended, and the system did not.
  csimdisk_model_everything = 0,
  /// Nothing.
  csimdisk_model_nothing_unsynced = 1,
  /// All changes of names, no bytes.
  csimdisk_model_unsynced_data_lost = 2,
  /// The first `number` changes of names, all bytes.
  csimdisk_model_names_lost = 3,
  /// Of each file's bytes some first ones, and some first changes of names. `number` is the seed
  /// of chance, here and below.
  csimdisk_model_prefix = 4,
  /// All, but the last write, if not synced, only in part.
  csimdisk_model_torn_last_append = 5,
  /// All, but in one file the end of what was not synced is zeros.
  csimdisk_model_zeroed_tail = 6,
  /// All, but in one file the end of what was not synced is noise.
  csimdisk_model_garbage_tail = 7,
  /// All, but no bytes in the oldest file that has some.
  csimdisk_model_old_file_tail_lost = 8,
} csimdisk_model;

/// How many entries the journal of a disk has.
size_t csimdisk_journal_count(csimdisk *disk) CSIMDISK_NOEXCEPT;

/// Creates a replay of what the journal holds by now. It stands before the first entry.
csimdisk_replay *csimdisk_replay_create(csimdisk *disk) CSIMDISK_NOEXCEPT;

void csimdisk_replay_free(csimdisk_replay *_Nullable replay) CSIMDISK_NOEXCEPT;

/// Goes past the next entry and returns it, until it is called again; NULL at the end.
const csimdisk_entry *_Nullable csimdisk_replay_step(csimdisk_replay *replay) CSIMDISK_NOEXCEPT;

/// How many changes of names are not durable.
size_t csimdisk_replay_pending_names(const csimdisk_replay *replay) CSIMDISK_NOEXCEPT;

/// Creates the disk that a crash leaves here; all that it holds is durable.
csimdisk *csimdisk_replay_image(const csimdisk_replay *replay, csimdisk_model model,
                                uint64_t number) CSIMDISK_NOEXCEPT;

// MARK: - LevelDB on the disk, for the disk's own tests

/// Opens or creates a database, and puts `count` entries of 1000 bytes into it, each synced.
/// Returns how many it took: `first` is the number of the first, and a failure ends it.
int csimdisk_database_fill(csimdisk *disk, const char *path, int first,
                           int count) CSIMDISK_NOEXCEPT;

/// How many entries the database has; -1 when it cannot be opened or read, or when one before its
/// last is missing.
int csimdisk_database_count(csimdisk *disk, const char *path) CSIMDISK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#pragma clang assume_nonnull end

#endif
