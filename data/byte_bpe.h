#pragma once
// Byte-level BPE: the tokenizer of GPT-2 (Radford et al. 2019) and of those made like it. A regular expression cuts the
// text into words; of each word's bytes, neighbours are joined in the order in which the training joined them.
//
// Its files write each byte as a character that can be seen: bytes 33..126, 161..172 and 174..255 as the character of
// that number, the 68 others, in turn, as those from 256 on ("Ġ" is a blank).

#include "data/tokenizer.h"

#include <memory>
#include <string>
#include <string_view>

namespace minillm {

/// Whether `serialized` looks like a tokenizer.json: JSON's first brace.
bool is_byte_bpe(std::string_view serialized);

/// Reads a tokenizer.json of Hugging Face whose model is byte-level BPE without normalisation. Text that is not UTF-8
/// is cut at each byte that is not, and these are tokens by themselves. Special tokens are found by name: `<s>` is
/// bos_token, `</s>` eos_token, or `<|endoftext|>` for both. Throws an input Error that names `name` and what does not
/// fit: no JSON, another model, a normaliser, a byte without a token, a merge of unknown tokens.
std::unique_ptr<Tokenizer> load_byte_bpe(const std::string& serialized, const std::string& name);

/// The tokenizer.json for GPT-2's two files: vocab.json ({"token": id}) and merges.txt (two tokens a line). Throws an
/// input Error that names the file and the line.
std::string tokenizer_json_of(const std::string& vocab_path, const std::string& merges_path);

}  // namespace minillm
