#pragma once
// One Transformer block: attention mixes positions, the feed-forward network works on each token, and each of the two
// reads from and writes to the residual stream through one norm.

#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/residual.h"

#include <memory>

namespace minillm {

class Block final : public Module {
 public:
  Block(const ModelConfig& config, const Scope& scope, const RopeTable& rope, int64_t layer)
      : Module(scope),
        input_layernorm_(make_sublayer_norm(config, scope / "input_layernorm")),
        self_attn_(make_mixer(config, scope, rope, layer)),
        attention_residual_(make_residual(config, scope / "attention_residual")),
        mlp_(make_ffn(config, scope / "mlp")) {
    if (mlp_ != nullptr) {
      post_attention_layernorm_ = make_sublayer_norm(config, scope / "post_attention_layernorm");
      mlp_residual_ = make_residual(config, scope / "mlp_residual");
    }
  }

  void forward(Stream& stream) const {
    attention_residual_->forward(stream, *input_layernorm_, *self_attn_);
    if (mlp_ != nullptr) {
      mlp_residual_->forward(stream, *post_attention_layernorm_, *mlp_);
    }
  }

 private:
  std::unique_ptr<Norm> input_layernorm_;
  std::unique_ptr<Sublayer> self_attn_;
  std::unique_ptr<Residual> attention_residual_;
  std::unique_ptr<Sublayer> mlp_;  // null: ffn = "none"
  std::unique_ptr<Norm> post_attention_layernorm_;
  std::unique_ptr<Residual> mlp_residual_;
};

}  // namespace minillm
