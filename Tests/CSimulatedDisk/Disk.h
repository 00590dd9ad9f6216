// A disk: its state behind a mutex, with counted calls, faults and a journal.

#ifndef CSIMULATED_DISK_DISK_H
#define CSIMULATED_DISK_DISK_H

#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "Gate.h"
#include "State.h"

namespace leveldb {
class Env;
}

namespace simdisk {

class Disk {
 public:
  Disk() = default;
  /// A disk with this initial state.
  explicit Disk(State state) : state_(state), origin_(std::move(state)) {}
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Calls: each is counted, may fail, and returns an errno.

  int stat(const std::string& path, csimdisk_kind* kind);
  int list(const std::string& path, std::vector<std::string>* names);
  int size(const std::string& path, uint64_t* count);
  int open_to_read(const std::string& path, uint64_t* file);
  int read(uint64_t file, uint64_t offset, size_t count, char* to, size_t* done);
  /// Creates the file if it is missing.
  int open_to_write(const std::string& path, bool emptied, uint64_t* file);
  int write(uint64_t file, std::string bytes);
  int sync(uint64_t file);
  int truncate(const std::string& path, uint64_t count);
  int sync_directory(const std::string& path);
  int make_directory(const std::string& path);
  int remove_directory(const std::string& path);
  int rename(const std::string& from, const std::string& to);
  int exchange(const std::string& path, const std::string& other);
  int link(const std::string& from, const std::string& to);
  int remove(const std::string& path);
  int available(const std::string& path, uint64_t* bytes);
  int lock(const std::string& path);

  // The other functions are not counted.

  void close(uint64_t file);
  void unlock(const std::string& path);
  void fail(uint64_t number, csimdisk_calls calls, csimdisk_fault fault, bool forever);
  void heal();
  csimdisk_counts counts();
  void set_capacity(uint64_t bytes);
  std::unique_ptr<Disk> copy();
  uint64_t hash();
  std::string paths();
  bool bytes(const std::string& path, std::string* bytes);
  void set_bytes(const std::string& path, std::string bytes);
  uint64_t unsynced(const std::string& path);
  size_t journal_count();
  /// The state before the journal, and the journal.
  std::pair<State, std::vector<Entry>> history();

  /// Controls LevelDB's background work.
  Gate gate;

 private:
  struct Fault {
    uint64_t number;
    csimdisk_calls calls;
    csimdisk_fault fault;
    bool forever;
    bool done = false;
  };

  /// Counts a call, and returns the errno with which it must fail, or 0. A write also gets
  /// `is_short`.
  int enter(csimdisk_calls calls, bool* is_short = nullptr);
  int create(const std::string& path, uint64_t* file);
  /// Returns 0 if a name may be created at `path`, otherwise an errno.
  int check_parent(const std::string& path) const;
  csimdisk_kind kind(const std::string& path) const;
  bool has_names_below(const std::string& path) const;
  /// The number of bytes left on the disk.
  uint64_t room() const;
  /// Changes the state, and appends the change to the journal.
  void apply(Entry entry);

  std::mutex mutex_;
  State state_;
  State origin_;
  std::vector<Entry> journal_;
  std::set<std::string> locks_;
  std::vector<Fault> faults_;
  csimdisk_counts counts_ = {};
  static constexpr uint64_t kEndless = uint64_t{1} << 40;
  uint64_t capacity_ = kEndless;
};

/// The path without "//", "/." and a trailing slash.
std::string clean(const char* path);

/// LevelDB's environment on a disk, which must outlive it.
std::unique_ptr<leveldb::Env> make_env(Disk* disk);

}  // namespace simdisk

#endif
