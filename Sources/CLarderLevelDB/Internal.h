// What the files of the shim share with each other, and with nobody else.

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

struct clarder_db {
  // Members are freed from the last to the first: the database before what it stands on.
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<leveldb::Logger> logger;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
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

// How everything is read: a block whose checksum is wrong is an error, never data.
inline leveldb::ReadOptions read_options() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

// The only way of a leveldb::Status out of C++. NULL when it is a success.
clarder_status* box(const leveldb::Status& status);

// Makes sure that LevelDB's own `Env` has its background thread, which it keeps until the process
// ends. A failure of the system leaves it as it was, so that a later call can succeed.
leveldb::Status start_background_thread();

// Sets every option of `database` from `options`, and creates what they call for.
leveldb::Status make_options(const clarder_options& options, clarder_db* database,
                             leveldb::Options* result);

}  // namespace clarder

#endif  // CLARDER_INTERNAL_H
