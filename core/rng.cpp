#include "core/rng.h"

#include "core/error.h"

#include <cmath>

namespace minillm {

namespace {

// FNV-1a, then a finaliser (MurmurHash3's) so that similar names give unrelated keys.
uint64_t hash_bytes(uint64_t hash, std::string_view bytes) {
  for (char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  hash ^= 0xff;  // separates ("ab", "c") from ("a", "bc")
  hash *= 0x100000001b3;
  return hash;
}

uint64_t mix(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53;
  value ^= value >> 33;
  return value;
}

}  // namespace

RandomKey random_key(uint64_t seed, std::string_view purpose, std::string_view name) {
  return mix(hash_bytes(hash_bytes(mix(seed + 0x9e3779b97f4a7c15), purpose), name));
}

RandomKey random_key(RandomKey parent, uint64_t index) {
  return mix(parent ^ mix(index + 0x9e3779b97f4a7c15));
}

std::array<uint32_t, 4> philox(RandomKey key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x0 = static_cast<uint32_t>(counter_low);
  uint32_t x1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t x2 = static_cast<uint32_t>(counter_high);
  uint32_t x3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * x0;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * x2;
    x0 = static_cast<uint32_t>(product1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(product1);
    x2 = static_cast<uint32_t>(product0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9;  // the Weyl constants of the paper
    k1 += 0xBB67AE85;
  }
  return {x0, x1, x2, x3};
}

uint64_t RandomStream::next_u64() {
  const auto words = philox(key_, counter_);
  ++counter_;
  return uint64_t{words[0]} << 32 | words[1];
}

double RandomStream::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // 1 - u is in (0, 1]: log is finite
  const double angle = 2.0 * 3.14159265358979323846 * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t RandomStream::below(uint64_t bound) {
  check(bound >= 1, "a random number below 0 was asked for");
  // Rejection of the incomplete last interval keeps every value equally likely. It is shorter than `bound`, so nearly
  // no value is near enough to need its exact place, which is a division.
  uint64_t value = next_u64();
  while (value > UINT64_MAX - bound && value >= UINT64_MAX - UINT64_MAX % bound) {
    value = next_u64();
  }
  return value % bound;
}

Permutation::Permutation(RandomKey key, uint64_t size) : key_(key), size_(size), half_bits_(1) {
  check(size >= 1, "a permutation needs at least one element");
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < size) {
    ++half_bits_;
  }
}

uint64_t Permutation::operator()(uint64_t index) const {
  check(index < size_, "index {} is outside a permutation of {}", index, size_);
  uint64_t value = encrypt(index);
  while (value >= size_) {
    value = encrypt(value);
  }
  return value;
}

uint64_t Permutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < 6; ++round) {
    const uint64_t next = left ^ (philox(key_, right, round)[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace minillm
