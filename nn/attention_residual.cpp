// Attention Residuals (AttnRes; Kimi): a sublayer does not read the sum of all writes, it attends to them.

#include "nn/residual.h"

namespace minillm {

namespace {

constexpr double source_eps = 1e-6;

/// h = sum_i alpha_i v_i,  alpha = softmax over i of w . (v_i / rms(v_i)), for every token: v_i [B, T, d] -> [B, T, d].
/// w starts at zero, so h starts as the mean of the sources.
class DepthAttention final : public Module {
 public:
  DepthAttention(const ModelConfig& config, const Scope& scope)
      : Module(scope), query_(scope.declare("weight", {config.d_model}, Init::constant(0))) {}

  Var forward(std::span<const Var> sources) const {
    Tape& tape = sources.front().tape();
    const auto scope = tape.enter(path());
    std::vector<Var> scores;
    for (Var source : sources) {
      scores.push_back(sum(rmsnorm(source, tape.parameter(query_), source_eps), {-1}));  // [B, T, 1]
    }
    Var weights = softmax(concat(scores, -1));  // [B, T, sources]
    Var read;
    for (size_t i = 0; i < sources.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i);
      Var share = mul(slice(weights, -1, column, column + 1), sources[i]);
      read = i == 0 ? share : add(read, share);
    }
    return read;
  }

 private:
  Parameter& query_;  // [d]
};

/// The sources are the embedding and every sublayer's output; with blocks of N sublayers the sums of whole blocks, and
/// that of the block under way.
class AttentionResidual final : public Residual {
 public:
  AttentionResidual(const ModelConfig& config, const Scope& scope)
      : Residual(scope),
        attention_(config, scope),
        block_(config.residual_block),
        position_(norm_position_of(config)),
        dropout_(config.dropout) {}

  void forward(Stream& stream, const Norm& norm, const Sublayer& sublayer) const override {
    const auto scope = stream.x.tape().enter(path());
    stream.x = run_sublayer(attention_.forward(stream.writes), norm, sublayer, position_, dropout_);
    const bool begins_block = block_ == 0 || stream.sublayers % block_ == 0;
    if (begins_block) {
      stream.writes.push_back(stream.x);
    } else {
      stream.writes.back() = add(stream.writes.back(), stream.x);
    }
    ++stream.sublayers;
  }

 private:
  DepthAttention attention_;
  int64_t block_;
  NormPosition position_;
  double dropout_;
};

class AttentionEnds final : public StreamEnds {
 public:
  AttentionEnds(const ModelConfig& config, const Scope& scope) : StreamEnds(scope), attention_(config, scope) {}

  Stream enter(Var x) const override { return {x, {x}}; }
  Var leave(const Stream& stream) const override { return attention_.forward(stream.writes); }

 private:
  DepthAttention attention_;
};

}  // namespace

std::unique_ptr<Residual> make_attention_residual(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<AttentionResidual>(config, scope);
}

std::unique_ptr<StreamEnds> make_attention_ends(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<AttentionEnds>(config, scope);
}

}  // namespace minillm
