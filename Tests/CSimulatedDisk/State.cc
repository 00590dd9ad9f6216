#include "State.h"

#include <algorithm>
#include <utility>

namespace simdisk {

namespace {

// Hashes are polynomials in kBase modulo the prime 2^61 - 1, so hashes of parts can be combined.
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
constexpr uint64_t kBase = 0x0b4c71d3a59e62f7;

uint64_t times(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  uint64_t sum = static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}

uint64_t hash_of(std::string_view bytes, uint64_t hash = 0) {
  for (unsigned char byte : bytes) hash = (times(hash, kBase) + byte + 1) % kPrime;
  return hash;
}

uint64_t power_of(size_t count) {
  uint64_t power = 1;
  for (uint64_t base = kBase; count > 0; count >>= 1, base = times(base, base)) {
    if (count & 1) power = times(power, base);
  }
  return power;
}

}  // namespace

Chunk::Chunk(std::string text)
    : bytes(std::move(text)), hash(hash_of(bytes)), power(power_of(bytes.size())) {}

void Rope::append(std::shared_ptr<const Chunk> chunk) {
  if (chunk->bytes.empty()) return;
  uint64_t end = size() + chunk->bytes.size();
  parts_.push_back({end, std::move(chunk)});
}

void Rope::cut(uint64_t size) {
  while (!parts_.empty()) {
    uint64_t start = parts_.size() > 1 ? parts_[parts_.size() - 2].end : 0;
    if (start < size) break;
    parts_.pop_back();
  }
  if (!parts_.empty()) parts_.back().end = std::min(parts_.back().end, size);
}

size_t Rope::read(uint64_t offset, size_t count, char* to) const {
  auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                               [](uint64_t at, const Part& part) { return at < part.end; });
  size_t done = 0;
  for (; part != parts_.end() && done < count; ++part) {
    uint64_t start = part == parts_.begin() ? 0 : (part - 1)->end;
    uint64_t at = offset + done;
    size_t some = std::min<uint64_t>(count - done, part->end - at);
    part->chunk->bytes.copy(to + done, some, at - start);
    done += some;
  }
  return done;
}

std::string Rope::bytes() const {
  std::string all(size(), '\0');
  read(0, all.size(), all.data());
  return all;
}

uint64_t Rope::hash() const {
  uint64_t hash = 0;
  uint64_t start = 0;
  for (const Part& part : parts_) {
    const Chunk& chunk = *part.chunk;
    if (part.end - start == chunk.bytes.size()) {
      hash = (times(hash, chunk.power) + chunk.hash) % kPrime;
    } else {
      hash = hash_of(std::string_view(chunk.bytes).substr(0, part.end - start), hash);
    }
    start = part.end;
  }
  return hash;
}

void File::truncate(uint64_t count) {
  if (count < synced) {
    if (!old) old = durable();
    synced = count;
  }
  if (count > bytes.size()) {
    bytes.append(std::make_shared<Chunk>(std::string(count - bytes.size(), '\0')));
  }
  bytes.cut(count);
}

void File::sync() {
  synced = bytes.size();
  old.reset();
}

Rope File::durable() const {
  if (old) return *old;
  Rope rope = bytes;
  rope.cut(synced);
  return rope;
}

uint64_t Chance::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

bool is_below(std::string_view path, std::string_view of) {
  if (of == "/") return path != "/";
  return path.size() > of.size() && path[of.size()] == '/' && path.substr(0, of.size()) == of;
}

