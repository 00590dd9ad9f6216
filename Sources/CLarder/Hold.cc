// Holds the compaction that LevelDB begins when it is opened.

#include <mutex>
#include <utility>

#include "Internal.h"

#ifdef __ELF__

// LevelDB may be built without run-time type information, and it is not used here.
asm(".weak _ZTIN7leveldb10EnvWrapperE");

// LevelDB schedules one compaction at a time for a database, so at most one is held.
class clarder::HoldingEnv final : public leveldb::EnvWrapper {
 public:
  explicit HoldingEnv(leveldb::Env* target) : EnvWrapper(target) {}

  void Schedule(void (*function)(void*), void* argument) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (holds_) {
        function_ = function;
        argument_ = argument;
        return;
      }
    }
    target()->Schedule(function, argument);
  }

  void release() {
    void (*function)(void*) = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      holds_ = false;
      std::swap(function, function_);
    }
    if (function != nullptr) target()->Schedule(function, argument_);
  }

 private:
  std::mutex mutex_;
  bool holds_ = true;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
};

leveldb::Env* clarder::hold_compactions(clarder_db* database, leveldb::Env* env) {
  database->env = std::make_shared<HoldingEnv>(env);
  return database->env.get();
}

void clarder::release_compactions(clarder_db* database) {
  if (database->env != nullptr) database->env->release();
}

#else

// Elsewhere a class of LevelDB that was built without type information cannot be derived from. A
// compaction may then take the room before the commit, and the engine tries again.
leveldb::Env* clarder::hold_compactions(clarder_db*, leveldb::Env* env) { return env; }

void clarder::release_compactions(clarder_db*) {}

#endif
