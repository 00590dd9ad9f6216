#include "Internal.h"

#include <cstdio>
#include <cstdlib>

void peers::fail(const char* store, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", store, message.c_str());
  std::abort();
}

peer* peer_open(peer_kind kind, const char* path, raw_options options) {
  switch (kind) {
    case peer_kind_leveldb: return peers::open_leveldb(path, options).release();
    case peer_kind_rocksdb: return peers::open_rocksdb(path, options, false).release();
    case peer_kind_blobdb: return peers::open_rocksdb(path, options, true).release();
    case peer_kind_lmdb: return peers::open_lmdb(path).release();
  }
  peers::fail("Peers", "unknown kind");
}

void peer_close(peer* store) { delete store; }

void peer_begin(peer* store) { store->begin(); }

void peer_commit(peer* store) { store->commit(); }

void peer_put(peer* store, int64_t key, const void* value, size_t count, double expires) {
  store->put(key, static_cast<const char*>(value), count, expires);
}

const void* peer_get(peer* store, int64_t key, size_t* count) { return store->get(key, count); }

size_t peer_sweep(peer* store, double now) { return store->sweep(now); }
