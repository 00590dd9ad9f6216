// Declarations shared by the files of the shim, and by no others.

#ifndef CLARDER_INTERNAL_H
#define CLARDER_INTERNAL_H

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <string>

#include "CLarderLevelDB.h"

struct clarder_status {
  clarder_code code;
  std::string message;
};

struct clarder_buffer {
  std::string bytes;
};

namespace clarder {

class DatabaseEnv;

}  // namespace clarder

struct clarder_db {
  // Members are freed from the last to the first: the database before its options.
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<leveldb::Logger> logger;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  // On other systems than Linux it is NULL.
  std::shared_ptr<clarder::DatabaseEnv> env;
  std::unique_ptr<leveldb::DB> rep;
  // Reused by every write, so that a small one allocates nothing here.
  std::unique_ptr<leveldb::WriteBatch> batch = std::make_unique<leveldb::WriteBatch>();
};

struct clarder_cursor {
  std::unique_ptr<leveldb::Iterator> rep;
};

namespace clarder {

inline leveldb::Slice borrow(clarder_slice slice) {
  return leveldb::Slice(static_cast<const char*>(slice.bytes), slice.count);
}

inline clarder_slice lend(const leveldb::Slice& slice) {
  return clarder_slice{slice.data(), slice.size()};
}

// The options of all reads: a block with a wrong checksum is an error, never data.
inline leveldb::ReadOptions read_options() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

// Boxes a leveldb::Status for the caller of the shim; NULL if it is a success.
clarder_status* box(const leveldb::Status& status);

// Starts the background thread of LevelDB's own `Env`, which runs until the process ends. If the
// system refuses a thread, nothing is changed, so that a later call can succeed.
leveldb::Status start_background_thread();

// Sets every LevelDB option from `options`, and creates the filter, logger and cache in `database`.
leveldb::Status make_options(const clarder_options& options, clarder_db* database,
                             leveldb::Options* result);

// Makes the `Env` of `database`, which calls `target`, and can hold compactions until they are
// released.
leveldb::Env* make_env(clarder_db* database, leveldb::Env* target, bool holds_compactions);

// Begins the compaction that was held since the opening, if there is one.
void release_compactions(clarder_db* database);

// Whether the sync of a log has failed since the last call; where that is unknown, true.
bool take_failed_sync(clarder_db* database);

}  // namespace clarder

#endif  // CLARDER_INTERNAL_H
