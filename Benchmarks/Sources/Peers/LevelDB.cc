#include "LogStructured.h"

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

namespace {

class LevelDB {
 public:
  using Iterator = leveldb::Iterator;
  using ReadOptions = leveldb::ReadOptions;
  using Slice = leveldb::Slice;
  using Status = leveldb::Status;
  using WriteBatch = leveldb::WriteBatch;
  using WriteOptions = leveldb::WriteOptions;
  static constexpr const char* name = "LevelDB";

  LevelDB(const char* path, raw_options options) : opened_(raw_open(path, options), raw_close) {}

  leveldb::DB* db() { return raw_database(opened_.get()); }

  Status get(const ReadOptions& reading, const Slice& key, Slice* value) {
    const Status status = db()->Get(reading, key, &value_);
    *value = value_;
    return status;
  }

 private:
  std::unique_ptr<raw_db, void (*)(raw_db*)> opened_;
  std::string value_;
};

}  // namespace

std::unique_ptr<peer> peers::open_leveldb(const char* path, raw_options options) {
  return std::make_unique<LogStructured<LevelDB>>(LevelDB(path, options));
}
