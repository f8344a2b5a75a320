//===- hash.h - 128-bit hash of words, stable across processes --*- C++ -*-===//

#ifndef TORCH_LTC_IR_HASH_H
#define TORCH_LTC_IR_HASH_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace torch_ltc {

struct Hash128 {
  uint64_t low = 0, high = 0;
  bool operator==(const Hash128 &) const = default;
  /// The hash as 32 hexadecimal digits.
  std::string text() const {
    static const char digits[] = "0123456789abcdef";
    std::string result(32, '0');
    for (int i = 0; i < 16; ++i) {
      result[15 - i] = digits[(high >> (4 * i)) & 15];
      result[31 - i] = digits[(low >> (4 * i)) & 15];
    }
    return result;
  }
};

struct Hash128Hasher {
  size_t operator()(const Hash128 &hash) const { return hash.low; }
};

/// Computes a hash of words in two multiply-and-fold lanes with different
/// constants, so that a collision would have to occur in both.
class HashState {
public:
  explicit HashState(uint64_t seed = 0)
      : low(seed ^ 0x9e3779b97f4a7c15ull), high(seed + 0xd1b54a32d192ed03ull) {}

  void add(uint64_t word) {
    low = fold(low ^ word, 0xa0761d6478bd642full) + 0x8ebc6af09c88c6e3ull;
    high = fold(high + word, 0xe7037ed1a0b428dbull) ^
           (word * 0x589965cc75374cc3ull);
  }
  void add(const Hash128 &hash) {
    add(hash.low);
    add(hash.high);
  }

  Hash128 finish() const {
    return {fold(low ^ 0x1d8e4e27c47d124full, high | 1),
            fold(high ^ 0xeb44accab455d165ull, low | 1)};
  }

private:
  static uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return uint64_t(product) ^ uint64_t(product >> 64);
  }
  uint64_t low, high;
};

inline Hash128 hashBytes(const void *data, size_t size, uint64_t seed) {
  HashState state(seed);
  const char *bytes = static_cast<const char *>(data);
  state.add(size);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state.add(word);
  }
  uint64_t rest = 0;
  if (size)
    std::memcpy(&rest, bytes, size);
  state.add(rest);
  return state.finish();
}

} // namespace torch_ltc

#endif // TORCH_LTC_IR_HASH_H
