#include "CSimulatedDisk.h"

#include <leveldb/dumpfile.h>
#include <leveldb/env.h>

bool csimdisk_dump_file(const char *path, const char *output) noexcept {
  leveldb::Env *env = leveldb::Env::Default();
  leveldb::WritableFile *text = nullptr;
  if (!env->NewWritableFile(output, &text).ok()) return false;
  const bool is_dumped = leveldb::DumpFile(env, path, text).ok();
  const bool is_closed = text->Close().ok();
  delete text;
  return is_dumped && is_closed;
}
