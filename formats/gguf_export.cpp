#include "core/atomic_file.h"
#include "formats/architecture.h"
#include "formats/gguf.h"
#include "formats/sentencepiece_model.h"

#include <cstring>

namespace minillm {

namespace {

std::vector<std::string> gguf_obstacles(const ModelToExport& source) {
  const ModelConfig& config = source.model.config();
  ModelConfig fixed = as_llama_kind(config);
  fixed.bias = false;
  fixed.qk_norm = false;
  return differences(config, fixed);
}

/// The header's bytes.
class HeaderText {
 public:
  template <class T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(uint64_t{value.size()});
    bytes_ += value;
  }
  void pad() { bytes_.resize((bytes_.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment, '\0'); }
  void append(const std::string& bytes) { bytes_ += bytes; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Metadata one behind the other, counted.
class Metadata {
 public:
  void add(std::string_view key, std::string_view value) {
    start(key, GgufType::text);
    out_.text(value);
  }
  void add_count(std::string_view key, int64_t value) {
    start(key, GgufType::u32);
    out_.number(static_cast<uint32_t>(value));
  }
  void add_number(std::string_view key, double value) {
    start(key, GgufType::f32);
    out_.number(static_cast<float>(value));
  }
  void add_flag(std::string_view key, bool value) {
    start(key, GgufType::boolean);
    out_.number(static_cast<uint8_t>(value));
  }
  void start_list(std::string_view key, GgufType type, uint64_t count) {
    start(key, GgufType::list);
    out_.number(static_cast<uint32_t>(type));
    out_.number(count);
  }
  HeaderText& values() { return out_; }
  uint64_t count() const { return count_; }

 private:
  void start(std::string_view key, GgufType type) {
    out_.text(key);
    out_.number(static_cast<uint32_t>(type));
    ++count_;
  }

  HeaderText out_;
  uint64_t count_ = 0;
};

void add_sizes(Metadata& metadata, const ModelConfig& config) {
  metadata.add_count("llama.vocab_size", config.vocab_size);
  metadata.add_count("llama.context_length", config.max_seq_len);
  metadata.add_count("llama.embedding_length", config.d_model);
  metadata.add_count("llama.block_count", config.n_layers);
  metadata.add_count("llama.feed_forward_length", config.d_ff);
  metadata.add_count("llama.attention.head_count", config.n_heads);
  metadata.add_count("llama.attention.head_count_kv", config.n_kv_heads);
  metadata.add_count("llama.attention.key_length", config.head_dim);
  metadata.add_count("llama.attention.value_length", config.head_dim);
  metadata.add_number("llama.attention.layer_norm_rms_epsilon", config.norm_eps);
  metadata.add_count("llama.rope.dimension_count", config.head_dim);
  metadata.add_number("llama.rope.freq_base", config.rope_theta);
}

void add_vocabulary(Metadata& metadata, const Tokenizer& tokenizer, int64_t vocab_size) {
  const std::vector<Piece> pieces = pieces_of(tokenizer, vocab_size);
  metadata.add("tokenizer.ggml.model", "llama");  // SentencePiece BPE with byte pieces
  metadata.start_list("tokenizer.ggml.tokens", GgufType::text, pieces.size());
  for (const Piece& piece : pieces) {
    metadata.values().text(piece.kind == PieceKind::normal ? blanks_to_marks(piece.name) : piece.name);
  }
  metadata.start_list("tokenizer.ggml.scores", GgufType::f32, pieces.size());
  for (const Piece& piece : pieces) {
    metadata.values().number(piece.score);
  }
  metadata.start_list("tokenizer.ggml.token_type", GgufType::i32, pieces.size());
  for (const Piece& piece : pieces) {
    metadata.values().number(number_of(piece.kind));
  }
  metadata.add_count("tokenizer.ggml.bos_token_id", tokenizer.bos_id());
  metadata.add_count("tokenizer.ggml.eos_token_id", tokenizer.eos_id());
  metadata.add_count("tokenizer.ggml.unknown_token_id", tokenizer.unk_id());
  metadata.add_flag("tokenizer.ggml.add_bos_token", true);
  metadata.add_flag("tokenizer.ggml.add_eos_token", false);
  metadata.add_flag("tokenizer.ggml.add_space_prefix", false);
}

Metadata metadata_of(const ModelToExport& source) {
  Metadata metadata;
  metadata.add("general.architecture", "llama");
  metadata.add("general.name", source.name);
  metadata.add_count("general.alignment", gguf_alignment);
  metadata.add_count("general.file_type", source.weights.gguf_file_type);
  add_sizes(metadata, source.model.config());
  if (source.tokenizer != nullptr && source.tokenizer->tokenizer_kind() != TokenizerKind::byte_bpe) {
    add_vocabulary(metadata, *source.tokenizer, source.model.config().vocab_size);
  } else {
    metadata.add("tokenizer.ggml.model", "none");
  }
  return metadata;
}

std::string write_gguf(const ModelToExport& source, const std::string& path) {
  const std::vector<NamedTensor> tensors = source.model.parameters().named_tensors();
  const WeightsByName weights(source.model);
  Metadata metadata = metadata_of(source);
  HeaderText header;
  header.append(std::string(gguf_magic));
  header.number(uint32_t{3});
  header.number(uint64_t{tensors.size()});
  header.number(metadata.count());
  header.append(metadata.values().bytes());
  uint64_t offset = 0;
  const auto type_of = [&](const NamedTensor& tensor) -> const WeightType& {
    return tensor.value.shape.rank() > 1 ? source.weights : weight_type("f32");
  };
  const auto bytes_of = [&](const NamedTensor& tensor) {
    const WeightType& type = type_of(tensor);
    return static_cast<uint64_t>(tensor.value.numel() / type.block) * type.block_bytes;
  };
  const auto padded = [](uint64_t bytes) { return (bytes + gguf_alignment - 1) / gguf_alignment * gguf_alignment; };
  for (const NamedTensor& tensor : tensors) {
    const Shape& shape = tensor.value.shape;
    header.text(gguf_name(source.model.config(), tensor.name).name);
    header.number(static_cast<uint32_t>(shape.rank()));
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      header.number(static_cast<uint64_t>(shape[axis]));
    }
    header.number(type_of(tensor).gguf_type);
    header.number(offset);
    offset = padded(offset + bytes_of(tensor));
  }
  header.pad();
  AtomicFile file(path);
  file.write(header.bytes());
  for (const NamedTensor& tensor : tensors) {
    const std::vector<float> values = weights.values(tensor.name, gguf_name(source.model.config(), tensor.name).layout);
    const std::string bytes = type_of(tensor).encode(values);
    check(bytes.size() == bytes_of(tensor), "{} takes {} bytes, not {}", tensor.name, bytes.size(), bytes_of(tensor));
    file.write(bytes);
    file.write(std::string(padded(bytes.size()) - bytes.size(), '\0'));
  }
  file.commit();
  if (source.tokenizer == nullptr) {
    return "the vocabulary: the run has no tokenizer";
  }
  return source.tokenizer->tokenizer_kind() == TokenizerKind::byte_bpe
             ? "the vocabulary: only SentencePiece's is written, and the run's tokenizer is byte-level BPE"
             : "";
}

}  // namespace

ExportFormat gguf_export() {
  return {.name = "gguf",
          .is_folder = false,
          .fixed_eps = {},
          .all_weight_types = true,
          .obstacles = gguf_obstacles,
          .write = write_gguf};
}

}  // namespace minillm
