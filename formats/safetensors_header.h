#pragma once
// The JSON header of a safetensors file as text, apart from any file: what a fuzzer feeds.

#include "formats/safetensors.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Largest header accepted: 100 MB, the limit of the format's own library.
constexpr uint64_t max_safetensors_header = 100'000'000;

/// For a file of which only the header matters: its values may be missing.
constexpr uint64_t any_file_bytes = UINT64_MAX;

/// Reads and checks a header whose data section begins at `data_start` of a file of `file_bytes`. `path` is for errors.
/// Returns the tensors in order of their values.
std::vector<StoredTensor> parse_safetensors_header(std::string_view header, uint64_t data_start, uint64_t file_bytes,
                                                   const std::string& path);

/// The header for tensors whose ranges are set (from 0), padded with spaces to a multiple of 8 bytes.
std::string make_safetensors_header(const std::vector<StoredTensor>& tensors,
                                    const std::map<std::string, std::string>& metadata, const std::string& path);

}  // namespace minillm
