#include "Disk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace simdisk {

using Guard = std::lock_guard<std::mutex>;

std::string clean(const char* path) {
  std::string result;
  for (std::string_view rest = path; !rest.empty();) {
    size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view name = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      result.erase(std::min(result.rfind('/'), result.size()));
    } else {
      result.append("/").append(name);
    }
  }
  return result.empty() ? "/" : result;
}

int Disk::enter(csimdisk_calls calls, bool* is_short) {
  bool reads = calls == csimdisk_calls_reads;
  std::array<bool, 5> counted = {};
  counted[calls] = counted[csimdisk_calls_all] = true;
  counted[csimdisk_calls_mutating] = !reads;
  for (size_t each = 0; each < counted.size(); ++each) counts_.calls[each] += counted[each];
  for (Fault& fault : faults_) {
    uint64_t number = counts_.calls[fault.calls];
    if (!counted[fault.calls] || fault.done || number < fault.number) continue;
    if (!fault.forever && number > fault.number) continue;
    fault.done = !fault.forever;
    ++counts_.failed;
    if (is_short) *is_short = fault.fault == csimdisk_fault_short_write;
    return fault.fault == csimdisk_fault_eio ? EIO : ENOSPC;
  }
  return 0;
}

csimdisk_kind Disk::kind(const std::string& path) const {
  if (path == "/") return csimdisk_kind_directory;
  auto name = state_.names.find(path);
  if (name == state_.names.end()) return csimdisk_kind_none;
  return name->second == kDirectory ? csimdisk_kind_directory : csimdisk_kind_file;
}

int Disk::check_parent(const std::string& path) const {
  switch (kind(parent(path))) {
    case csimdisk_kind_none: return ENOENT;
    case csimdisk_kind_file: return ENOTDIR;
    case csimdisk_kind_directory: return 0;
  }
}

bool Disk::has_names_below(const std::string& path) const {
  auto name = state_.names.lower_bound(path + "/");
  return name != state_.names.end() && is_below(name->first, path);
}

void Disk::apply(Entry entry) {
  state_.apply(entry);
  journal_.push_back(std::move(entry));
}

// MARK: - Calls

int Disk::stat(const std::string& path, csimdisk_kind* result) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  *result = kind(path);
  return 0;
}

int Disk::list(const std::string& path, std::vector<std::string>* result) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_file) return ENOTDIR;
  for (auto& [name, file] : state_.names) {
    if (parent(name) == path) result->push_back(name.substr(name.rfind('/') + 1));
  }
  return 0;
}

int Disk::size(const std::string& path, uint64_t* count) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_directory) return EISDIR;
  *count = state_.files[state_.names[path]].bytes.size();
  return 0;
}

int Disk::open_to_read(const std::string& path, uint64_t* file) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_directory) return EISDIR;
  *file = state_.names[path];
  ++state_.files[*file].handles;
  return 0;
}

int Disk::read(uint64_t file, uint64_t offset, size_t count, char* to, size_t* done) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  *done = state_.files[file].bytes.read(offset, count, to);
  return 0;
}

int Disk::create(const std::string& path, uint64_t* file) {
  if (int error = check_parent(path)) return error;
  Entry entry{csimdisk_entry_create};
  *file = entry.file = state_.next_file++;
  entry.path = path;
  apply(std::move(entry));
  return 0;
}

int Disk::open_to_write(const std::string& path, bool emptied, uint64_t* file) {
  gate.pass();
  Guard guard(mutex_);
  csimdisk_kind found = kind(path);
  bool changes = emptied || found == csimdisk_kind_none;
  if (int error = enter(changes ? csimdisk_calls_mutating : csimdisk_calls_reads)) return error;
  if (found == csimdisk_kind_directory) return EISDIR;
  if (found == csimdisk_kind_none) {
    if (int error = create(path, file)) return error;
  } else {
    *file = state_.names[path];
    if (emptied) {
      Entry entry{csimdisk_entry_truncate, *file};
      entry.path = path;
      apply(std::move(entry));
    }
  }
  ++state_.files[*file].handles;
  return 0;
}

int Disk::write(uint64_t file, std::string bytes) {
  gate.pass();
  Guard guard(mutex_);
  bool is_short = false;
  int error = enter(csimdisk_calls_writes, &is_short);
  if (is_short) bytes.resize(bytes.size() / 2);
  if (!error && bytes.size() > room()) {
    is_short = true;
    error = ENOSPC;
    ++counts_.failed;
    bytes.resize(room());
  }
  if ((error && !is_short) || bytes.empty()) return error;
  Entry entry{csimdisk_entry_write, file, bytes.size()};
  entry.chunk = std::make_shared<Chunk>(std::move(bytes));
  apply(std::move(entry));
  return error;
}

int Disk::sync(uint64_t file) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_syncs)) return error;
  apply({csimdisk_entry_sync, file, state_.files[file].bytes.size()});
  return 0;
}

int Disk::truncate(const std::string& path, uint64_t count) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_directory) return EISDIR;
  apply({csimdisk_entry_truncate, state_.names[path], count, path});
  return 0;
}

int Disk::sync_directory(const std::string& path) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_syncs)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_file) return ENOTDIR;
  apply({csimdisk_entry_sync_directory, 0, 0, path});
  return 0;
}

int Disk::make_directory(const std::string& path) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (kind(path) != csimdisk_kind_none) return EEXIST;
  if (int error = check_parent(path)) return error;
  apply({csimdisk_entry_mkdir, 0, 0, path});
  return 0;
}

