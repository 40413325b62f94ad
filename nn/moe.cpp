// Mixture of experts (Shazeer et al. 2017; top-k of a softmax as in Mixtral and Qwen): each token is worked on by the k
// experts that its router scores highest, and by a shared one if there is one.

#include "nn/ffn.h"
#include "nn/init.h"
#include "nn/linear.h"

#include <vector>

namespace minillm {

namespace {

/// One projection of every expert: <scope>.weight [E, out, in] and, with biases, <scope>.bias [E, out].
class ExpertLinears {
 public:
  ExpertLinears(const Scope& scope, int64_t experts, int64_t out, int64_t in, Init init, bool bias)
      : weights_(scope.declare("weight", {experts, out, in}, init)) {
    if (bias) {
      biases_ = &scope.store().declare_decayed(scope.name("bias"), {experts, out}, Init::constant(0), false);
    }
  }

  bool has_bias() const { return biases_ != nullptr; }
  Var weight(Tape& tape, int64_t e) const { return tape.parameter_row(weights_, e); }  // [out, in]
  Var bias(Tape& tape, int64_t e) const { return tape.parameter_row(*biases_, e); }    // [out]

 private:
  Parameter& weights_;
  Parameter* biases_ = nullptr;  // null: none
};

/// y = sum over the k best experts e of p_e / (sum of the k best p) E_e(x) [+ shared(x)],  p = softmax(x W_router),
/// E(x) = (silu(x W_gate) * (x W_up)) W_down, or another gated unit; shared is one too, times sigmoid(x w) where it has
/// a gate (Qwen2-MoE). With k = 1 p_e stays as it is (Fedus et al. 2021, "Switch Transformers"):
/// divided by itself it would be 1, and the router would learn nothing.
class MixtureOfExperts final : public Sublayer {
 public:
  MixtureOfExperts(const ModelConfig& config, const Scope& scope)
      : Sublayer(scope),
        experts_(config.moe_experts),
        k_(config.moe_top_k),
        d_(config.d_model),
        f_(config.d_ff),
        unit_(gated_unit(config)),
        router_(scope / "router", d_, experts_, matrix_init(), false),
        gate_(scope / "experts.gate_proj", experts_, f_, d_, matrix_init(), config.bias),
        up_(scope / "experts.up_proj", experts_, f_, d_, matrix_init(), config.bias),
        down_(scope / "experts.down_proj", experts_, d_, f_, residual_out_init(config), config.bias) {
    if (config.moe_shared_d_ff > 0) {
      const Scope shared = scope / "shared_expert";
      shared_gate_up_ =
          std::make_unique<Linear>(shared, "gate_up_proj",
                                   std::initializer_list<Linear::Rows>{{"gate_proj", config.moe_shared_d_ff},
                                                                       {"up_proj", config.moe_shared_d_ff}},
                                   d_, matrix_init(), config.bias);
      shared_down_ = std::make_unique<Linear>(shared / "down_proj", config.moe_shared_d_ff, d_,
                                              residual_out_init(config), config.bias);
      if (config.moe_shared_gate) {
        shared_gate_ = std::make_unique<Linear>(scope / "shared_expert_gate", d_, 1, matrix_init(), false);
      }
    }
  }

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    const Shape shape = x.shape();
    Var rows = reshape(x, {shape[0] * shape[1], d_});
    Var y = routed(rows);
    if (shared_down_ != nullptr) {
      y = add(y, shared(rows));
    }
    return reshape(y, shape);
  }

 private:
  /// rows [R, d] -> [R, d]: what the shared expert writes for every token.
  Var shared(Var rows) const {
    Var y = shared_down_->forward(gated(shared_gate_up_->forward(rows), unit_));
    return shared_gate_ == nullptr ? y : mul(y, sigmoid(shared_gate_->forward(rows)));
  }

  /// rows [R, d] -> [R, d]. Each expert works on its tokens at once; what a token is owed is looked up in the results.
  Var routed(Var rows) const {
    const int64_t R = rows.shape()[0];
    std::vector<int32_t> chosen(static_cast<size_t>(R * k_));
    Var scores = top_k(softmax(router_.forward(rows)), k_, chosen);  // [R, k]
    Var shares = k_ == 1 ? scores : div(scores, sum(scores, {-1}));
    std::vector<Var> results;
    std::vector<int32_t> place(chosen.size());  // in the results, of token r's j-th expert
    int32_t next = 0;
    for (int64_t e = 0; e < experts_; ++e) {
      std::vector<int32_t> tokens;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] == e) {
          tokens.push_back(static_cast<int32_t>(static_cast<int64_t>(i) / k_));
          place[i] = next++;
        }
      }
      if (!tokens.empty()) {
        results.push_back(expert(e, embedding(rows, tokens)));
      }
    }
    Var owed = embedding(concat(results, 0), place);  // [R k, d]
    Var weighted = mul(reshape(owed, {R, k_, d_}), reshape(shares, {R, k_, 1}));
    return reshape(sum(weighted, {1}), {R, d_});
  }

  Var expert(int64_t e, Var x) const { return apply(down_, e, gated(gate_and_up(e, x), unit_)); }

  /// [tokens, 2 f]: one product with both weights, copied side by side. A decoder's few tokens put two results together
  /// instead, which has the same bits.
  Var gate_and_up(int64_t e, Var x) const {
    Tape& tape = x.tape();
    if (tape.reads_on()) {
      const Var results[] = {apply(gate_, e, x), apply(up_, e, x)};
      return concat(results, -1);
    }
    const Var weights[] = {gate_.weight(tape, e), up_.weight(tape, e)};
    if (!gate_.has_bias()) {
      return linear(x, concat(weights, 0));
    }
    const Var biases[] = {gate_.bias(tape, e), up_.bias(tape, e)};
    return linear(x, concat(weights, 0), concat(biases, 0));
  }

  static Var apply(const ExpertLinears& linears, int64_t e, Var x) {
    Tape& tape = x.tape();
    return linear(x, linears.weight(tape, e), linears.has_bias() ? linears.bias(tape, e) : Var());
  }

  int64_t experts_;
  int64_t k_;
  int64_t d_;
  int64_t f_;
  GatedUnit unit_;
  Linear router_;
  ExpertLinears gate_;
  ExpertLinears up_;
  ExpertLinears down_;
  std::unique_ptr<Linear> shared_gate_up_;  // null: no shared expert
  std::unique_ptr<Linear> shared_down_;
  std::unique_ptr<Linear> shared_gate_;  // null: it counts fully
};

}  // namespace

int64_t moe_active_width(const ModelConfig& config) {
  return config.moe_top_k * config.d_ff + config.moe_shared_d_ff;
}

std::unique_ptr<Sublayer> make_moe(const FfnKind&, const ModelConfig& config, const Scope& scope) {
  return std::make_unique<MixtureOfExperts>(config, scope);
}

}  // namespace minillm
