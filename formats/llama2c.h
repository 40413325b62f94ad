#pragma once
// The models of llama2.c: model.bin, and tokenizer.bin beside it.
//
//   version 0  what run.c reads: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len as int32 (the
//              vocabulary negative where the head is a matrix of its own), then float32
//   version 1  magic "24ka" (0x616b3432), version, the same seven, a byte "the head is the embedding", zeros up to byte
//              256, then float32 in another order
//   version 2  what runq.c reads: the same with an int32 behind the byte, the size of groups; matrices are signed bytes
//              in groups, all of a matrix's bytes, then a float32 scale a group; norms are float32
//
// Little-endian, row-major, matrices [out, in]; rows of wq and wk in neighbouring rotary pairs. llama2.c fixes
// norm_eps = 1e-5 and rope_theta = 10000. Source: export.py, run.c and runq.c of llama2.c.

#include "formats/foreign_model.h"
#include "formats/model_export.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

inline constexpr double llama2c_eps = 1e-5;
inline constexpr double llama2c_theta = 10000;
inline constexpr std::string_view llama2c_model_name = "model.bin";
inline constexpr std::string_view llama2c_tokenizer_name = "tokenizer.bin";

/// The header's numbers.
struct Llama2cSizes {
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t vocab_size = 0;
  int64_t seq_len = 0;
  bool is_tied = true;
};

/// Tensors that follow each other in a file: one, or one a layer.
struct Llama2cPart {
  std::string_view name;  ///< behind "model.layers.N." when it is of layers; "": values that are no weights
  bool of_layers;
  int64_t rows;
  int64_t columns;  ///< 0: a vector
  int64_t rotary_heads;
};

/// The parts of a version in the file's order.
std::vector<Llama2cPart> llama2c_parts(const Llama2cSizes& sizes, int version);

/// Whether a file begins as one of llama2.c. Version 0 has no magic number: seven plausible sizes, of which heads
/// divide each other and the width.
bool is_llama2c_model(std::string_view first_bytes);

/// Opens a model of version 0, 1 or 2, and reads tokenizer.bin beside it when there is one. Sizes are claims: an input
/// Error says which cannot be, or that the file is shorter or longer than its header.
ForeignModel open_llama2c(const std::string& path);

/// The SentencePiece model of a tokenizer.bin for a vocabulary of this size; "" when it has no byte pieces. Throws an
/// input Error when it is cut, too long or for another size.
std::string read_llama2c_tokenizer(const std::string& path, int64_t vocab_size);

/// Writes a tokenizer.bin of `vocab_size` pieces; those beyond the tokenizer's are empty.
void write_llama2c_tokenizer(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& path);

ExportFormat llama2c_export();

}  // namespace minillm
