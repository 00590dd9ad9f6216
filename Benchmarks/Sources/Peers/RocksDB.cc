#include "LogStructured.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace {

class RocksDB {
 public:
  using Iterator = rocksdb::Iterator;
  using ReadOptions = rocksdb::ReadOptions;
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;
  using WriteBatch = rocksdb::WriteBatch;
  using WriteOptions = rocksdb::WriteOptions;
  static constexpr const char* name = "RocksDB";

  RocksDB(const char* path, raw_options options, bool has_blobs) {
    rocksdb::BlockBasedTableOptions table;
    table.block_size = options.block_bytes;
    table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
    if (options.filter_bits_per_key > 0) {
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(options.filter_bits_per_key));
    }
    rocksdb::Options settings;
    settings.create_if_missing = true;
    settings.info_log_level = rocksdb::FATAL_LEVEL;
    settings.write_buffer_size = options.write_buffer_bytes;
    settings.target_file_size_base = options.max_file_bytes;
    settings.max_open_files = options.max_open_files;
    settings.compression =
        options.compression ? rocksdb::kSnappyCompression : rocksdb::kNoCompression;
    settings.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    if (has_blobs) {
      settings.enable_blob_files = true;
      settings.min_blob_size = 4 << 10;
      settings.enable_blob_garbage_collection = true;
    }
    rocksdb::DB* db = nullptr;
    const Status status = rocksdb::DB::Open(settings, path, &db);
    if (!status.ok()) peers::fail(name, status.ToString());
    db_.reset(db);
    value_ = std::make_unique<rocksdb::PinnableSlice>();
  }

  rocksdb::DB* db() { return db_.get(); }

  // The value is pinned in the database's memory, not copied.
  Status get(const ReadOptions& reading, const Slice& key, Slice* value) {
    value_->Reset();
    const Status status = db_->Get(reading, db_->DefaultColumnFamily(), key, value_.get());
    *value = *value_;
    return status;
  }

 private:
  // Members are destroyed in reverse order: the pinned value before the database.
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<rocksdb::PinnableSlice> value_;
};

}  // namespace

std::unique_ptr<peer> peers::open_rocksdb(const char* path, raw_options options, bool has_blobs) {
  return std::make_unique<LogStructured<RocksDB>>(RocksDB(path, options, has_blobs));
}
