#include "nn/residual.h"

#include "nn/part_table.h"

namespace minillm {

namespace {

/// The connection of NormPosition's formulas. Without the addition ("none") `x +` is dropped and nothing else changes.
class PlainResidual final : public Residual {
 public:
  PlainResidual(const ModelConfig& config, const Scope& scope, bool adds)
      : Residual(scope), position_(norm_position_of(config)), adds_(adds), dropout_(config.dropout) {}

  void forward(Stream& stream, const Norm& norm, const Sublayer& sublayer) const override {
    Var& x = stream.x;
    if (position_ == NormPosition::post) {
      x = norm.forward(join(x, dropout(checked_forward(sublayer, x), dropout_, sublayer.path())));
    } else {
      x = join(x, run_sublayer(x, norm, sublayer, position_, dropout_));
    }
  }

 private:
  Var join(Var x, Var write) const {
    const auto scope = x.tape().enter(path());
    return adds_ ? add(x, write) : write;
  }

  NormPosition position_;
  bool adds_;
  double dropout_;
};

std::unique_ptr<Residual> make_plain(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<PlainResidual>(config, scope, true);
}

std::unique_ptr<Residual> make_none(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<PlainResidual>(config, scope, false);
}

std::unique_ptr<StreamEnds> make_plain_ends(const ModelConfig&, const Scope& scope) {
  return std::make_unique<StreamEnds>(scope);
}

constexpr NormPositionKind norm_positions[] = {
    {"pre", NormPosition::pre},
    {"post", NormPosition::post},
    {"sublayer_output", NormPosition::sublayer_output},
};

}  // namespace

// In files of their own: nn/mhc.cpp, nn/gated_residual.cpp, nn/attention_residual.cpp.
std::unique_ptr<Residual> make_mhc(const ModelConfig& config, const Scope& scope);
std::unique_ptr<StreamEnds> make_mhc_ends(const ModelConfig& config, const Scope& scope);
std::unique_ptr<Residual> make_gated_residual(const ModelConfig& config, const Scope& scope);
std::unique_ptr<StreamEnds> make_gated_ends(const ModelConfig& config, const Scope& scope);
std::unique_ptr<Residual> make_attention_residual(const ModelConfig& config, const Scope& scope);
std::unique_ptr<StreamEnds> make_attention_ends(const ModelConfig& config, const Scope& scope);

namespace {

constexpr ResidualKind residual_table[] = {
    {.name = "plain",
     .make = make_plain,
     .make_ends = make_plain_ends,
     .has_post = true,
     .join = "add",
     .write = "an addition: x + what the sublayer wrote"},
    {.name = "none",
     .make = make_none,
     .make_ends = make_plain_ends,
     .has_post = true,
     .join = "no add",
     .write = "the sublayer's output replaces the stream"},
    {.name = "mhc",
     .make = make_mhc,
     .make_ends = make_mhc_ends,
     .widens = true,
     .read = "weights for reading, mixing and writing, and the streams' weighted sum",
     .join = "write",
     .write = "the streams are mixed; each gets its share of what the sublayer wrote"},
    {.name = "gated",
     .make = make_gated_residual,
     .make_ends = make_gated_ends,
     .widens = true,
     .normalises = true,
     .read = "the mean of the streams, normalised, each channel gated",
     .join = "write",
     .write = "an addition to each stream, by its gate",
     .write_scope = "inject_proj."},
    {.name = "attnres",
     .make = make_attention_residual,
     .make_ends = make_attention_ends,
     .read = "attention over what the embedding and the sublayers before wrote",
     .join = "keep",
     .write = "what the sublayer wrote, or its block's sum, is kept for those behind"},
};

}  // namespace

std::span<const NormPositionKind> norm_position_kinds() {
  return norm_positions;
}

std::span<const ResidualKind> residual_kinds() {
  return residual_table;
}

const ResidualKind& residual_kind_of(const ModelConfig& config) {
  return get_part(residual_kinds(), "model.residual", config.residual);
}

NormPosition norm_position_of(const ModelConfig& config) {
  return get_part(norm_position_kinds(), "model.norm_position", config.norm_position).position;
}

std::unique_ptr<Residual> make_residual(const ModelConfig& config, const Scope& scope) {
  return residual_kind_of(config).make(config, scope);
}

int64_t stream_count(const ModelConfig& config) {
  return residual_kind_of(config).widens ? config.residual_streams : 1;
}

std::unique_ptr<StreamEnds> make_stream_ends(const ModelConfig& config, const Scope& scope) {
  return residual_kind_of(config).make_ends(config, scope);
}

bool has_sublayer_norms(const ModelConfig& config) {
  return config.norm != "none" && !residual_kind_of(config).normalises;
}

std::unique_ptr<Norm> make_sublayer_norm(const ModelConfig& config, const Scope& scope) {
  return residual_kind_of(config).normalises ? make_no_norm(scope) : make_norm(config, scope, config.d_model);
}

Var copies(Var x, int64_t n) {
  const Shape& shape = x.shape();
  return expand(reshape(x, {shape[0], shape[1], 1, shape[2]}), 2, n);
}

Var checked_forward(const Sublayer& sublayer, Var x) {
  Var written = sublayer.forward(x);
  check(written.shape() == x.shape(), "{} must write the shape it reads, {}; it wrote {}", sublayer.path(), x.shape(),
        written.shape());
  return written;
}

Var run_sublayer(Var x, const Norm& norm, const Sublayer& sublayer, NormPosition position, double dropout_share) {
  const bool before = position == NormPosition::pre;
  Var written = dropout(checked_forward(sublayer, before ? norm.forward(x) : x), dropout_share, sublayer.path());
  return before ? written : norm.forward(written);
}

}  // namespace minillm
