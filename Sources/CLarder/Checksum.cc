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

#define WITH_INSTRUCTION __attribute__((target("sse4.2")))

WITH_INSTRUCTION inline uint32_t add_word(uint32_t state, uint64_t word) {
  return static_cast<uint32_t>(__builtin_ia32_crc32di(state, word));
}

WITH_INSTRUCTION inline uint32_t add_byte(uint32_t state, unsigned char byte) {
  return __builtin_ia32_crc32qi(state, byte);
}

bool has_instruction() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__)

#if defined(__ARM_FEATURE_CRC32)
#define WITH_INSTRUCTION
#else
#define WITH_INSTRUCTION __attribute__((target("crc")))
#endif

WITH_INSTRUCTION inline uint32_t add_word(uint32_t state, uint64_t word) {
  return __builtin_arm_crc32cd(state, word);
}

WITH_INSTRUCTION inline uint32_t add_byte(uint32_t state, unsigned char byte) {
  return __builtin_arm_crc32cb(state, byte);
}

bool has_instruction() {
#if defined(__ARM_FEATURE_CRC32)
  return true;
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
  return false;
#endif
}

#endif

#if defined(WITH_INSTRUCTION)

// The instruction takes three cycles, and the processor can begin one each cycle. So the bytes are
// taken in three streams of this length, each of which begins with the state 0, but the first.
constexpr size_t kStream = 256;

using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

// tables[n][b] is the effect of byte n of the state, if it is b, when kStream zero bytes follow.
constexpr ShiftTables make_shift_tables() {
  ShiftTables tables{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t state = uint32_t{1} << bit;
    for (size_t n = 0; n < kStream; ++n) state = (state >> 8) ^ kTables[0][state & 0xff];
    tables[bit / 8][1 << bit % 8] = state;
  }
  for (auto& table : tables) {
    for (uint32_t byte = 1; byte < 256; ++byte) {
      uint32_t lowest = byte & -byte;
      if (lowest != byte) table[byte] = table[lowest] ^ table[byte ^ lowest];
    }
  }
  return tables;
}

constexpr ShiftTables kShiftTables = make_shift_tables();

// The state after kStream zero bytes.
uint32_t shift(uint32_t state) {
  return kShiftTables[0][state & 0xff] ^ kShiftTables[1][(state >> 8) & 0xff] ^
         kShiftTables[2][(state >> 16) & 0xff] ^ kShiftTables[3][state >> 24];
}

uint64_t load(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

WITH_INSTRUCTION uint32_t extend_by_instruction(uint32_t state, const unsigned char* bytes,
                                                size_t count) {
  for (; count >= 3 * kStream; bytes += 3 * kStream, count -= 3 * kStream) {
    uint32_t second = 0, third = 0;
    for (size_t at = 0; at < kStream; at += 8) {
      state = add_word(state, load(bytes + at));
      second = add_word(second, load(bytes + kStream + at));
      third = add_word(third, load(bytes + 2 * kStream + at));
    }
    state = shift(shift(state) ^ second) ^ third;
  }
  for (; count >= 8; bytes += 8, count -= 8) state = add_word(state, load(bytes));
  for (; count > 0; ++bytes, --count) state = add_byte(state, *bytes);
  return state;
}

Extend choose() { return has_instruction() ? extend_by_instruction : extend_by_table; }

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
