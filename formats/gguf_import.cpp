#include "core/error.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "formats/gguf.h"
#include "formats/sentencepiece_model.h"
#include "nn/transformer.h"

#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace minillm {

namespace {

struct GgufName {
  std::string_view ours;
  std::string_view theirs;
};

constexpr std::array<GgufName, 12> gguf_names = {{
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
}};

/// A header's values by name, each checked.
class Values {
 public:
  Values(const GgufHeader& header, const std::string& path) : header_(header), path_(path) {}

  int64_t count(const std::string& key) const {
    if (header_.metadata.count(key) == 0) {
      fail_input({.where = path_ + ": " + key, .what = "is missing", .expected = "a whole number from 1"});
    }
    return count_or(key, 0);
  }

  int64_t count_or(const std::string& key, int64_t fallback) const {
    const auto found = header_.metadata.find(key);
    if (found == header_.metadata.end()) {
      return fallback;
    }
    const int64_t* value = std::get_if<int64_t>(&found->second);
    if (value == nullptr || *value < 1 || *value > most_size) {
      fail_input({.where = path_ + ": " + key,
                  .what = "is no count",
                  .found = value == nullptr ? "another type" : std::to_string(*value),
                  .expected = fmt::format("a whole number in [1, {}]", most_size)});
    }
    return *value;
  }

  /// The shortest decimal that is this float32: 1e-5 and not 9.9999997e-06.
  double number_or(const std::string& key, double fallback) const {
    const auto found = header_.metadata.find(key);
    if (found == header_.metadata.end()) {
      return fallback;
    }
    const double* value = std::get_if<double>(&found->second);
    if (value == nullptr || !std::isfinite(*value)) {
      fail_input({.where = path_ + ": " + key, .what = "is no number"});
    }
    const float narrow = static_cast<float>(*value);
    return static_cast<double>(narrow) == *value ? std::stod(fmt::format("{}", narrow)) : *value;
  }

  std::string text_or(const std::string& key, const std::string& fallback) const {
    const auto found = header_.metadata.find(key);
    const std::string* value = found == header_.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value == nullptr ? fallback : *value;
  }

  template <class T>
  const std::vector<T>* list(const std::string& key) const {
    const auto found = header_.metadata.find(key);
    return found == header_.metadata.end() ? nullptr : std::get_if<std::vector<T>>(&found->second);
  }

  bool has(const std::string& key) const { return header_.metadata.count(key) > 0; }

 private:
  const GgufHeader& header_;
  const std::string& path_;
};

bool has_tensor(const GgufHeader& header, std::string_view name) {
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.name == name) {
      return true;
    }
  }
  return false;
}

/// Extents in our order.
Shape shape_of(const GgufTensor& tensor) {
  Shape shape;
  for (size_t i = tensor.extents.size(); i > 0; --i) {
    shape.push_back(static_cast<int64_t>(tensor.extents[i - 1]));
  }
  return shape;
}

ModelConfig config_of(const GgufHeader& header, const Values& values, const std::string& path) {
  if (const std::string scaling = values.text_or("llama.rope.scaling.type", "none"); scaling != "none") {
    fail_input({.where = path + ": llama.rope.scaling.type",
                .what = "scaled rotary positions are no part of minillm",
                .found = printable(scaling),
                .expected = "none"});
  }
  if (values.has("llama.expert_count")) {
    fail_input({.where = path + ": llama.expert_count", .what = "a mixture of experts is not read from GGUF"});
  }
  ModelConfig config;
  config.d_model = values.count("llama.embedding_length");
  config.n_layers = values.count("llama.block_count");
  config.n_heads = values.count("llama.attention.head_count");
  config.n_kv_heads = values.count_or("llama.attention.head_count_kv", config.n_heads);
  config.head_dim = values.count_or("llama.attention.key_length", 0);
  config.d_ff = values.count("llama.feed_forward_length");
  config.max_seq_len = values.count("llama.context_length");
  config.norm_eps = values.number_or("llama.attention.layer_norm_rms_epsilon", 1e-5);
  config.rope_theta = values.number_or("llama.rope.freq_base", 10000);
  config.tie_embeddings = !has_tensor(header, "output.weight");
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.name == "token_embd.weight") {
      config.vocab_size = shape_of(tensor)[0];
    }
  }
  derive(config, 0, 0);
  if (values.count_or("llama.rope.dimension_count", config.head_dim) != config.head_dim) {
    fail_input({.where = path + ": llama.rope.dimension_count",
                .what = "positions turn a part of each head alone, which is not read from GGUF",
                .expected = std::to_string(config.head_dim)});
  }
  return config;
}

