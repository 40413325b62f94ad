#include "formats/llmc.h"

#include "core/error.h"
#include "core/text.h"

#include <array>
#include <optional>
#include <utility>

namespace minillm {

namespace {

constexpr size_t header_words = 256;
constexpr uint64_t llmc_header_bytes = header_words * sizeof(int32_t);
constexpr int32_t float32_version = 3;
constexpr int32_t bfloat16_version = 5;
constexpr double most_values = 1e18;  // of all layers: beyond any file; with the embeddings, bytes fit 64 bits

/// The header's numbers, all at least 1 once they are checked.
struct Sizes {
  int64_t max_seq_len = 0;
  int64_t vocab_size = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t channels = 0;
  int64_t padded_vocab_size = 0;
};

std::string to_string(const Sizes& sizes) {
  return fmt::format("{} layers of {} channels, {} heads, {} positions, a vocabulary of {} padded to {}",
                     sizes.n_layers, sizes.channels, sizes.n_heads, sizes.max_seq_len, sizes.vocab_size,
                     sizes.padded_vocab_size);
}

/// One kind of tensor in the file: `names` are the row ranges of a matrix or vector that have a name of their own here.
struct Kind {
  std::vector<std::string_view> names;  ///< behind "model.layers.N."
  int64_t rows;                         ///< of each name, in units of the channels
  int64_t columns;                      ///< the same; 0: a vector
};

/// What each layer has, in the file's order.
const std::vector<Kind>& kinds_of_a_layer() {
  static const std::vector<Kind> kinds = {
      {{"input_layernorm.weight"}, 1, 0},
      {{"input_layernorm.bias"}, 1, 0},
      {{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}, 1, 1},
      {{"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"}, 1, 0},
      {{"self_attn.o_proj.weight"}, 1, 1},
      {{"self_attn.o_proj.bias"}, 1, 0},
      {{"post_attention_layernorm.weight"}, 1, 0},
      {{"post_attention_layernorm.bias"}, 1, 0},
      {{"mlp.up_proj.weight"}, 4, 1},
      {{"mlp.up_proj.bias"}, 4, 0},
      {{"mlp.down_proj.weight"}, 1, 4},
      {{"mlp.down_proj.bias"}, 1, 0},
  };
  return kinds;
}

/// Tensors one behind the other.
class Walk {
 public:
  explicit Walk(bool is_bfloat16) : dtype_(is_bfloat16 ? "BF16" : "F32"), value_bytes_(is_bfloat16 ? 2 : 4) {}

  void add(std::string name, const Shape& shape) {
    const uint64_t end = at_ + static_cast<uint64_t>(shape.numel()) * value_bytes_;
    tensors_.push_back({std::move(name), dtype_, shape, at_, end});
    at_ = end;
  }
  void skip(int64_t values) { at_ += static_cast<uint64_t>(values) * value_bytes_; }

  uint64_t at() const { return at_; }
  std::vector<StoredTensor> take() { return std::move(tensors_); }

