#include "data/user_block.h"

#include "core/error.h"
#include "core/utf8.h"
#include "data/file_descriptor.h"
#include "data/sha256.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace minillm {

namespace {

constexpr std::string_view magic = "minillm-file\n";
constexpr size_t bytes_digits = 20;

/// Takes "<key> <value>\n" from the front of `text`; false when it is not there.
bool take_line(std::string_view& text, std::string_view key, std::string_view& value) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || text.substr(0, key.size()) != key || text.size() <= key.size() ||
      text[key.size()] != ' ') {
    return false;
  }
  value = text.substr(key.size() + 1, end - key.size() - 1);
  text.remove_prefix(end + 1);
  return true;
}

template <class T>
bool parse_number(std::string_view digits, T& number) {
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
}

/// The length stands first, so that a file cut inside its block can still say how long it should be.
bool parse_length(std::string_view& text, uint64_t& file_bytes) {
  std::string_view value;
  return take_line(text, "bytes", value) && value.size() == bytes_digits && parse_number(value, file_bytes);
}

bool parse_rest(std::string_view text, UserBlock& block) {
  std::string_view value;
  if (!take_line(text, "format", value)) {
    return false;
  }
  const size_t space = value.rfind(' ');
  if (space == std::string_view::npos || !parse_number(value.substr(space + 1), block.version)) {
    return false;
  }
  block.format = value.substr(0, space);
  if (!take_line(text, "sha256", value) || value.size() != 64) {
    return false;
  }
  block.sha256 = value;
  return true;
}

[[noreturn]] void refuse(const std::string& what, const H5Format& format) {
  fail_input({.what = what, .hint = format.remedy});
}

/// UTF-8 without control characters; a character that the last three bytes cut is forgiven.
bool looks_like_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const unsigned char byte = static_cast<unsigned char>(bytes.front());
    const bool control = byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f';
    const size_t character = utf8_character(bytes);
    if (control || byte == 0x7f || (character == 0 && bytes.size() > 3)) {
      return false;
    }
    bytes.remove_prefix(std::max<size_t>(character, 1));
  }
  return true;
}

bool looks_like_safetensors(const std::string& bytes, uint64_t file_bytes) {
  if (bytes.size() < 9 || bytes[8] != '{') {
    return false;
  }
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header >= 2 && header <= file_bytes - 8;
}

/// The binary files of llm.c begin with an int32 that looks like a date; "" for any other start.
std::string_view llmc_kind(const std::string& bytes) {
  struct Known {
    int32_t magic;
    std::string_view kind;
  };
  static constexpr Known known[] = {
      {20240326, llmc_model_kind},  {20240327, "a debug state of llm.c"},     {20240328, "a tokenizer of llm.c"},
      {20240520, llmc_tokens_kind}, {20240522, "an evaluation set of llm.c"}, {20240527, "an optimizer state of llm.c"},
      {20240801, llmc_tokens_kind}, {20240803, "a Llama 3 model of llm.c"},
  };
  int32_t first = 0;
  std::memcpy(&first, bytes.data(), std::min(bytes.size(), sizeof first));
  for (const Known& entry : known) {
    if (entry.magic == first) {
      return entry.kind;
    }
  }
  return "";
}

}  // namespace

std::string to_text(const UserBlock& block) {
  std::string text = fmt::format("{}bytes {:0{}}\nformat {} {}\nsha256 {}\n", magic, block.file_bytes, bytes_digits,
                                 block.format, block.version, block.sha256);
  check(text.size() < UserBlock::size, "the format name '{}' is too long for a file's header", block.format);
  text.resize(UserBlock::size - 1, ' ');
  return text + '\n';
}