std::string parent(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

void State::apply(const Entry& entry) {
  next_file = std::max(next_file, entry.file + 1);
  auto file = files.find(entry.file);
  switch (entry.kind) {
    case csimdisk_entry_write:
      // A handle may have written to a file without a name, which does not exist here.
      if (file == files.end()) return;
      last_file = entry.file;
      last_offset = file->second.bytes.size();
      return file->second.bytes.append(entry.chunk);
    case csimdisk_entry_truncate:
      if (file != files.end()) file->second.truncate(entry.count);
      return;
    case csimdisk_entry_sync:
      if (file != files.end()) file->second.sync();
      return;
    case csimdisk_entry_sync_directory:
      return sync_names();
    case csimdisk_entry_edit:
      return edit(entry);
    case csimdisk_entry_create:
      files[entry.file];
      break;
    case csimdisk_entry_rename:
    case csimdisk_entry_exchange:
    case csimdisk_entry_unlink:
    case csimdisk_entry_mkdir:
    case csimdisk_entry_rmdir:
      break;
  }
  change(names, entry);
  pending.push_back(entry);
}

void State::change(Names& names, const Entry& entry) {
  switch (entry.kind) {
    case csimdisk_entry_create:
      names[entry.path] = entry.file;
      break;
    case csimdisk_entry_mkdir:
      names[entry.path] = kDirectory;
      break;
    case csimdisk_entry_unlink:
    case csimdisk_entry_rmdir:
      names.erase(entry.path);
      break;
    case csimdisk_entry_exchange: {
      Names moved;
      for (auto name = names.begin(); name != names.end();) {
        const std::string& at = name->first;
        const bool is_one = at == entry.path || is_below(at, entry.path);
        const bool is_other = at == entry.other || is_below(at, entry.other);
        if (is_one || is_other) {
          const std::string& from = is_one ? entry.path : entry.other;
          const std::string& to = is_one ? entry.other : entry.path;
          moved[to + at.substr(from.size())] = name->second;
          name = names.erase(name);
        } else {
          ++name;
        }
      }
      for (auto& [path, file] : moved) names[path] = file;
      break;
    }
    case csimdisk_entry_rename: {
      Names moved;
      for (auto name = names.begin(); name != names.end();) {
        if (name->first == entry.path || is_below(name->first, entry.path)) {
          moved[entry.other + name->first.substr(entry.path.size())] = name->second;
          name = names.erase(name);
        } else {
          ++name;
        }
      }
      for (auto& [path, file] : moved) names[path] = file;
      break;
    }
    default:
      break;
  }
}

void State::edit(const Entry& entry) {
  for (Names* each : {&names, &durable_names}) {
    (*each)[entry.path] = entry.file;
    for (std::string up = parent(entry.path); up != "/"; up = parent(up)) (*each)[up] = kDirectory;
  }
  File& file = files[entry.file];
  file.truncate(0);
  file.bytes.append(entry.chunk);
  file.sync();
}

void State::sync_names() {
  durable_names = names;
  pending.clear();
  std::map<uint64_t, bool> named;
  for (auto& [path, file] : names) named[file] = true;
  for (auto file = files.begin(); file != files.end();) {
    bool kept = file->second.handles > 0 || named.count(file->first) > 0;
    file = kept ? std::next(file) : files.erase(file);
  }
}

Names State::names_after(size_t changes) const {
  Names result = durable_names;
  for (size_t n = 0; n < std::min(changes, pending.size()); ++n) change(result, pending[n]);
  return result;
}

State State::image(csimdisk_model model, uint64_t number) const {
  Chance chance(number);
  State image;
  image.next_file = next_file;
  image.names = names;
  if (model == csimdisk_model_nothing_unsynced) image.names = durable_names;
  if (model == csimdisk_model_names_lost) image.names = names_after(number);
  if (model == csimdisk_model_prefix) image.names = names_after(chance.below(pending.size() + 1));
  for (auto& [path, named] : image.names) {
    auto file = files.find(named);
    if (file != files.end()) image.files[named].bytes = file->second.bytes;
  }
  damage(model, chance, &image);
  for (auto& [named, file] : image.files) file.sync();
  image.durable_names = image.names;
  return image;
}

void State::damage(csimdisk_model model, Chance& chance, State* image) const {
  std::vector<uint64_t> unsynced;
  for (auto& [number, copy] : image->files) {
    const File& file = files.at(number);
    if (file.is_synced()) continue;
    uint64_t some = file.bytes.size() - file.synced;
    switch (model) {
      case csimdisk_model_nothing_unsynced:
      case csimdisk_model_unsynced_data_lost:
        copy.bytes = file.durable();
        break;
      case csimdisk_model_prefix:
        // A truncated file may be in any state from before the truncation until now.
        copy.bytes.cut(file.synced + chance.below(some + 1));
        if (chance.below(2) == 0 && file.old) copy.bytes = *file.old;
        break;
      case csimdisk_model_torn_last_append: {
        if (number != last_file) break;
        uint64_t start = std::max(last_offset, file.synced);
        if (start < file.bytes.size()) {
          copy.bytes.cut(start + chance.below(file.bytes.size() - start));
        }
        break;
      }
      case csimdisk_model_old_file_tail_lost:
        copy.bytes = file.durable();
        return;
      default:
        if (some > 0) unsynced.push_back(number);
    }
  }
  bool zeros = model == csimdisk_model_zeroed_tail;
  if (unsynced.empty() || !(zeros || model == csimdisk_model_garbage_tail)) return;
  uint64_t number = unsynced[chance.below(unsynced.size())];
  const File& file = files.at(number);
  uint64_t start = file.synced + chance.below(file.bytes.size() - file.synced);
  std::string tail(file.bytes.size() - start, '\0');
  for (char& byte : tail) byte = zeros ? 0 : static_cast<char>(chance.next());
  Rope& rope = image->files[number].bytes;
  rope.cut(start);
  rope.append(std::make_shared<Chunk>(std::move(tail)));
}

uint64_t State::hash() const {
  uint64_t hash = 0;
  for (auto& [path, number] : names) {
    hash = hash_of(path, hash_of(std::string_view("\0", 1), hash));
    auto file = files.find(number);
    if (file == files.end()) continue;
    uint64_t of_bytes = file->second.bytes.hash();
    hash = (times(hash, kBase) + of_bytes + 1) % kPrime;
  }
  return hash;
}

}  // namespace simdisk
