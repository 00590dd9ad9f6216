#include "Internal.h"

namespace {

// A batch above this size gives its memory back once it is written.
constexpr size_t kKeptBytes = 1 << 20;

}  // namespace

void clarder_stage(clarder_db* db, const clarder_change* changes, size_t count) noexcept {
  leveldb::WriteBatch& batch = *db->batch;
  for (const clarder_change* change = changes; change != changes + count; ++change) {
    if (change->removes) {
      batch.Delete(clarder::borrow(change->key));
    } else {
      batch.Put(clarder::borrow(change->key), clarder::borrow(change->value));
    }
  }
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
