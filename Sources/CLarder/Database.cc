#include "Internal.h"

using clarder::borrow;

namespace {

// Above every key that the package writes: the longest is shorter than this.
const std::string& end_of_keys() {
  static const std::string* const key = new std::string(128 << 10, '\xff');
  return *key;
}

// An absent key has a status of its own without a message. One with a message is about a missing
// file, whose keys must not seem absent.
bool is_absent(const leveldb::Status& status) {
  return status.IsNotFound() && status.ToString() == "NotFound: ";
}

}  // namespace

clarder_status* clarder_open(const char* path, const clarder_options* options,
                             clarder_db** db) noexcept {
  *db = nullptr;
  auto database = std::make_unique<clarder_db>();
  leveldb::Options made;
  leveldb::Status status = clarder::make_options(*options, database.get(), &made);
  if (status.ok() && options->env == nullptr) status = clarder::start_background_thread();
  if (status.ok()) {
    leveldb::DB* rep = nullptr;
    status = leveldb::DB::Open(made, path, &rep);
    database->rep.reset(rep);
  }
  if (status.ok()) *db = database.release();
  return clarder::box(status);
}

void clarder_close(clarder_db* db) noexcept {
  // LevelDB waits for a compaction that it has scheduled.
  if (db != nullptr) clarder::release_compactions(db);
  delete db;
}

clarder_status* clarder_get(clarder_db* db, clarder_slice key, clarder_buffer* buffer,
                            bool* found) noexcept {
  leveldb::Status status = db->rep->Get(clarder::read_options(), borrow(key), &buffer->bytes);
  *found = status.ok();
  if (status.ok()) return nullptr;
  buffer->bytes.clear();
  return is_absent(status) ? nullptr : clarder::box(status);
}

uint64_t clarder_approximate_bytes(clarder_db* db, clarder_slice lower,
                                   const clarder_slice* upper) noexcept {
  leveldb::Range range(borrow(lower), upper ? borrow(*upper) : leveldb::Slice(end_of_keys()));
  uint64_t bytes = 0;
  db->rep->GetApproximateSizes(&range, 1, &bytes);
  return bytes;
}

void clarder_compact(clarder_db* db, clarder_slice lower, const clarder_slice* upper) noexcept {
  leveldb::Slice first = borrow(lower);
  leveldb::Slice last = upper ? borrow(*upper) : leveldb::Slice();
  clarder::release_compactions(db);
  db->rep->CompactRange(&first, upper ? &last : nullptr);
}

void clarder_renew_log(clarder_db* db) noexcept {
  // A compaction begins with the memory, regardless of its range; above all keys it ends there.
  leveldb::Slice first(end_of_keys());
  clarder::release_compactions(db);
  db->rep->CompactRange(&first, nullptr);
}

bool clarder_property(clarder_db* db, const char* name, clarder_buffer* buffer) noexcept {
  return db->rep->GetProperty(name, &buffer->bytes);
}

clarder_buffer* clarder_buffer_create() noexcept { return new clarder_buffer; }

void clarder_buffer_free(clarder_buffer* buffer) noexcept { delete buffer; }

clarder_slice clarder_buffer_slice(const clarder_buffer* buffer) noexcept {
  return clarder::lend(buffer->bytes);
}

void* clarder_buffer_resize(clarder_buffer* buffer, size_t count) noexcept {
  buffer->bytes.resize(count);
  return buffer->bytes.data();
}

void clarder_buffer_assign(clarder_buffer* buffer, clarder_slice bytes) noexcept {
  buffer->bytes.assign(static_cast<const char*>(bytes.bytes), bytes.count);
}