int Disk::remove_directory(const std::string& path) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (path == "/") return EBUSY;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_file) return ENOTDIR;
  if (has_names_below(path)) return ENOTEMPTY;
  apply({csimdisk_entry_rmdir, 0, 0, path});
  return 0;
}

int Disk::rename(const std::string& from, const std::string& to) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  csimdisk_kind source = kind(from);
  csimdisk_kind target = kind(to);
  if (source == csimdisk_kind_none) return ENOENT;
  if (int error = check_parent(to)) return error;
  if (from == to) return 0;
  if (from == "/" || is_below(to, from)) return EINVAL;
  if (source == csimdisk_kind_file && target == csimdisk_kind_directory) return EISDIR;
  if (source == csimdisk_kind_directory && target == csimdisk_kind_file) return ENOTDIR;
  if (target == csimdisk_kind_directory && has_names_below(to)) return ENOTEMPTY;
  apply({csimdisk_entry_rename, state_.names[from], 0, from, to});
  return 0;
}

int Disk::exchange(const std::string& path, const std::string& other) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (kind(path) == csimdisk_kind_none || kind(other) == csimdisk_kind_none) return ENOENT;
  if (path == other || is_below(path, other) || is_below(other, path)) return EINVAL;
  apply({csimdisk_entry_exchange, state_.names[path], 0, path, other});
  return 0;
}

int Disk::link(const std::string& from, const std::string& to) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (kind(from) == csimdisk_kind_none) return ENOENT;
  if (kind(from) == csimdisk_kind_directory) return EPERM;
  if (int error = check_parent(to)) return error;
  if (kind(to) != csimdisk_kind_none) return EEXIST;
  apply({csimdisk_entry_create, state_.names[from], 0, to});
  return 0;
}

int Disk::remove(const std::string& path) {
  gate.pass();
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_mutating)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  if (kind(path) == csimdisk_kind_directory) return EISDIR;
  apply({csimdisk_entry_unlink, state_.names[path], 0, path});
  return 0;
}

int Disk::available(const std::string& path, uint64_t* bytes) {
  Guard guard(mutex_);
  if (int error = enter(csimdisk_calls_reads)) return error;
  if (kind(path) == csimdisk_kind_none) return ENOENT;
  bool full = std::any_of(faults_.begin(), faults_.end(), [this](const Fault& fault) {
    return fault.forever && fault.fault != csimdisk_fault_eio &&
           counts_.calls[fault.calls] + 1 >= fault.number;
  });
  *bytes = full ? 0 : room();
  return 0;
}

uint64_t Disk::room() const {
  if (capacity_ == kEndless) return kEndless;
  uint64_t used = 0;
  for (auto& [path, file] : state_.names) {
    if (file != kDirectory) used += state_.files.at(file).bytes.size();
  }
  return capacity_ - std::min(capacity_, used);
}

int Disk::lock(const std::string& path) {
  uint64_t file = 0;
  if (int error = open_to_write(path, false, &file)) return error;
  close(file);
  Guard guard(mutex_);
  return locks_.insert(path).second ? 0 : EWOULDBLOCK;
}

// MARK: - From outside

void Disk::close(uint64_t file) {
  Guard guard(mutex_);
  --state_.files[file].handles;
}

void Disk::unlock(const std::string& path) {
  Guard guard(mutex_);
  locks_.erase(path);
}

void Disk::fail(uint64_t number, csimdisk_calls calls, csimdisk_fault fault, bool forever) {
  Guard guard(mutex_);
  faults_.push_back({number, calls, fault, forever});
}

void Disk::heal() {
  Guard guard(mutex_);
  faults_.clear();
}

csimdisk_counts Disk::counts() {
  Guard guard(mutex_);
  return counts_;
}

void Disk::set_capacity(uint64_t bytes) {
  Guard guard(mutex_);
  capacity_ = bytes;
}

std::unique_ptr<Disk> Disk::copy() {
  Guard guard(mutex_);
  auto disk = std::make_unique<Disk>(state_);
  for (auto& [number, file] : disk->state_.files) file.handles = 0;
  disk->origin_ = origin_;
  disk->journal_ = journal_;
  disk->capacity_ = capacity_;
  return disk;
}

uint64_t Disk::hash() {
  Guard guard(mutex_);
  return state_.hash();
}

std::string Disk::paths() {
  Guard guard(mutex_);
  std::string result;
  for (auto& [path, file] : state_.names) {
    if (file != kDirectory) result.append(path).push_back('\0');
  }
  return result;
}

bool Disk::bytes(const std::string& path, std::string* result) {
  Guard guard(mutex_);
  if (kind(path) != csimdisk_kind_file) return false;
  *result = state_.files[state_.names[path]].bytes.bytes();
  return true;
}

void Disk::set_bytes(const std::string& path, std::string bytes) {
  Guard guard(mutex_);
  bool exists = kind(path) == csimdisk_kind_file;
  Entry entry{csimdisk_entry_edit, exists ? state_.names[path] : state_.next_file++, bytes.size()};
  entry.path = path;
  entry.chunk = std::make_shared<Chunk>(std::move(bytes));
  apply(std::move(entry));
}

uint64_t Disk::unsynced(const std::string& path) {
  Guard guard(mutex_);
  if (kind(path) != csimdisk_kind_file) return 0;
  const File& file = state_.files[state_.names[path]];
  return file.bytes.size() - file.synced;
}

size_t Disk::journal_count() {
  Guard guard(mutex_);
  return journal_.size();
}

std::pair<State, std::vector<Entry>> Disk::history() {
  Guard guard(mutex_);
  return {origin_, journal_};
}

}  // namespace simdisk
