#pragma once
// SHA-256 (FIPS 180-4), by libcrypto: fingerprints of tokenizers, data files and checkpoints.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace minillm {

/// A running hash: update with any number of pieces, then take the digest once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* bytes, size_t count);

  /// Everything from where an open file stands to its end; `path` is for messages. Throws a work Error when the disk
  /// fails.
  void update_to_end(int descriptor, const std::string& path);

  /// 64 lower-case hexadecimal digits. The hash cannot be used afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

/// Of a file's bytes.
std::string sha256_of_file(const std::string& path);

}  // namespace minillm
