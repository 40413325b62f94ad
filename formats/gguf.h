#pragma once
// GGUF, the file of llama.cpp, architecture "llama": sizes, vocabulary and weights in one file.
//
//   header   "GGUF", version 3 as u32, numbers of tensors and of metadata as u64
//   metadata each: key, u32 type, value; a text is a u64 length and its bytes, a list a u32 type, a u64 count, values
//   tensors  each: name, u32 rank, extents as u64 (the innermost first), u32 type, u64 offset
//   values   from the next multiple of general.alignment (32) on, offsets counted from there
//
// Little-endian. Rows of attn_q and attn_k stand in neighbouring rotary pairs. Source: the GGUF page of ggml's
// documentation.

#include "formats/foreign_model.h"
#include "formats/foreign_name.h"
#include "formats/model_export.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace minillm {

inline constexpr std::string_view gguf_magic = "GGUF";
inline constexpr uint32_t gguf_alignment = 32;

/// Types of metadata.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

/// Metadata as one of few types here: whole numbers, numbers, texts and lists of them. A list of truth values or of
/// 64-bit numbers is passed over.
using GgufValue =
    std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<double>, std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> extents;  ///< as in the file: the innermost first
  uint32_t type = 0;
  uint64_t begin = 0;  ///< from the start of the file
  uint64_t end = 0;
};

struct GgufHeader {
  uint32_t version = 0;
  std::map<std::string, GgufValue> metadata;
  std::vector<GgufTensor> tensors;
};

/// Reads and checks a header: counts against the file's size before memory is taken, extents against overflow, types,
/// ranges inside the file that do not overlap, names once. Throws an input Error that names file and key or tensor.
GgufHeader read_gguf_header(int descriptor, uint64_t file_bytes, const std::string& path);

/// The word of formats/weight_file.h for a tensor's type that can be read, or "".
std::string_view gguf_dtype(uint32_t type);

/// What a weight of ours is called there.
ForeignName gguf_name(const ModelConfig& config, std::string_view ours);

bool is_gguf(std::string_view first_bytes);
ForeignModel open_gguf(const std::string& path);

ExportFormat gguf_export();

}  // namespace minillm
