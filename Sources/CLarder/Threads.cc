// LevelDB's background thread. LevelDB starts it with its first compaction. An exception of the
// thread's start would leave LevelDB in the middle of a write, with its own lock held.

#include <mutex>
#include <system_error>
#include <thread>

#include "Internal.h"

namespace {

enum class State { kNotStarted, kRunning, kLost };

State start_thread(std::string* reason) {
  try {
    // LevelDB counts its thread as started before it starts it. So another thread is tried first.
    std::thread([] {}).join();
  } catch (const std::system_error& error) {
    *reason = error.code().message();
    return State::kNotStarted;
  }
  try {
    leveldb::Env::Default()->Schedule([](void*) {}, nullptr);
  } catch (const std::system_error& error) {
    // The system gave its last thread to another caller. LevelDB holds its lock forever.
    return State::kLost;
  }
  return State::kRunning;
}

}  // namespace

leveldb::Status clarder::start_background_thread() {
  static std::mutex mutex;
  static State state = State::kNotStarted;
  std::lock_guard<std::mutex> lock(mutex);
  std::string reason;
  if (state == State::kNotStarted) state = start_thread(&reason);
  switch (state) {
    case State::kRunning: return leveldb::Status::OK();
    case State::kNotStarted:
      return leveldb::Status::IOError("no thread can be started for compactions", reason);
    case State::kLost:
      return leveldb::Status::IOError(
          "the thread for compactions could not be started",
          "no store can be opened before the process is started again");
  }
}
