#include <cstring>

#include "Internal.h"

namespace leveldb {
// In LevelDB's library; the header that declares it is not installed.
Env* NewMemEnv(Env* base_env);
}  // namespace leveldb

namespace {

leveldb::Env* env_of(clarder_env* env) { return reinterpret_cast<leveldb::Env*>(env); }

}  // namespace

clarder_env* clarder_memory_create() noexcept {
  return reinterpret_cast<clarder_env*>(leveldb::NewMemEnv(leveldb::Env::Default()));
}

void clarder_memory_free(clarder_env* memory) noexcept { delete env_of(memory); }

bool clarder_memory_has(clarder_env* memory, const char* path) noexcept {
  return env_of(memory)->FileExists(path);
}

clarder_status* clarder_memory_read(clarder_env* memory, const char* path,
                                    clarder_buffer* buffer) noexcept {
  return clarder::box(leveldb::ReadFileToString(env_of(memory), path, &buffer->bytes));
}

clarder_status* clarder_memory_read_part(clarder_env* memory, const char* path, uint64_t offset,
                                         void* bytes, size_t* count) noexcept {
  leveldb::RandomAccessFile* opened = nullptr;
  leveldb::Status status = env_of(memory)->NewRandomAccessFile(path, &opened);
  if (!status.ok()) return clarder::box(status);
  std::unique_ptr<leveldb::RandomAccessFile> file(opened);
  leveldb::Slice read;
  char* const to = static_cast<char*>(bytes);
  status = file->Read(offset, *count, &read, to);
  // LevelDB may lend bytes of its own instead of copying them.
  if (status.ok() && read.data() != to) std::memcpy(to, read.data(), read.size());
  *count = read.size();
  return clarder::box(status);
}

clarder_status* clarder_memory_write(clarder_env* memory, const char* path,
                                     clarder_slice bytes) noexcept {
  return clarder::box(
      leveldb::WriteStringToFile(env_of(memory), clarder::borrow(bytes), path));
}

clarder_status* clarder_memory_remove(clarder_env* memory, const char* path) noexcept {
  return clarder::box(env_of(memory)->RemoveFile(path));
}

clarder_status* clarder_memory_rename(clarder_env* memory, const char* path,
                                      const char* other) noexcept {
  return clarder::box(env_of(memory)->RenameFile(path, other));
}

clarder_status* clarder_memory_list(clarder_env* memory, const char* path,
                                    clarder_buffer* buffer) noexcept {
  std::vector<std::string> names;
  leveldb::Status status = env_of(memory)->GetChildren(path, &names);
  buffer->bytes.clear();
  for (const std::string& name : names) buffer->bytes.append(name).push_back('\0');
  return clarder::box(status);
}
