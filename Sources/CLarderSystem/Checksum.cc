// CRC32C (Castagnoli), bits reflected, the polynomial that processors have an instruction for.

#include <array>
#include <cstring>

#include "CLarderSystem.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[n][b] is the effect of byte b when n more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (size_t n = 1; n < tables.size(); ++n) {
      uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

// Each of these takes and returns the state, which is the inverse of the finished number.
uint32_t extend_by_table(uint32_t state, const unsigned char* bytes, size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint32_t low = state ^ (bytes[0] | bytes[1] << 8 | bytes[2] << 16 | uint32_t{bytes[3]} << 24);
    state = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^
            kTables[5][(low >> 16) & 0xff] ^ kTables[4][low >> 24] ^ kTables[3][bytes[4]] ^
            kTables[2][bytes[5]] ^ kTables[1][bytes[6]] ^ kTables[0][bytes[7]];
  }
  for (; count > 0; ++bytes, --count) {
    state = (state >> 8) ^ kTables[0][(state ^ *bytes) & 0xff];
  }
  return state;
}

using Extend = uint32_t (*)(uint32_t, const unsigned char*, size_t);

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t extend_by_instruction(uint32_t state,
                                                                 const unsigned char* bytes,
                                                                 size_t count) {
  uint64_t wide = state;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  state = static_cast<uint32_t>(wide);
  for (; count > 0; ++bytes, --count) state = __builtin_ia32_crc32qi(state, *bytes);
  return state;
}

Extend choose() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") ? extend_by_instruction : extend_by_table;
}

#elif defined(__aarch64__)

#if !defined(__ARM_FEATURE_CRC32)
__attribute__((target("crc")))
#endif
uint32_t extend_by_instruction(uint32_t state, const unsigned char* bytes, size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    state = __builtin_arm_crc32cd(state, word);
  }
  for (; count > 0; ++bytes, --count) state = __builtin_arm_crc32cb(state, *bytes);
  return state;
}

Extend choose() {
#if defined(__ARM_FEATURE_CRC32)
  return extend_by_instruction;
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) ? extend_by_instruction : extend_by_table;
#else
  return extend_by_table;
#endif
}

#else

Extend choose() { return extend_by_table; }

#endif

const Extend extend = choose();

}  // namespace

uint32_t clarder_crc32c(uint32_t crc, const void* bytes, size_t count) noexcept {
  return ~extend(~crc, static_cast<const unsigned char*>(bytes), count);
}

uint32_t clarder_crc32c_by_table(uint32_t crc, const void* bytes, size_t count) noexcept {
  return ~extend_by_table(~crc, static_cast<const unsigned char*>(bytes), count);
}