std::vector<StoredTensor> tensors_of(const GgufHeader& header, const ModelConfig& config, std::string& dropped) {
  std::map<std::string, const GgufTensor*> by_name;
  for (const GgufTensor& tensor : header.tensors) {
    by_name[tensor.name] = &tensor;
  }
  std::vector<StoredTensor> tensors;
  const auto add = [&](std::string name, const GgufTensor& tensor, const WeightLayout& layout) {
    tensors.push_back(
        {std::move(name), std::string(gguf_dtype(tensor.type)), shape_of(tensor), tensor.begin, tensor.end, layout});
  };
  const Transformer model(config);  // names, no memory
  for (const std::string_view ours : model.parameters().names()) {
    ForeignName there = gguf_name(config, ours);
    if (const auto found = by_name.find(there.name); found != by_name.end()) {
      const GgufTensor& tensor = *found->second;
      const bool is_matrix = tensor.extents.size() == 2;
      const bool whole_heads = is_matrix && there.layout.rotary_heads > 0 &&
                               tensor.extents[1] % static_cast<uint64_t>(2 * there.layout.rotary_heads) == 0;
      add(std::string(ours), tensor, whole_heads ? there.layout : WeightLayout{});  // another shape: load_into tells
      by_name.erase(found);
    }
  }
  if (by_name.erase("rope_freqs.weight") > 0) {
    dropped = "rope_freqs.weight";
  }
  for (const auto& [name, tensor] : by_name) {
    add(name, *tensor, {});  // load_into tells that it is not expected
  }
  return tensors;
}

/// "" with a reason in `dropped` where the file's vocabulary is none that can be used here.
std::string tokenizer_of(const Values& values, int64_t vocab_size, const std::string& path, std::string& dropped) {
  const std::string kind = values.text_or("tokenizer.ggml.model", "none");
  const auto* tokens = values.list<std::string>("tokenizer.ggml.tokens");
  const auto* scores = values.list<double>("tokenizer.ggml.scores");
  const auto* types = values.list<double>("tokenizer.ggml.token_type");
  if (kind != "llama" || tokens == nullptr || scores == nullptr || types == nullptr) {
    dropped += tokens == nullptr ? ""
                                 : fmt::format("{}the vocabulary, which is no SentencePiece one ({})",
                                               dropped.empty() ? "" : ", ", printable(kind));
    return "";
  }
  const size_t count = tokens->size();
  if (static_cast<int64_t>(count) != vocab_size || scores->size() != count || types->size() != count) {
    fail_input({.where = path + ": tokenizer.ggml",
                .what = "tokens, scores and types are not as many as the embedding's rows",
                .found = fmt::format("{}, {} and {}", count, scores->size(), types->size()),
                .expected = std::to_string(vocab_size)});
  }
  std::vector<Piece> pieces;
  for (size_t id = 0; id < count; ++id) {
    pieces.push_back({(*tokens)[id], static_cast<float>((*scores)[id]), kind_of(static_cast<int32_t>((*types)[id]))});
  }
  while (!pieces.empty() && pieces.back().kind == PieceKind::unused && pieces.back().name.starts_with("<unused_")) {
    pieces.pop_back();  // ids that stand for nothing
  }
  if (!has_all_bytes(pieces)) {
    dropped += std::string(dropped.empty() ? "" : ", ") + "the vocabulary, which has no pieces for bytes";
    return "";
  }
  std::string model = make_sentencepiece_model(pieces);
  load_tokenizer(model, path);  // throws what is wrong with it
  return model;
}

}  // namespace

ForeignName gguf_name(const ModelConfig& config, std::string_view ours) {
  const NameInLayer where = split_layer(ours);
  const size_t dot = where.part.rfind('.');
  ForeignName name = {std::string(where.part)};
  for (const GgufName& row : gguf_names) {
    if (row.ours == where.part.substr(0, dot)) {
      name.name = std::string(row.theirs) + std::string(where.part.substr(dot));
    }
  }
  name.name = where.layer.empty() ? name.name : fmt::format("blk.{}.{}", where.layer, name.name);
  name.layout.rotary_heads = where.part == "self_attn.q_proj.weight"   ? config.n_heads
                             : where.part == "self_attn.k_proj.weight" ? config.n_kv_heads
                                                                       : 0;
  return name;
}

bool is_gguf(std::string_view first_bytes) {
  return first_bytes.starts_with(gguf_magic);
}

ForeignModel open_gguf(const std::string& path) {
  FileDescriptor file = open_for_reading(path);
  const GgufHeader header = read_gguf_header(file.get(), file_size(file.get(), path), path);
  const Values values(header, path);
  const std::string architecture = values.text_or("general.architecture", "");
  if (architecture != "llama") {
    fail_input({.where = path + ": general.architecture",
                .what = "models of this architecture are not imported",
                .found = printable(architecture),
                .expected = "llama"});
  }
  const ModelConfig config = config_of(header, values, path);
  std::string dropped;
  std::vector<StoredTensor> tensors = tensors_of(header, config, dropped);
  std::set<std::string> kinds;
  for (const StoredTensor& tensor : tensors) {
    kinds.insert(tensor.dtype);
  }
  ForeignModel model = {fmt::format("GGUF version {}, llama ({})", header.version, join({kinds.begin(), kinds.end()})),
                        config,
                        {path, std::move(file), std::move(tensors)},
                        ""};
  model.tokenizer = tokenizer_of(values, config.vocab_size, path, dropped);
  model.dropped = dropped;
  return model;
}

}  // namespace minillm
