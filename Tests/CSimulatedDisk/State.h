// The contents of a disk, in memory and durable, and what a crash leaves of them.

#ifndef CSIMULATED_DISK_STATE_H
#define CSIMULATED_DISK_STATE_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CSimulatedDisk.h"

namespace simdisk {

/// Bytes that never change, shared by journals, files and disks.
struct Chunk {
  explicit Chunk(std::string bytes);

  const std::string bytes;
  /// The hash of all bytes, so that hashing a file takes one step per chunk, not per byte.
  const uint64_t hash;
  const uint64_t power;
};

/// The bytes of a file as parts of chunks, cheap to copy and to truncate.
class Rope {
 public:
  uint64_t size() const { return parts_.empty() ? 0 : parts_.back().end; }
  void append(std::shared_ptr<const Chunk> chunk);
  void cut(uint64_t size);
  /// Copies at most `count` bytes from `offset` on, and returns their number.
  size_t read(uint64_t offset, size_t count, char* to) const;
  std::string bytes() const;
  uint64_t hash() const;

 private:
  /// The chunk's first bytes, which end at the file's offset `end`.
  struct Part {
    uint64_t end;
    std::shared_ptr<const Chunk> chunk;
  };
  std::vector<Part> parts_;
};

struct File {
  Rope bytes;
  /// The number of leading bytes that are durable.
  uint64_t synced = 0;
  /// The durable bytes, if the file was truncated below them since.
  std::optional<Rope> old;
  /// The number of open handles.
  int handles = 0;

  bool is_synced() const { return !old && synced == bytes.size(); }
  void truncate(uint64_t count);
  void sync();
  Rope durable() const;
};

/// Every path except "/", with the number of its file or `kDirectory`.
using Names = std::map<std::string, uint64_t>;
constexpr uint64_t kDirectory = 0;

struct Entry {
  csimdisk_entry_kind kind;
  uint64_t file = 0;
  uint64_t count = 0;
  std::string path;
  std::string other;
  std::shared_ptr<const Chunk> chunk;
};

/// A SplitMix64 random generator.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// A number from 0 to `bound` - 1; `bound` must not be 0.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

struct State {
  std::map<uint64_t, File> files;
  /// The number of the next file. Numbers only grow, so they order files by age.
  uint64_t next_file = 1;
  Names names;
  Names durable_names;
  /// The changes that turn `durable_names` into `names`.
  std::vector<Entry> pending;
  /// The file of the last write, and the write's offset.
  uint64_t last_file = 0;
  uint64_t last_offset = 0;

  void apply(const Entry& entry);
  /// The state that a crash leaves, which is durable.
  State image(csimdisk_model model, uint64_t number) const;
  uint64_t hash() const;

 private:
  static void change(Names& names, const Entry& entry);
  void edit(const Entry& entry);
  void sync_names();
  Names names_after(size_t changes) const;
  void damage(csimdisk_model model, Chance& chance, State* image) const;
};

/// Whether `path` is below the directory `of`.
bool is_below(std::string_view path, std::string_view of);
std::string parent(const std::string& path);

}  // namespace simdisk

#endif
