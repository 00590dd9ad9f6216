#include "RawLevelDB.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct raw_db {
  // Members are destroyed in reverse order: the database before the objects that it uses.
  std::unique_ptr<leveldb::Logger> logger;
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> rep;
};

namespace {

void check(const leveldb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "RawLevelDB: %s\n", status.ToString().c_str());
  std::abort();
}

// Verifies the checksum of every block that is read, as Larder does.
leveldb::ReadOptions reading() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

leveldb::Slice key_of(const raw_plan* plan, uint32_t record) {
  return leveldb::Slice(reinterpret_cast<const char*>(plan->keys) + record * plan->key_bytes,
                        plan->key_bytes);
}

leveldb::Slice value_of(const raw_plan* plan, uint32_t record) {
  const size_t start = record * plan->value_bytes % plan->value_span;
  return leveldb::Slice(reinterpret_cast<const char*>(plan->pool) + start, plan->value_bytes);
}

}  // namespace

raw_db* raw_open(const char* path, raw_options options) {
  auto db = std::make_unique<raw_db>();
  db->cache.reset(leveldb::NewLRUCache(options.block_cache_bytes));
  if (options.filter_bits_per_key > 0) {
    db->filter.reset(leveldb::NewBloomFilterPolicy(options.filter_bits_per_key));
  }
  leveldb::Options settings;
  leveldb::Logger* logger = nullptr;
  check(settings.env->NewLogger("/dev/null", &logger));
  db->logger.reset(logger);
  settings.create_if_missing = true;
  settings.paranoid_checks = true;
  settings.info_log = logger;
  settings.write_buffer_size = options.write_buffer_bytes;
  settings.max_open_files = options.max_open_files;
  settings.block_cache = db->cache.get();
  settings.block_size = options.block_bytes;
  settings.max_file_size = options.max_file_bytes;
  settings.compression =
      options.compression ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  settings.reuse_logs = options.reuse_logs;
  settings.filter_policy = db->filter.get();
  leveldb::DB* rep = nullptr;
  check(leveldb::DB::Open(settings, path, &rep));
  db->rep.reset(rep);
  return db.release();
}

void raw_close(raw_db* db) { delete db; }

leveldb::DB* raw_database(raw_db* db) { return db->rep.get(); }

void raw_put_each(raw_db* db, const raw_plan* plan) {
  const leveldb::WriteOptions options;
  for (size_t i = 0; i < plan->count; i++) {
    const uint32_t record = plan->order[i];
    check(db->rep->Put(options, key_of(plan, record), value_of(plan, record)));
  }
}

void raw_put_batches(raw_db* db, const raw_plan* plan, size_t batch_records) {
  const leveldb::WriteOptions options;
  leveldb::WriteBatch batch;
  for (size_t i = 0; i < plan->count; i++) {
    batch.Put(key_of(plan, plan->order[i]), value_of(plan, plan->order[i]));
    if ((i + 1) % batch_records != 0 && i + 1 < plan->count) continue;
    check(db->rep->Write(options, &batch));
    batch.Clear();
  }
}

void raw_put_synced(raw_db* db, const raw_plan* plan, size_t threads) {
  leveldb::WriteOptions options;
  options.sync = true;
  const size_t share = plan->count / threads;
  std::vector<std::thread> writers;
  for (size_t thread = 0; thread < threads; thread++) {
    writers.emplace_back([=] {
      for (size_t i = thread * share; i < (thread + 1) * share; i++) {
        const uint32_t record = plan->order[i];
        check(db->rep->Put(options, key_of(plan, record), value_of(plan, record)));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
}

size_t raw_get_each(raw_db* db, const raw_plan* plan) {
  const leveldb::ReadOptions options = reading();
  std::string value;
  size_t right = 0;
  for (size_t i = 0; i < plan->count; i++) {
    const uint32_t record = plan->order[i];
    check(db->rep->Get(options, key_of(plan, record), &value));
    right += leveldb::Slice(value) == value_of(plan, record) ? 1 : 0;
  }
  return right;
}

size_t raw_miss_each(raw_db* db, const raw_plan* plan) {
  const leveldb::ReadOptions options = reading();
  std::string value;
  size_t missing = 0;
  for (size_t i = 0; i < plan->count; i++) {
    const leveldb::Status status = db->rep->Get(options, key_of(plan, plan->order[i]), &value);
    if (status.IsNotFound()) {
      missing += 1;
    } else {
      check(status);
    }
  }
  return missing;
}

size_t raw_scan(raw_db* db, const raw_plan* plan) {
  const std::unique_ptr<leveldb::Iterator> cursor(db->rep->NewIterator(reading()));
  size_t right = 0;
  size_t i = 0;
  cursor->Seek(key_of(plan, plan->order[0]));
  for (; cursor->Valid() && i < plan->count; cursor->Next(), i++) {
    const uint32_t record = plan->order[i];
    if (cursor->key() == key_of(plan, record) && cursor->value() == value_of(plan, record)) {
      right += 1;
    }
  }
  check(cursor->status());
  return right;
}

size_t raw_sweep(raw_db* db, const uint8_t* first, const uint8_t* end, size_t row_prefix_bytes,
                 const uint8_t* record_prefix, double now, size_t batch_rows) {
  const leveldb::WriteOptions options;
  const leveldb::ReadOptions reads = reading();
  const std::unique_ptr<leveldb::Iterator> cursor(db->rep->NewIterator(reads));
  const leveldb::Slice limit(reinterpret_cast<const char*>(end), row_prefix_bytes);
  leveldb::WriteBatch batch;
  std::string record_key, record;
  size_t deleted = 0;
  size_t rows = 0;
  cursor->Seek(leveldb::Slice(reinterpret_cast<const char*>(first), row_prefix_bytes));
  for (; cursor->Valid() && cursor->key().compare(limit) < 0; cursor->Next()) {
    const leveldb::Slice row = cursor->key();
    record_key.assign(reinterpret_cast<const char*>(record_prefix), 2);
    record_key.append(row.data() + row_prefix_bytes, row.size() - row_prefix_bytes);
    const leveldb::Status status = db->rep->Get(reads, record_key, &record);
    if (status.ok()) {
      double expiry;
      std::memcpy(&expiry, record.data() + 16, sizeof expiry);
      if (expiry <= now) {
        batch.Delete(record_key);
        deleted += 1;
      }
    } else if (!status.IsNotFound()) {
      check(status);
    }
    batch.Delete(row);
    if (++rows % batch_rows == 0) {
      check(db->rep->Write(options, &batch));
      batch.Clear();
    }
  }
  check(cursor->status());
  check(db->rep->Write(options, &batch));
  return deleted;
}
