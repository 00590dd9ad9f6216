// LevelDB's environment on a disk, with the buffers, syncs and messages of LevelDB's POSIX one.

#include <leveldb/env.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "Disk.h"

// LevelDB may be built without run-time type information, and it is not used here.
#ifdef __ELF__
asm(".weak _ZTIN7leveldb3EnvE");
asm(".weak _ZTIN7leveldb6LoggerE");
asm(".weak _ZTIN7leveldb8FileLockE");
asm(".weak _ZTIN7leveldb12WritableFileE");
asm(".weak _ZTIN7leveldb14SequentialFileE");
asm(".weak _ZTIN7leveldb16RandomAccessFileE");
#endif

namespace simdisk {

namespace {

using leveldb::Slice;
using leveldb::Status;

constexpr size_t kBufferBytes = 65536;

Status made(const std::string& context, int error) {
  if (error == 0) return Status::OK();
  if (error == ENOENT) return Status::NotFound(context, std::strerror(error));
  return Status::IOError(context, std::strerror(error));
}

/// An open file, which stays readable and writable when its name is removed.
class Handle {
 public:
  Handle(Disk* disk, uint64_t file, std::string path)
      : disk(disk), file(file), path(std::move(path)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { disk->close(file); }

  Status read(uint64_t offset, size_t count, Slice* result, char* to) const {
    size_t done = 0;
    int error = disk->read(file, offset, count, to, &done);
    *result = Slice(to, done);
    return made(path, error);
  }

  Disk* const disk;
  const uint64_t file;
  const std::string path;
};

class Sequential final : public leveldb::SequentialFile {
 public:
  Sequential(Disk* disk, uint64_t file, const std::string& path) : handle_(disk, file, path) {}

  Status Read(size_t count, Slice* result, char* scratch) override {
    Status status = handle_.read(offset_, count, result, scratch);
    offset_ += result->size();
    return status;
  }

  Status Skip(uint64_t count) override {
    offset_ += count;
    return Status::OK();
  }

 private:
  Handle handle_;
  uint64_t offset_ = 0;
};

class RandomAccess final : public leveldb::RandomAccessFile {
 public:
  RandomAccess(Disk* disk, uint64_t file, const std::string& path) : handle_(disk, file, path) {}

  Status Read(uint64_t offset, size_t count, Slice* result, char* scratch) const override {
    return handle_.read(offset, count, result, scratch);
  }

 private:
  Handle handle_;
};

class Writable final : public leveldb::WritableFile {
 public:
  Writable(Disk* disk, uint64_t file, const std::string& path) : handle_(disk, file, path) {
    buffer_.reserve(kBufferBytes);
  }

  ~Writable() override {
    if (!closed_) Close();
  }

  Status Append(const Slice& data) override {
    size_t fits = std::min(data.size(), kBufferBytes - buffer_.size());
    buffer_.append(data.data(), fits);
    if (fits == data.size()) return Status::OK();
    Status status = Flush();
    if (!status.ok()) return status;
    std::string rest(data.data() + fits, data.size() - fits);
    if (rest.size() >= kBufferBytes) {
      return made(handle_.path, handle_.disk->write(handle_.file, std::move(rest)));
    }
    buffer_ = std::move(rest);
    return status;
  }

  Status Close() override {
    closed_ = true;
    return Flush();
  }

  /// Drops the buffer even if the write fails, as LevelDB's own file does.
  Status Flush() override {
    if (buffer_.empty()) return Status::OK();
    return made(handle_.path, handle_.disk->write(handle_.file, std::exchange(buffer_, {})));
  }

  /// Makes the name of a manifest durable before its contents.
  Status Sync() override {
    std::string name = handle_.path.substr(handle_.path.rfind('/') + 1);
    if (name.rfind("MANIFEST", 0) == 0) {
      std::string directory = parent(handle_.path);
      Status status = made(directory, handle_.disk->sync_directory(directory));
      if (!status.ok()) return status;
    }
    Status status = Flush();
    return status.ok() ? made(handle_.path, handle_.disk->sync(handle_.file)) : status;
  }

 private:
  Handle handle_;
  std::string buffer_;
  bool closed_ = false;
};

class Lock final : public leveldb::FileLock {
 public:
  explicit Lock(std::string path) : path(std::move(path)) {}

  const std::string path;
};

class SilentLogger final : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

/// A thread that runs its tasks one after the other.
class Worker {
 public:
  explicit Worker(Gate* gate) : gate_(gate) {}

