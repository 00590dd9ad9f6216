#include <cstring>

#include "Internal.h"

namespace {

clarder_position position_of(const leveldb::Iterator& iterator) {
  clarder_position position = {};
  position.is_entry = iterator.Valid();
  position.has_failed = !iterator.status().ok();
  if (position.is_entry) {
    position.key = clarder::lend(iterator.key());
    position.value = clarder::lend(iterator.value());
  }
  return position;
}

}  // namespace

clarder_cursor* clarder_cursor_create(clarder_db* db) noexcept {
  std::unique_ptr<leveldb::Iterator> rep(db->rep->NewIterator(clarder::read_options()));
  return new clarder_cursor{std::move(rep)};
}

void clarder_cursor_free(clarder_cursor* cursor) noexcept { delete cursor; }

clarder_position clarder_cursor_seek(clarder_cursor* cursor, clarder_slice key) noexcept {
  cursor->rep->Seek(clarder::borrow(key));
  return position_of(*cursor->rep);
}

clarder_position clarder_cursor_seek_to_last(clarder_cursor* cursor) noexcept {
  cursor->rep->SeekToLast();
  return position_of(*cursor->rep);
}

clarder_position clarder_cursor_next(clarder_cursor* cursor) noexcept {
  cursor->rep->Next();
  return position_of(*cursor->rep);
}

clarder_position clarder_cursor_previous(clarder_cursor* cursor) noexcept {
  cursor->rep->Prev();
  return position_of(*cursor->rep);
}

clarder_position clarder_cursor_copy(clarder_cursor* cursor, const clarder_slice* upper,
                                     size_t max_entries, void* bytes, size_t* count) noexcept {
  leveldb::Iterator& iterator = *cursor->rep;
  char* const start = static_cast<char*>(bytes);
  char* const end = start + *count;
  char* at = start;
  for (size_t entries = 0; entries < max_entries && iterator.Valid(); ++entries) {
    const leveldb::Slice key = iterator.key();
    if (upper != nullptr && key.compare(clarder::borrow(*upper)) >= 0) break;
    const leveldb::Slice value = iterator.value();
    // No key or value is as long as 4 GiB.
    const uint32_t sizes[] = {static_cast<uint32_t>(key.size()),
                              static_cast<uint32_t>(value.size())};
    if (sizeof sizes + key.size() + value.size() > static_cast<size_t>(end - at)) break;
    std::memcpy(at, sizes, sizeof sizes);
    std::memcpy(at + sizeof sizes, key.data(), key.size());
    std::memcpy(at + sizeof sizes + key.size(), value.data(), value.size());
    at += sizeof sizes + key.size() + value.size();
    iterator.Next();
  }
  *count = static_cast<size_t>(at - start);
  return position_of(iterator);
}

clarder_status* clarder_cursor_status(const clarder_cursor* cursor) noexcept {
  return clarder::box(cursor->rep->status());
}
