#include "Internal.h"

clarder_cursor* clarder_cursor_create(clarder_db* db) noexcept {
  std::unique_ptr<leveldb::Iterator> rep(db->rep->NewIterator(clarder::read_options()));
  return new clarder_cursor{std::move(rep)};
}

void clarder_cursor_free(clarder_cursor* cursor) noexcept { delete cursor; }

bool clarder_cursor_seek(clarder_cursor* cursor, clarder_slice key) noexcept {
  cursor->rep->Seek(clarder::borrow(key));
  return cursor->rep->Valid();
}

bool clarder_cursor_seek_to_last(clarder_cursor* cursor) noexcept {
  cursor->rep->SeekToLast();
  return cursor->rep->Valid();
}

bool clarder_cursor_next(clarder_cursor* cursor) noexcept {
  cursor->rep->Next();
  return cursor->rep->Valid();
}

bool clarder_cursor_previous(clarder_cursor* cursor) noexcept {
  cursor->rep->Prev();
  return cursor->rep->Valid();
}

clarder_slice clarder_cursor_key(const clarder_cursor* cursor) noexcept {
  return clarder::lend(cursor->rep->key());
}

clarder_slice clarder_cursor_value(const clarder_cursor* cursor) noexcept {
  return clarder::lend(cursor->rep->value());
}

bool clarder_cursor_has_failed(const clarder_cursor* cursor) noexcept {
  return !cursor->rep->status().ok();
}

clarder_status* clarder_cursor_status(const clarder_cursor* cursor) noexcept {
  return clarder::box(cursor->rep->status());
}