 private:
  std::string dtype_;
  uint64_t value_bytes_;
  uint64_t at_ = llmc_header_bytes;
  std::vector<StoredTensor> tensors_;
};

void walk_tensors(const Sizes& sizes, Walk& walk) {
  const int64_t C = sizes.channels;
  walk.add("model.embed_tokens.weight", {sizes.vocab_size, C});
  walk.skip((sizes.padded_vocab_size - sizes.vocab_size) * C);
  walk.add("model.embed_positions.weight", {sizes.max_seq_len, C});
  for (const Kind& kind : kinds_of_a_layer()) {
    const Shape shape = kind.columns == 0 ? Shape{kind.rows * C} : Shape{kind.rows * C, kind.columns * C};
    for (int64_t layer = 0; layer < sizes.n_layers; ++layer) {
      for (const std::string_view name : kind.names) {
        walk.add(fmt::format("model.layers.{}.{}", layer, name), shape);
      }
    }
  }
  walk.add("model.norm.weight", {C});
  walk.add("model.norm.bias", {C});
}

void check_version(int32_t version, const std::string& path) {
  if (version != float32_version && version != bfloat16_version) {
    fail_input({.where = path,
                .what = "is a checkpoint of llm.c of a version that is not read here",
                .found = fmt::format("version {}", version),
                .expected = fmt::format("{} (float32) or {} (bfloat16)", float32_version, bfloat16_version),
                .hint = "write it again with the train_gpt2.py of a current llm.c"});
  }
}

/// Sizes that no model has, before anything is computed from them.
void check_sizes(const Sizes& sizes, const std::string& path) {
  struct Least {
    const char* name;
    int64_t value;
    int64_t least;
  };
  const Least bounds[] = {
      {"max_seq_len", sizes.max_seq_len, 1}, {"vocab_size", sizes.vocab_size, 2},
      {"num_layers", sizes.n_layers, 1},     {"num_heads", sizes.n_heads, 1},
      {"channels", sizes.channels, 1},       {"padded_vocab_size", sizes.padded_vocab_size, sizes.vocab_size}};
  const auto refuse = [&](std::string what, int64_t found, std::string expected) {
    fail_input({.where = path,
                .what = "the header cannot be right: " + std::move(what),
                .found = std::to_string(found),
                .expected = std::move(expected),
                .hint = "it is damaged or of an early llm.c: write it again with the train_gpt2.py of a current one"});
  };
  for (const Least& bound : bounds) {
    if (bound.value < bound.least) {
      refuse(bound.name, bound.value, fmt::format("at least {}", bound.least));
    }
  }
  if (sizes.channels % sizes.n_heads != 0) {
    refuse("num_heads does not divide channels", sizes.n_heads, fmt::format("a divisor of {}", sizes.channels));
  }
}

/// The size of the file that such a header stands in. No value: beyond any file, where 64 bits might not do.
std::optional<uint64_t> bytes_of_file(const Sizes& sizes, bool is_bfloat16) {
  const int64_t C = sizes.channels;
  const int64_t layer = 12 * C + 13;  // values per channel
  const double layers = static_cast<double>(sizes.n_layers) * static_cast<double>(layer);
  if (static_cast<double>(C) * layers > most_values) {
    return std::nullopt;
  }
  const int64_t values = C * (sizes.padded_vocab_size + sizes.max_seq_len + sizes.n_layers * layer + 2);
  return llmc_header_bytes + static_cast<uint64_t>(values) * (is_bfloat16 ? 2 : 4);
}

/// Header and file must agree before a list of tensors is made.
void check_file_size(const Sizes& sizes, bool is_bfloat16, uint64_t file_bytes, const std::string& path) {
  const std::optional<uint64_t> expected = bytes_of_file(sizes, is_bfloat16);
  if (expected == file_bytes) {
    return;
  }
  const bool is_longer = expected && file_bytes > *expected;
  const std::string bytes = expected ? fmt::format("{} bytes", *expected) : "more than any file has";
  fail_input(
      {.where = path,
       .what = is_longer ? "the file is longer than its header says" : "the file is shorter than its header says",
       .found = fmt::format("{} bytes", file_bytes),
       .expected = fmt::format("{} for {}", bytes, to_string(sizes)),
       .hint = is_longer ? "it is damaged, or something was appended" : "it was cut or is damaged: copy it again"});
}

/// Models that could not be built, before a list of their tensors is made.
void check_can_be_built(const Sizes& sizes, const std::string& path) {
  const auto refuse_above = [&](const char* name, int64_t value, int64_t most) {
    if (value > most) {
      fail_input({.where = path,
                  .what = fmt::format("the model is larger than minillm's can be: {}", name),
                  .found = std::to_string(value),
                  .expected = fmt::format("at most {}", most)});
    }
  };
  refuse_above("num_layers", sizes.n_layers, most_layers);
  refuse_above("channels", sizes.channels, most_size / 4);  // the FFN is four times as wide
}

ModelConfig config_of(const Sizes& sizes) {
  ModelConfig config;
  config.vocab_size = sizes.vocab_size;
  config.d_model = sizes.channels;
  config.n_layers = sizes.n_layers;
  config.n_heads = sizes.n_heads;
  config.d_ff = 4 * sizes.channels;
  config.max_seq_len = sizes.max_seq_len;
  config.tie_embeddings = true;
  config.bias = true;
  config.position = "learned";
  config.norm = "layernorm";
  config.norm_eps = 1e-5;
  config.norm_position = "pre";
  config.ffn = "gelu_tanh";
  return config;
}

}  // namespace

ForeignModel open_llmc(const std::string& path) {
  FileDescriptor file = open_for_reading(path);
  const uint64_t file_bytes = file_size(file.get(), path);
  if (file_bytes < llmc_header_bytes) {
    fail_input({.where = path,
                .what = "the file ends inside the header of llm.c's checkpoints",
                .found = fmt::format("{} bytes", file_bytes),
                .expected = fmt::format("at least {}", llmc_header_bytes),
                .hint = "it was cut: copy it again"});
  }
  std::array<int32_t, header_words> header{};
  read_exactly(file.get(), header.data(), llmc_header_bytes, 0, path);
  const int32_t version = header[1];
  check_version(version, path);
  const bool is_bfloat16 = version == bfloat16_version;
  const Sizes sizes = {.max_seq_len = header[2],
                       .vocab_size = header[3],
                       .n_layers = header[4],
                       .n_heads = header[5],
                       .channels = header[6],
                       .padded_vocab_size = header[7]};
  check_sizes(sizes, path);
  check_file_size(sizes, is_bfloat16, file_bytes, path);
  check_can_be_built(sizes, path);
  Walk walk(is_bfloat16);
  walk_tensors(sizes, walk);
  check(walk.at() == file_bytes, "{}: the tensors end at byte {} of {}", path, walk.at(), file_bytes);
  const int64_t padding = sizes.padded_vocab_size - sizes.vocab_size;
  return {fmt::format("llm.c, GPT-2, version {} ({})", version, is_bfloat16 ? "bfloat16" : "float32"),
          config_of(sizes),
          {path, std::move(file), walk.take()},
          padding == 0 ? "" : fmt::format("{} rows of padding behind the vocabulary", thousands(padding))};
}

}  // namespace minillm
