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

void clarder_discard(clarder_db* db) noexcept {
  leveldb::WriteBatch& batch = *db->batch;
  if (batch.ApproximateSize() > kKeptBytes) {
    db->batch = std::make_unique<leveldb::WriteBatch>();
  } else {
    batch.Clear();
  }
}

clarder_status* clarder_commit(clarder_db* db, bool synced, bool* in_doubt) noexcept {
  leveldb::WriteOptions options;
  options.sync = synced;
  leveldb::Status status = db->rep->Write(options, db->batch.get());
  if (in_doubt != nullptr) *in_doubt = !status.ok() && synced && clarder::take_failed_sync(db);
  clarder_discard(db);
  clarder::release_compactions(db);
  return clarder::box(status);
}

clarder_status* clarder_begin_log(clarder_db* db) noexcept {
  // This may wait for a compaction.
  clarder::release_compactions(db);
  // LevelDB takes a missing batch for this request.
  return clarder::box(db->rep->Write(leveldb::WriteOptions(), nullptr));
}
