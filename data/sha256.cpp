#include "data/sha256.h"

#include "core/error.h"
#include "data/file_descriptor.h"

#include <openssl/evp.h>

#include <array>
#include <vector>

namespace minillm {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

namespace {

void require(bool ok) {
  if (!ok) {
    fail_work({.what = "libcrypto cannot compute a SHA-256", .hint = "check the OpenSSL installation"});
  }
}

}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* bytes, size_t count) {
  require(EVP_DigestUpdate(state_->context, bytes, count) == 1);
}

void Sha256::update_to_end(int descriptor, const std::string& path) {
  std::vector<char> buffer(size_t{1} << 20);
  size_t count = buffer.size();
  while (count == buffer.size()) {
    count = read_fully(descriptor, buffer.data(), buffer.size(), path);
    update(buffer.data(), count);
  }
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

std::string sha256_of_file(const std::string& path) {
  Sha256 hash;
  hash.update_to_end(open_for_reading(path).get(), path);
  return hash.hex();
}

}  // namespace minillm
