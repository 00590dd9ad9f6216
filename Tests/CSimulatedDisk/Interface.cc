// The C interface.

#include <leveldb/env.h>

#include <algorithm>
#include <utility>

#include "Disk.h"

using simdisk::clean;

struct csimdisk {
  explicit csimdisk(std::unique_ptr<simdisk::Disk> made)
      : disk(std::move(made)), env(simdisk::make_env(disk.get())) {}

  // Destroyed from the last to the first.
  const std::unique_ptr<simdisk::Disk> disk;
  const std::unique_ptr<leveldb::Env> env;
};

struct csimdisk_buffer {
  std::string bytes;
};

struct csimdisk_replay {
  simdisk::State state;
  std::vector<simdisk::Entry> journal;
  size_t next = 0;
  csimdisk_entry returned = {csimdisk_entry_create, 0, 0, ""};
};

namespace {

std::string text(const void* bytes, size_t count) {
  return count == 0 ? std::string() : std::string(static_cast<const char*>(bytes), count);
}

/// A file that is open for the time of one call.
class Opened {
 public:
  explicit Opened(csimdisk* disk) : disk_(disk->disk.get()) {}
  ~Opened() {
    if (file != 0) disk_->close(file);
  }

  uint64_t file = 0;

 private:
  simdisk::Disk* const disk_;
};

int write(csimdisk* disk, const char* path, std::string bytes, bool emptied) {
  Opened opened(disk);
  if (int error = disk->disk->open_to_write(clean(path), emptied, &opened.file)) return error;
  return bytes.empty() ? 0 : disk->disk->write(opened.file, std::move(bytes));
}

}  // namespace

csimdisk_buffer* csimdisk_buffer_create() noexcept { return new csimdisk_buffer; }

void csimdisk_buffer_free(csimdisk_buffer* buffer) noexcept { delete buffer; }

const uint8_t* csimdisk_buffer_bytes(const csimdisk_buffer* buffer) noexcept {
  return reinterpret_cast<const uint8_t*>(buffer->bytes.data());
}

size_t csimdisk_buffer_count(const csimdisk_buffer* buffer) noexcept {
  return buffer->bytes.size();
}

// MARK: - Disks

csimdisk* csimdisk_create() noexcept { return new csimdisk(std::make_unique<simdisk::Disk>()); }

csimdisk* csimdisk_copy(csimdisk* disk) noexcept { return new csimdisk(disk->disk->copy()); }

void csimdisk_free(csimdisk* disk) noexcept { delete disk; }

csimdisk_environment* csimdisk_env(csimdisk* disk) noexcept {
  return reinterpret_cast<csimdisk_environment*>(disk->env.get());
}

uint64_t csimdisk_hash(csimdisk* disk) noexcept { return disk->disk->hash(); }

void csimdisk_paths(csimdisk* disk, csimdisk_buffer* buffer) noexcept {
  buffer->bytes = disk->disk->paths();
}

bool csimdisk_bytes(csimdisk* disk, const char* path, csimdisk_buffer* buffer) noexcept {
  return disk->disk->bytes(clean(path), &buffer->bytes);
}

void csimdisk_set_bytes(csimdisk* disk, const char* path, const void* bytes,
                        size_t count) noexcept {
  disk->disk->set_bytes(clean(path), text(bytes, count));
}

uint64_t csimdisk_unsynced(csimdisk* disk, const char* path) noexcept {
  return disk->disk->unsynced(clean(path));
}

void csimdisk_set_capacity(csimdisk* disk, uint64_t bytes) noexcept {
  disk->disk->set_capacity(bytes);
}

void csimdisk_fail(csimdisk* disk, uint64_t number, csimdisk_calls calls, csimdisk_fault fault,
                   bool forever) noexcept {
  disk->disk->fail(number, calls, fault, forever);
}

void csimdisk_heal(csimdisk* disk) noexcept { disk->disk->heal(); }

csimdisk_counts csimdisk_count(csimdisk* disk) noexcept { return disk->disk->counts(); }

// MARK: - Calls

int csimdisk_stat(csimdisk* disk, const char* path, csimdisk_kind* kind) noexcept {
  *kind = csimdisk_kind_none;
  return disk->disk->stat(clean(path), kind);
}

int csimdisk_list(csimdisk* disk, const char* path, csimdisk_buffer* buffer) noexcept {
  std::vector<std::string> names;
  int error = disk->disk->list(clean(path), &names);
  buffer->bytes.clear();
  for (const std::string& name : names) buffer->bytes.append(name).push_back('\0');
  return error;
}

