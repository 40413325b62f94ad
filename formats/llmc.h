#pragma once
// The GPT-2 checkpoints of llm.c (gpt2_124M.bin): a header of 256 int32, then 16 kinds of tensors without names.
//
//   header  magic 20240326, version (3: float32, 5: bfloat16), max_seq_len T, vocab_size V, num_layers L, num_heads,
//           channels C, padded vocabulary P >= V, zeros
//   values  wte [P, C], wpe [T, C]; then each kind over all layers: ln1 weight, bias [C], qkv weight [3C, C], its
//           bias [3C], attention's projection weight [C, C], bias [C], ln2 weight, bias [C], FFN weight [4C, C], its
//           bias [4C], the FFN's projection weight [C, 4C], bias [C]; then the last norm's weight, bias [C]
//
// Little-endian, row-major, matrices [out, in]. Rows V to P of wte are padding, which llm.c's softmax leaves out. The
// head is wte. Source: train_gpt2.py and train_gpt2.c of llm.c.

#include "formats/foreign_model.h"

#include <string>

namespace minillm {

/// Opens a checkpoint of version 3 or 5. Every size in the header is taken as a claim: an input Error says which cannot
/// be, or that the file is shorter or longer than its header. The padding is no part of the weights.
ForeignModel open_llmc(const std::string& path);

}  // namespace minillm
