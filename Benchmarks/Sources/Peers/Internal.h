#ifndef PEERS_INTERNAL_H
#define PEERS_INTERNAL_H

#include "Peers.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>

/// A store of one kind.
struct peer {
  virtual ~peer() = default;
  virtual void begin() = 0;
  virtual void commit() = 0;
  virtual void put(int64_t key, const char* value, size_t count, double expires) = 0;
  virtual const char* get(int64_t key, size_t* count) = 0;
  virtual size_t sweep(double now) = 0;
};

namespace peers {

std::unique_ptr<peer> open_leveldb(const char* path, raw_options options);
std::unique_ptr<peer> open_rocksdb(const char* path, raw_options options, bool has_blobs);
std::unique_ptr<peer> open_lmdb(const char* path);

/// Prints the message and aborts the process.
[[noreturn]] void fail(const char* store, const std::string& message);

/// The header before each value: the date when it expires.
constexpr size_t kHeaderBytes = sizeof(double);
/// Index rows that a sweep processes in one write, as many as Larder processes notes.
constexpr size_t kSweptTogether = 256;

/// Appends eight bytes that sort like the numbers.
inline void append_ordered(std::string* bytes, int64_t number) {
  const uint64_t ordered = __builtin_bswap64(static_cast<uint64_t>(number) ^ (1ull << 63));
  bytes->append(reinterpret_cast<const char*>(&ordered), sizeof ordered);
}

/// Appends the prefix of an index row: the expiry date in whole seconds, rounded up.
inline void append_bucket(std::string* bytes, double expires) {
  append_ordered(bytes, static_cast<int64_t>(std::ceil(expires)));
}

inline void append_header(std::string* bytes, double expires) {
  bytes->append(reinterpret_cast<const char*>(&expires), sizeof expires);
}

/// The expiry date of a record.
inline double expiry_of(const char* record) {
  double expires;
  std::memcpy(&expires, record, sizeof expires);
  return expires;
}

}  // namespace peers

#endif  // PEERS_INTERNAL_H