int csimdisk_read(csimdisk* disk, const char* path, size_t limit,
                  csimdisk_buffer* buffer) noexcept {
  buffer->bytes.clear();
  Opened opened(disk);
  std::string cleaned = clean(path);
  if (int error = disk->disk->open_to_read(cleaned, &opened.file)) return error;
  uint64_t size = 0;
  if (int error = disk->disk->size(cleaned, &size)) return error;
  buffer->bytes.resize(std::min<uint64_t>(size, limit));
  size_t done = 0;
  int error = disk->disk->read(opened.file, 0, buffer->bytes.size(), buffer->bytes.data(), &done);
  buffer->bytes.resize(done);
  return error;
}

int csimdisk_read_part(csimdisk* disk, const char* path, uint64_t offset, size_t count,
                       csimdisk_buffer* buffer) noexcept {
  buffer->bytes.clear();
  Opened opened(disk);
  if (int error = disk->disk->open_to_read(clean(path), &opened.file)) return error;
  buffer->bytes.resize(count);
  size_t done = 0;
  int error = disk->disk->read(opened.file, offset, count, buffer->bytes.data(), &done);
  buffer->bytes.resize(done);
  return error;
}

int csimdisk_size(csimdisk* disk, const char* path, uint64_t* count) noexcept {
  *count = 0;
  return disk->disk->size(clean(path), count);
}

int csimdisk_make_directory(csimdisk* disk, const char* path) noexcept {
  return disk->disk->make_directory(clean(path));
}

int csimdisk_write(csimdisk* disk, const char* path, const void* bytes, size_t count) noexcept {
  return write(disk, path, text(bytes, count), true);
}

int csimdisk_append(csimdisk* disk, const char* path, const void* bytes, size_t count) noexcept {
  return write(disk, path, text(bytes, count), false);
}

int csimdisk_truncate(csimdisk* disk, const char* path, uint64_t count) noexcept {
  return disk->disk->truncate(clean(path), count);
}

int csimdisk_rename(csimdisk* disk, const char* path, const char* other) noexcept {
  return disk->disk->rename(clean(path), clean(other));
}

int csimdisk_exchange(csimdisk* disk, const char* path, const char* other) noexcept {
  return disk->disk->exchange(clean(path), clean(other));
}

int csimdisk_link(csimdisk* disk, const char* path, const char* other) noexcept {
  return disk->disk->link(clean(path), clean(other));
}

int csimdisk_remove(csimdisk* disk, const char* path) noexcept {
  return disk->disk->remove(clean(path));
}

int csimdisk_remove_directory(csimdisk* disk, const char* path) noexcept {
  return disk->disk->remove_directory(clean(path));
}

int csimdisk_sync(csimdisk* disk, const char* path) noexcept {
  Opened opened(disk);
  if (int error = disk->disk->open_to_read(clean(path), &opened.file)) return error;
  return disk->disk->sync(opened.file);
}

int csimdisk_sync_directory(csimdisk* disk, const char* path) noexcept {
  return disk->disk->sync_directory(clean(path));
}

int csimdisk_available(csimdisk* disk, const char* path, uint64_t* bytes) noexcept {
  *bytes = 0;
  return disk->disk->available(clean(path), bytes);
}

int csimdisk_lock(csimdisk* disk, const char* path) noexcept {
  return disk->disk->lock(clean(path));
}

void csimdisk_unlock(csimdisk* disk, const char* path) noexcept { disk->disk->unlock(clean(path)); }

// MARK: - The background

void csimdisk_hold_background(csimdisk* disk) noexcept { disk->disk->gate.hold(); }

void csimdisk_prefer_background(csimdisk* disk) noexcept { disk->disk->gate.prefer(); }

void csimdisk_release_background(csimdisk* disk) noexcept { disk->disk->gate.release(); }

void csimdisk_run_background(csimdisk* disk, size_t calls) noexcept {
  disk->disk->gate.run(calls);
}

// MARK: - Crashes

size_t csimdisk_journal_count(csimdisk* disk) noexcept { return disk->disk->journal_count(); }

csimdisk_replay* csimdisk_replay_create(csimdisk* disk) noexcept {
  auto [state, journal] = disk->disk->history();
  return new csimdisk_replay{std::move(state), std::move(journal)};
}

void csimdisk_replay_free(csimdisk_replay* replay) noexcept { delete replay; }

const csimdisk_entry* csimdisk_replay_step(csimdisk_replay* replay) noexcept {
  if (replay->next == replay->journal.size()) return nullptr;
  const simdisk::Entry& next = replay->journal[replay->next++];
  replay->state.apply(next);
  replay->returned = {next.kind, next.file, next.count, next.path.c_str()};
  return &replay->returned;
}

size_t csimdisk_replay_pending_names(const csimdisk_replay* replay) noexcept {
  return replay->state.pending.size();
}

csimdisk* csimdisk_replay_image(const csimdisk_replay* replay, csimdisk_model model,
                                uint64_t number) noexcept {
  return new csimdisk(std::make_unique<simdisk::Disk>(replay->state.image(model, number)));
}
