#include "Internal.h"

namespace {

// The memory of a batch above this size is freed once it is written.
constexpr size_t kKeptBytes = 1 << 20;

}  // namespace

void clarder_stage_put(clarder_db* db, clarder_slice key, clarder_slice value) noexcept {
  db->batch->Put(clarder::borrow(key), clarder::borrow(value));
}

void clarder_stage_removal(clarder_db* db, clarder_slice key) noexcept {
  db->batch->Delete(clarder::borrow(key));
}

clarder_status* clarder_commit(clarder_db* db, bool synced) noexcept {
  leveldb::WriteBatch& batch = *db->batch;
  leveldb::WriteOptions options;
  options.sync = synced;
  leveldb::Status status = db->rep->Write(options, &batch);
  if (batch.ApproximateSize() > kKeptBytes) {
    db->batch = std::make_unique<leveldb::WriteBatch>();
  } else {
    batch.Clear();
  }
  return clarder::box(status);
}
