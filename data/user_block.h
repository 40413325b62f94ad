#pragma once
// The first 512 bytes of every HDF5 file we write, readable with `head -c 512`:
//
//   minillm-file
//   bytes 00000000000004711304            the whole file's size
//   format minillm-tokens 1               name and version
//   sha256 64 hexadecimal digits          of everything behind this block
//
// then blanks and a newline. It is checked before libhdf5 reads a byte: a cut or damaged file ends in one clear
// message.

#include "data/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace minillm {

/// What a reader needs and a writer makes: "minillm-tokens", the newest version known, and what helps when a file of
/// this kind is damaged ("run minillm prepare again").
struct H5Format {
  std::string name;
  int version = 1;
  std::string remedy;
};

struct UserBlock {
  static constexpr size_t size = 512;

  std::string format;
  int version = 0;
  uint64_t file_bytes = 0;
  std::string sha256;
};

/// Exactly UserBlock::size bytes. Throws when the format's name does not fit.
std::string to_text(const UserBlock& block);

/// The SHA-256 of the bytes of an open file from UserBlock::size to its end; throws a work Error when reading fails.
std::string hash_behind_user_block(int descriptor, const std::string& path);

/// Reads the block of a file that was opened from `path` and compares it with the file: kind, version, length,
/// checksum. Throws an input Error that says which of these is wrong: not ours (and what it looks like), incomplete,
/// damaged, newer. All is read through the descriptor: a file that is replaced meanwhile stays the old one.
UserBlock check_user_block(const FileDescriptor& file, const std::string& path, const H5Format& format);

/// What a file seems to be, from its first bytes: "a minillm file", "text", "safetensors", "plain HDF5", "PDF", ...;
/// "unknown binary data" when it is none of these. The files of llm.c end in llmc_kinds.
std::string guess_file_kind(const std::string& first_bytes, uint64_t file_bytes);

/// The name of a minillm file's format, "minillm-tokens", from its first bytes; "" when they do not tell, or are no
/// minillm file's. Nothing is checked against the file.
std::string format_of(std::string_view first_bytes);

inline constexpr std::string_view llmc_kinds = " of llm.c";
inline constexpr std::string_view llmc_model_kind = "a GPT-2 model of llm.c";
inline constexpr std::string_view llmc_tokens_kind = "a token file of llm.c";

}  // namespace minillm
