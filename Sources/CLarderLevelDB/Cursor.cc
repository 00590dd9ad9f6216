#include "Internal.h"

namespace {

clarder_place place_of(const leveldb::Iterator& iterator) {
  clarder_place place = {};
  place.is_entry = iterator.Valid();
  place.has_failed = !iterator.status().ok();
  if (place.is_entry) {
    place.key = clarder::lend(iterator.key());
    place.value = clarder::lend(iterator.value());
  }
  return place;
}

}  // namespace

clarder_cursor* clarder_cursor_create(clarder_db* db) noexcept {
  std::unique_ptr<leveldb::Iterator> rep(db->rep->NewIterator(clarder::read_options()));
  return new clarder_cursor{std::move(rep)};
}

void clarder_cursor_free(clarder_cursor* cursor) noexcept { delete cursor; }

clarder_place clarder_cursor_seek(clarder_cursor* cursor, clarder_slice key) noexcept {
  cursor->rep->Seek(clarder::borrow(key));
  return place_of(*cursor->rep);
}

clarder_place clarder_cursor_seek_to_last(clarder_cursor* cursor) noexcept {
  cursor->rep->SeekToLast();
  return place_of(*cursor->rep);
}

clarder_place clarder_cursor_next(clarder_cursor* cursor) noexcept {
  cursor->rep->Next();
  return place_of(*cursor->rep);
}

clarder_place clarder_cursor_previous(clarder_cursor* cursor) noexcept {
  cursor->rep->Prev();
  return place_of(*cursor->rep);
}

clarder_status* clarder_cursor_status(const clarder_cursor* cursor) noexcept {
  return clarder::box(cursor->rep->status());
}
