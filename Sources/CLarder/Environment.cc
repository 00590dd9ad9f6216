// The `Env` of a database. It can hold back the compaction that LevelDB begins when it is opened,
// and knows whether a sync of a log has failed.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "Internal.h"

#ifdef __ELF__

// LevelDB may be built without run-time type information, and it is not used here.
asm(".weak _ZTIN7leveldb10EnvWrapperE");
asm(".weak _ZTIN7leveldb12WritableFileE");

namespace {

// A log file that sets `*failed` when one of its syncs fails.
class WatchedLog final : public leveldb::WritableFile {
 public:
  WatchedLog(leveldb::WritableFile* file, bool* failed) : file_(file), failed_(failed) {}

  leveldb::Status Append(const leveldb::Slice& bytes) override { return file_->Append(bytes); }
  leveldb::Status Close() override { return file_->Close(); }
  leveldb::Status Flush() override { return file_->Flush(); }

  leveldb::Status Sync() override {
    leveldb::Status status = file_->Sync();
    if (!status.ok()) *failed_ = true;
    return status;
  }

 private:
  std::unique_ptr<leveldb::WritableFile> file_;
  bool* const failed_;
};

bool is_log(const std::string& path) {
  constexpr char ending[] = ".log";
  constexpr size_t count = sizeof ending - 1;
  return path.size() > count && path.compare(path.size() - count, count, ending) == 0;
}

}  // namespace

// LevelDB schedules one compaction at a time for a database, so at most one is held. It syncs logs
// in the call that writes to them, and in no other.
class clarder::DatabaseEnv final : public leveldb::EnvWrapper {
 public:
  DatabaseEnv(leveldb::Env* target, bool holds) : EnvWrapper(target), holds_(holds) {}

  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override {
    return watch(path, target()->NewWritableFile(path, file), file);
  }

  leveldb::Status NewAppendableFile(const std::string& path,
                                    leveldb::WritableFile** file) override {
    return watch(path, target()->NewAppendableFile(path, file), file);
  }

  void Schedule(void (*function)(void*), void* argument) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (holds_.load(std::memory_order_relaxed)) {
        function_ = function;
        argument_ = argument;
        return;
      }
    }
    target()->Schedule(function, argument);
  }

  void release() {
    if (!holds_.load(std::memory_order_relaxed)) return;
    void (*function)(void*) = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      holds_.store(false, std::memory_order_relaxed);
      std::swap(function, function_);
    }
    if (function != nullptr) target()->Schedule(function, argument_);
  }

  bool take_failed_sync() { return std::exchange(sync_failed_, false); }

 private:
  leveldb::Status watch(const std::string& path, leveldb::Status status,
                        leveldb::WritableFile** file) {
    if (status.ok() && is_log(path)) *file = new WatchedLog(*file, &sync_failed_);
    return status;
  }

  std::mutex mutex_;
  std::atomic<bool> holds_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool sync_failed_ = false;
};

leveldb::Env* clarder::make_env(clarder_db* database, leveldb::Env* target,
                                bool holds_compactions) {
  database->env = std::make_shared<DatabaseEnv>(target, holds_compactions);
  return database->env.get();
}

void clarder::release_compactions(clarder_db* database) { database->env->release(); }

bool clarder::take_failed_sync(clarder_db* database) { return database->env->take_failed_sync(); }

#else

// Elsewhere a class of LevelDB that was built without type information cannot be derived from. A
// compaction may then take the room before the commit, and the engine tries again. If a commit with
// a sync fails, it is unknown whether the sync was what failed.
leveldb::Env* clarder::make_env(clarder_db*, leveldb::Env* target, bool) { return target; }

void clarder::release_compactions(clarder_db*) {}

bool clarder::take_failed_sync(clarder_db*) { return true; }

#endif
