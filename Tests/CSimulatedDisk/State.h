// What is on a disk, in memory and durably, and what a crash makes of it.

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
  /// Of all the bytes, so that the hash of a file takes a step for each chunk and not each byte.
  const uint64_t hash;
  const uint64_t power;
};

/// The bytes of a file: parts of chunks, cheap to copy and to cut.
class Rope {
 public:
  uint64_t size() const { return parts_.empty() ? 0 : parts_.back().end; }
  void append(std::shared_ptr<const Chunk> chunk);
  void cut(uint64_t size);
  /// Copies at most `count` bytes from `offset` on, and says how many.
  size_t read(uint64_t offset, size_t count, char* to) const;
  std::string bytes() const;
  uint64_t hash() const;

 private:
  /// The chunk's first bytes, up to the file's byte `end`.
  struct Part {
    uint64_t end;
    std::shared_ptr<const Chunk> chunk;
  };
  std::vector<Part> parts_;
};

struct File {
  Rope bytes;
  /// So many of the first bytes are durable.
  uint64_t synced = 0;
  /// What is durable, when the file was cut below it since.
  std::optional<Rope> old;
  /// How many handles are open.
  int handles = 0;

  bool is_synced() const { return !old && synced == bytes.size(); }
  void truncate(uint64_t count);
  void sync();
  Rope durable() const;
};

/// Every path but "/" with the number of its file, or `kDirectory`.
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

/// SplitMix64.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// From 0 up to and without `bound`, which is not 0.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

struct State {
  std::map<uint64_t, File> files;
  /// The number of the next file. Numbers only grow: files have an age.
  uint64_t next_file = 1;
  Names names;
  Names durable_names;
  /// The changes that make `names` out of `durable_names`.
  std::vector<Entry> pending;
  /// The file of the last write, and where it began.
  uint64_t last_file = 0;
  uint64_t last_offset = 0;

  void apply(const Entry& entry);
  /// The state that a crash leaves, all of it durable.
  State image(csimdisk_model model, uint64_t number) const;
  uint64_t hash() const;

 private:
  static void change(Names& names, const Entry& entry);
  void edit(const Entry& entry);
  void sync_names();
  Names names_after(size_t changes) const;
  void damage(csimdisk_model model, Chance& chance, State* image) const;
};

/// Whether `path` lies below the directory `of`.
bool is_below(std::string_view path, std::string_view of);
std::string parent(const std::string& path);

}  // namespace simdisk

#endif