  ~Worker() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void add(void (*function)(void*), void* argument) {
    gate_->scheduled();
    std::lock_guard<std::mutex> guard(mutex_);
    work_.emplace_back(function, argument);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> guard(mutex_);
    while (true) {
      changed_.wait(guard, [this] { return ends_ || !work_.empty(); });
      if (work_.empty()) return;
      auto [function, argument] = work_.front();
      work_.pop_front();
      guard.unlock();
      gate_->begin();
      function(argument);
      gate_->end();
      guard.lock();
    }
  }

  Gate* const gate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void*), void*>> work_;
  std::thread thread_;
  bool ends_ = false;
};

class DiskEnv final : public leveldb::Env {
 public:
  explicit DiskEnv(Disk* disk) : disk_(disk), worker_(&disk->gate) {}

  Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** result) override {
    return open_to_read<Sequential>(name, result);
  }

  Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** result) override {
    return open_to_read<RandomAccess>(name, result);
  }

  Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override {
    return open_to_write(name, true, result);
  }

  Status NewAppendableFile(const std::string& name, leveldb::WritableFile** result) override {
    return open_to_write(name, false, result);
  }

  bool FileExists(const std::string& name) override {
    csimdisk_kind kind = csimdisk_kind_none;
    return disk_->stat(clean(name.c_str()), &kind) == 0 && kind != csimdisk_kind_none;
  }

  Status GetChildren(const std::string& name, std::vector<std::string>* result) override {
    result->clear();
    return made(name, disk_->list(clean(name.c_str()), result));
  }

  Status RemoveFile(const std::string& name) override {
    return made(name, disk_->remove(clean(name.c_str())));
  }

  Status DeleteFile(const std::string& name) override { return RemoveFile(name); }

  Status CreateDir(const std::string& name) override {
    return made(name, disk_->make_directory(clean(name.c_str())));
  }

  Status RemoveDir(const std::string& name) override {
    return made(name, disk_->remove_directory(clean(name.c_str())));
  }

  Status DeleteDir(const std::string& name) override { return RemoveDir(name); }

  Status GetFileSize(const std::string& name, uint64_t* size) override {
    *size = 0;
    return made(name, disk_->size(clean(name.c_str()), size));
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    return made(from, disk_->rename(clean(from.c_str()), clean(to.c_str())));
  }

  Status LockFile(const std::string& name, leveldb::FileLock** lock) override {
    *lock = nullptr;
    std::string path = clean(name.c_str());
    int error = disk_->lock(path);
    if (error == EWOULDBLOCK) {
      return Status::IOError("lock " + name, "already held by process");
    }
    if (error == 0) *lock = new Lock(path);
    return made(name, error);
  }

  Status UnlockFile(leveldb::FileLock* lock) override {
    std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
    disk_->unlock(held->path);
    return Status::OK();
  }

  void Schedule(void (*function)(void*), void* argument) override {
    worker_.add(function, argument);
  }

  void StartThread(void (*function)(void*), void* argument) override {
    Env::Default()->StartThread(function, argument);
  }

  Status GetTestDirectory(std::string* path) override {
    *path = "/";
    return Status::OK();
  }

  Status NewLogger(const std::string&, leveldb::Logger** result) override {
    *result = new SilentLogger;
    return Status::OK();
  }

  uint64_t NowMicros() override { return Env::Default()->NowMicros(); }

  void SleepForMicroseconds(int micros) override {
    Env::Default()->SleepForMicroseconds(micros);
  }

 private:
  template <typename Made, typename Result>
  Status open_to_read(const std::string& name, Result** result) {
    std::string path = clean(name.c_str());
    uint64_t file = 0;
    int error = disk_->open_to_read(path, &file);
    *result = error == 0 ? new Made(disk_, file, path) : nullptr;
    return made(name, error);
  }

  Status open_to_write(const std::string& name, bool emptied, leveldb::WritableFile** result) {
    std::string path = clean(name.c_str());
    uint64_t file = 0;
    int error = disk_->open_to_write(path, emptied, &file);
    *result = error == 0 ? new Writable(disk_, file, path) : nullptr;
    return made(name, error);
  }

  Disk* const disk_;
  Worker worker_;
};

}  // namespace

std::unique_ptr<leveldb::Env> make_env(Disk* disk) { return std::make_unique<DiskEnv>(disk); }

}  // namespace simdisk
