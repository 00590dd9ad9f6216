#ifndef PEERS_LOG_STRUCTURED_H
#define PEERS_LOG_STRUCTURED_H

#include "Internal.h"

namespace peers {

/// LevelDB or RocksDB, whose interfaces differ only in names, which `Library` provides.
///
/// Record keys are `r` and the key; index row keys are `x`, the expiry date and the key.
template <class Library>
class LogStructured : public peer {
 public:
  explicit LogStructured(Library library) : library_(std::move(library)) {
    reading_.verify_checksums = true;
  }

  void begin() override { is_batching_ = true; }

  void commit() override {
    is_batching_ = false;
    write();
  }

  void put(int64_t key, const char* value, size_t count, double expires) override {
    set_record_key(key);
    record_.clear();
    append_header(&record_, expires);
    record_.append(value, count);
    batch_.Put(key_, record_);
    if (std::isfinite(expires)) {
      row_.assign(1, 'x');
      append_bucket(&row_, expires);
      row_.append(key_, 1, std::string::npos);
      batch_.Put(row_, Slice());
    }
    if (!is_batching_) write();
  }

  const char* get(int64_t key, size_t* count) override {
    set_record_key(key);
    Slice record;
    const Status status = library_.get(reading_, key_, &record);
    if (status.IsNotFound()) return nullptr;
    check(status);
    *count = record.size() - kHeaderBytes;
    return record.data() + kHeaderBytes;
  }

  size_t sweep(double now) override {
    const std::unique_ptr<typename Library::Iterator> cursor(
        library_.db()->NewIterator(reading_));
    std::string end(1, 'x');
    append_bucket(&end, std::floor(now) + 1);
    size_t deleted = 0;
    size_t rows = 0;
    for (cursor->Seek("x"); cursor->Valid() && cursor->key().compare(end) < 0; cursor->Next()) {
      const Slice row = cursor->key();
      key_.assign(1, 'r');
      key_.append(row.data() + end.size(), row.size() - end.size());
      Slice record;
      const Status status = library_.get(reading_, key_, &record);
      if (status.ok() && expiry_of(record.data()) <= now) {
        batch_.Delete(key_);
        deleted += 1;
      } else if (!status.ok() && !status.IsNotFound()) {
        check(status);
      }
      batch_.Delete(row);
      if (++rows % kSweptTogether == 0) write();
    }
    check(cursor->status());
    write();
    return deleted;
  }

 private:
  using Slice = typename Library::Slice;
  using Status = typename Library::Status;

  static void check(const Status& status) {
    if (!status.ok()) fail(Library::name, status.ToString());
  }

  void set_record_key(int64_t key) {
    key_.assign(1, 'r');
    append_ordered(&key_, key);
  }

  void write() {
    check(library_.db()->Write(typename Library::WriteOptions(), &batch_));
    batch_.Clear();
  }

  Library library_;
  typename Library::ReadOptions reading_;
  typename Library::WriteBatch batch_;
  bool is_batching_ = false;
  std::string key_, row_, record_;
};

}  // namespace peers

#endif  // PEERS_LOG_STRUCTURED_H
