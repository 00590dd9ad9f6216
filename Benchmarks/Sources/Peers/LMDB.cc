#include "Internal.h"

#include <lmdb.h>

namespace {

// Reserves address space, not disk space.
constexpr size_t kMapBytes = size_t{16} << 30;

void check(int result) {
  if (result != MDB_SUCCESS) peers::fail("LMDB", mdb_strerror(result));
}

MDB_val borrow(const std::string& bytes) {
  return MDB_val{bytes.size(), const_cast<char*>(bytes.data())};
}

/// Two B-trees: the records, and the index by expiry date.
class LMDB : public peer {
 public:
  explicit LMDB(const char* path) {
    check(mdb_env_create(&env_));
    check(mdb_env_set_mapsize(env_, kMapBytes));
    check(mdb_env_set_maxdbs(env_, 2));
    check(mdb_env_open(env_, path, MDB_NOSYNC, 0600));
    begin();
    check(mdb_dbi_open(writing_, "records", MDB_CREATE, &records_));
    check(mdb_dbi_open(writing_, "expiry", MDB_CREATE, &expiry_));
    commit();
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reading_));
    is_reading_ = true;
  }

  ~LMDB() override {
    mdb_txn_abort(reading_);
    mdb_env_close(env_);
  }

  void begin() override {
    // An open read transaction would keep the writer from reusing pages.
    if (is_reading_) mdb_txn_reset(reading_);
    is_reading_ = false;
    check(mdb_txn_begin(env_, nullptr, 0, &writing_));
  }

  void commit() override {
    check(mdb_txn_commit(writing_));
    writing_ = nullptr;
  }

  void put(int64_t key, const char* value, size_t count, double expires) override {
    const bool is_single = writing_ == nullptr;
    if (is_single) begin();
    set_key(key);
    MDB_val name = borrow(key_);
    MDB_val record{peers::kHeaderBytes + count, nullptr};
    check(mdb_put(writing_, records_, &name, &record, MDB_RESERVE));
    std::memcpy(record.mv_data, &expires, peers::kHeaderBytes);
    std::memcpy(static_cast<char*>(record.mv_data) + peers::kHeaderBytes, value, count);
    if (std::isfinite(expires)) {
      row_.clear();
      peers::append_bucket(&row_, expires);
      row_ += key_;
      MDB_val row = borrow(row_);
      MDB_val empty{0, nullptr};
      check(mdb_put(writing_, expiry_, &row, &empty, 0));
    }
    if (is_single) commit();
  }

  // Each read is its own transaction. It stays open while the lent value is in use.
  const char* get(int64_t key, size_t* count) override {
    if (is_reading_) mdb_txn_reset(reading_);
    check(mdb_txn_renew(reading_));
    is_reading_ = true;
    set_key(key);
    MDB_val name = borrow(key_);
    MDB_val record;
    const int result = mdb_get(reading_, records_, &name, &record);
    if (result == MDB_NOTFOUND) return nullptr;
    check(result);
    *count = record.mv_size - peers::kHeaderBytes;
    return static_cast<const char*>(record.mv_data) + peers::kHeaderBytes;
  }

  size_t sweep(double now) override {
    std::string end;
    peers::append_bucket(&end, std::floor(now) + 1);
    MDB_val limit = borrow(end);
    begin();
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(writing_, expiry_, &cursor));
    size_t deleted = 0;
    MDB_val row;
    MDB_val empty;
    int result;
    while ((result = mdb_cursor_get(cursor, &row, &empty, MDB_FIRST)) == MDB_SUCCESS &&
           mdb_cmp(writing_, expiry_, &row, &limit) < 0) {
      key_.assign(static_cast<const char*>(row.mv_data) + end.size(), row.mv_size - end.size());
      check(mdb_cursor_del(cursor, 0));
      MDB_val name = borrow(key_);
      MDB_val record;
      const int found = mdb_get(writing_, records_, &name, &record);
      if (found == MDB_NOTFOUND) continue;
      check(found);
      if (peers::expiry_of(static_cast<const char*>(record.mv_data)) > now) continue;
      check(mdb_del(writing_, records_, &name, nullptr));
      deleted += 1;
    }
    if (result != MDB_NOTFOUND) check(result);
    mdb_cursor_close(cursor);
    commit();
    return deleted;
  }

 private:
  void set_key(int64_t key) {
    key_.clear();
    peers::append_ordered(&key_, key);
  }

  MDB_env* env_ = nullptr;
  MDB_txn* writing_ = nullptr;
  MDB_txn* reading_ = nullptr;
  bool is_reading_ = false;
  MDB_dbi records_ = 0;
  MDB_dbi expiry_ = 0;
  std::string key_, row_;
};

}  // namespace

std::unique_ptr<peer> peers::open_lmdb(const char* path) { return std::make_unique<LMDB>(path); }
