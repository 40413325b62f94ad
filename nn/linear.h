#pragma once
// Linear: x [.., in] -> x weight^T + bias [.., out]. Several projections of one input may share one matrix in memory.

#include "nn/module.h"

#include <initializer_list>
#include <string_view>

namespace minillm {

class Linear final : public Module {
 public:
  /// One projection of a merged matrix: "q_proj" with its rows.
  struct Rows {
    std::string_view name;
    int64_t out;
  };

  /// Declares <scope>.weight [out, in] and, with `bias`, <scope>.bias [out], which starts at 0.
  Linear(const Scope& scope, int64_t in, int64_t out, Init init, bool bias);

  /// Declares one matrix [sum of out, in] named `merged`, whose row ranges are <scope>.<name>.weight of each part.
  Linear(const Scope& scope, std::string_view merged, std::initializer_list<Rows> parts, int64_t in, Init init,
         bool bias);

  Var forward(Var x) const;

  Parameter& weight() const { return *weight_; }
  Parameter* bias() const { return bias_; }  ///< null: none

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;  // null: none
};

}  // namespace minillm
