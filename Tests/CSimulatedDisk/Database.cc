// A database on a disk, for the disk's own tests.

#include <leveldb/db.h>
#include <leveldb/env.h>

#include <memory>
#include <string>

#include "CSimulatedDisk.h"

namespace {

std::unique_ptr<leveldb::DB> open(csimdisk* disk, const char* path, bool created) {
  leveldb::Options options;
  options.env = reinterpret_cast<leveldb::Env*>(csimdisk_env(disk));
  options.create_if_missing = created;
  options.paranoid_checks = true;
  options.write_buffer_size = 64 << 10;
  leveldb::DB* db = nullptr;
  leveldb::DB::Open(options, path, &db);
  return std::unique_ptr<leveldb::DB>(db);
}

std::string key(int number) {
  std::string digits = std::to_string(number);
  return std::string(8 - digits.size(), '0') + digits;
}

}  // namespace

int csimdisk_database_fill(csimdisk* disk, const char* path, int first, int count) noexcept {
  std::unique_ptr<leveldb::DB> db = open(disk, path, true);
  leveldb::WriteOptions options;
  options.sync = true;
  int done = 0;
  for (; db && done < count; ++done) {
    if (!db->Put(options, key(first + done), std::string(1000, 'v')).ok()) break;
  }
  return done;
}

int csimdisk_database_count(csimdisk* disk, const char* path) noexcept {
  std::unique_ptr<leveldb::DB> db = open(disk, path, false);
  if (!db) return -1;
  std::unique_ptr<leveldb::Iterator> entry(db->NewIterator(leveldb::ReadOptions()));
  int count = 0;
  for (entry->SeekToFirst(); entry->Valid(); entry->Next()) {
    if (entry->key() != key(count++)) return -1;
  }
  return entry->status().ok() ? count : -1;
}