std::string guess_file_kind(const std::string& first_bytes, uint64_t file_bytes) {
  struct Known {
    std::string_view start;
    const char* kind;
  };
  static constexpr Known known[] = {{magic, "a minillm file"},
                                    {std::string_view("\x89HDF\r\n\x1a\n", 8), "plain HDF5"},
                                    {std::string_view("PK\x03\x04", 4), "a zip archive (or a PyTorch checkpoint)"},
                                    {std::string_view("\x1f\x8b", 2), "a gzip archive"},
                                    {std::string_view("\x93NUMPY", 6), "a NumPy array"},
                                    {std::string_view("GGUF", 4), "GGUF"},
                                    {std::string_view("24ka", 4), "a model of llama2.c"},
                                    {std::string_view("%PDF", 4), "PDF"},
                                    {std::string_view("\xff\xfe", 2), "UTF-16 text"},
                                    {std::string_view("\xfe\xff", 2), "UTF-16 text"},
                                    {std::string_view("\x28\xb5\x2f\xfd", 4), "a zstd archive"},
                                    {std::string_view("\x7f"
                                                      "ELF",
                                                      4),
                                     "a program"}};
  if (first_bytes.empty()) {
    return "an empty file";
  }
  for (const Known& entry : known) {
    if (std::string_view(first_bytes).substr(0, entry.start.size()) == entry.start) {
      return entry.kind;
    }
  }
  if (const std::string_view kind = llmc_kind(first_bytes); !kind.empty()) {
    return std::string(kind);
  }
  if (looks_like_safetensors(first_bytes, file_bytes)) {
    return "safetensors";
  }
  return looks_like_text(first_bytes) ? "text" : "unknown binary data";
}

std::string format_of(std::string_view first_bytes) {
  if (!first_bytes.starts_with(magic)) {
    return "";
  }
  first_bytes.remove_prefix(magic.size());
  std::string_view bytes;
  std::string_view format;
  if (!take_line(first_bytes, "bytes", bytes) || !take_line(first_bytes, "format", format)) {
    return "";
  }
  return std::string(format.substr(0, format.rfind(' ')));
}

std::string hash_behind_user_block(int descriptor, const std::string& path) {
  if (lseek(descriptor, static_cast<off_t>(UserBlock::size), SEEK_SET) < 0) {
    fail_work({.where = path, .what = "cannot be read: " + system_error_text(errno)});
  }
  Sha256 hash;
  hash.update_to_end(descriptor, path);
  return hash.hex();
}

UserBlock check_user_block(const FileDescriptor& file, const std::string& path, const H5Format& format) {
  const uint64_t actual = file_size(file.get(), path);
  std::string start(UserBlock::size, '\0');
  start.resize(read_fully(file.get(), start.data(), start.size(), path));
  if (std::string_view(start).substr(0, magic.size()) != magic.substr(0, start.size()) || start.empty()) {
    fail_input({.what = fmt::format("{} is not a minillm file: looks like {}", path, guess_file_kind(start, actual)),
                .hint = fmt::format("a file of kind {} is needed", format.name)});
  }
  std::string_view text(start);
  text.remove_prefix(std::min(magic.size(), text.size()));
  UserBlock block;
  if (!parse_length(text, block.file_bytes)) {
    refuse(actual < UserBlock::size
               ? fmt::format("{} is incomplete: {} bytes, less than its {}-byte header", path, actual, UserBlock::size)
               : fmt::format("{} was damaged: its header cannot be read", path),
           format);
  }
  if (actual < block.file_bytes) {
    refuse(fmt::format("{} is incomplete: {} of {} bytes", path, actual, block.file_bytes), format);
  }
  if (actual > block.file_bytes) {
    refuse(fmt::format("{} was damaged: it has {} bytes, {} were written", path, actual, block.file_bytes), format);
  }
  if (!parse_rest(text, block) || block.version < 1) {
    refuse(fmt::format("{} was damaged: its header cannot be read", path), format);
  }
  if (block.format != format.name) {
    fail_input({.what = fmt::format("{} is a {} file, a {} file is needed", path, block.format, format.name)});
  }
  if (block.version > format.version) {
    fail_input({.what = fmt::format("{} was written by a newer version of minillm", path),
                .found = fmt::format("{} version {}", block.format, block.version),
                .expected = fmt::format("at most version {}", format.version),
                .hint = "update minillm"});
  }
  if (to_text(block) != start || hash_behind_user_block(file.get(), path) != block.sha256) {
    refuse(fmt::format("{} was damaged: checksum differs", path), format);
  }
  return block;
}

}  // namespace minillm
