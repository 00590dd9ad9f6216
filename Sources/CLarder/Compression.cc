#include <snappy-c.h>

#include "CLarderLevelDB.h"

size_t clarder_snappy_most_bytes(size_t count) noexcept {
  return snappy_max_compressed_length(count);
}

size_t clarder_snappy_compress(clarder_slice bytes, void* compressed) noexcept {
  size_t count = snappy_max_compressed_length(bytes.count);
  // It fails only if there is less room than that.
  snappy_compress(static_cast<const char*>(bytes.bytes), bytes.count,
                  static_cast<char*>(compressed), &count);
  return count;
}

bool clarder_snappy_count(clarder_slice compressed, size_t* count) noexcept {
  return snappy_uncompressed_length(static_cast<const char*>(compressed.bytes), compressed.count,
                                    count) == SNAPPY_OK;
}

bool clarder_snappy_is_valid(clarder_slice compressed) noexcept {
  return snappy_validate_compressed_buffer(static_cast<const char*>(compressed.bytes),
                                           compressed.count) == SNAPPY_OK;
}

bool clarder_snappy_decompress(clarder_slice compressed, void* bytes, size_t count) noexcept {
  return snappy_uncompress(static_cast<const char*>(compressed.bytes), compressed.count,
                           static_cast<char*>(bytes), &count) == SNAPPY_OK;
}
