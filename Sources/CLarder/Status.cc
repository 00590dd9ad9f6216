#include <cerrno>
#include <system_error>

#include "Internal.h"

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool ends_with_error(const std::string& message, int number) {
  return ends_with(message, std::generic_category().message(number));
}

// LevelDB does not report a read beyond the end of a mapped table as a corruption. But either the
// table is too short, or the offset that was read is wrong.
bool is_read_behind_a_table(const std::string& message) {
  const std::string reason = ": " + std::generic_category().message(EINVAL);
  return ends_with(message, ".ldb" + reason) || ends_with(message, ".sst" + reason);
}

// LevelDB keeps the number of a system error as text only, at the end of its message.
clarder_code code_of(const leveldb::Status& status, const std::string& message) {
  if (status.IsCorruption() || is_read_behind_a_table(message)) return clarder_code_corruption;
  if (status.IsNotSupportedError()) return clarder_code_not_supported;
  if (status.IsInvalidArgument()) return clarder_code_invalid_argument;
  if (ends_with_error(message, ENOSPC) || ends_with_error(message, EDQUOT)) {
    return clarder_code_no_space;
  }
  if (message.compare(0, 15, "IO error: lock ") == 0 &&
      (ends_with(message, "already held by process") || ends_with_error(message, EAGAIN) ||
       ends_with_error(message, EACCES))) {
    return clarder_code_locked;
  }
  return clarder_code_io_error;
}

}  // namespace

clarder_status* clarder::box(const leveldb::Status& status) {
  if (status.ok()) return nullptr;
  std::string message = status.ToString();
  clarder_code code = code_of(status, message);
  return new clarder_status{code, std::move(message)};
}

clarder_code clarder_status_code(const clarder_status* status) noexcept { return status->code; }

const char* clarder_status_message(const clarder_status* status) noexcept {
  return status->message.c_str();
}

void clarder_status_free(clarder_status* status) noexcept { delete status; }
