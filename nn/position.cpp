#include "nn/position.h"

#include "core/kernels/rope.h"
#include "nn/init.h"
#include "nn/kept_rows.h"

#include <cmath>

namespace minillm {

namespace {

// wave[p, 2i] = sin(p / 10000^(2i/d)), wave[p, 2i+1] = cos of the same angle.
template <class T>
void fill_waves(T* waves, int64_t positions, int64_t d) {
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t j = 0; j < d; ++j) {
      const int64_t even = j - j % 2;
      const double exponent = static_cast<double>(even) / static_cast<double>(d);
      const double angle = static_cast<double>(p) * std::pow(10000.0, -exponent);
      waves[p * d + j] = static_cast<T>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
}

}  // namespace

RopeTable::RopeTable(const ModelConfig& config)
    : positions_(config.max_seq_len),
      head_dim_(config.head_dim),
      pairs_(config.position == "rope" ? kernels::rope_pairs(config.rope_fraction, config.head_dim) : 0),
      theta_(config.rope_theta) {}

void RopeTable::allocate(DType dtype) {
  if (pairs_ == 0) {
    return;
  }
  cosines_ = Buffer({positions_, pairs_}, dtype);
  sines_ = Buffer({positions_, pairs_}, dtype);
  if (dtype == DType::float64) {
    fill<double>();
  } else {
    fill<float>();
  }
}

template <class T>
void RopeTable::fill() {
  kernels::rope_table(cosines_.tensor().as<T>(), sines_.tensor().as<T>(), positions_, pairs_, head_dim_, theta_);
}

Var RopeTable::rotate(Var qkv, QkvLayout layout) const {
  if (pairs_ == 0) {
    return qkv;
  }
  const int64_t T = qkv.shape()[1];
  const int64_t first = qkv.tape().first_position();
  return rope(qkv, layout, cosines_.tensor().rows(first, T), sines_.tensor().rows(first, T));
}

PositionEmbedding::PositionEmbedding(const ModelConfig& config, const Scope& scope)
    : Module(scope),
      positions_(config.max_seq_len),
      width_(config.d_model),
      sinusoidal_(config.position == "sinusoidal") {
  if (config.position == "learned") {
    learned_ = &scope.declare("weight", {positions_, width_}, matrix_init());
  }
}

void PositionEmbedding::allocate(DType dtype) {
  if (!sinusoidal_) {
    return;
  }
  waves_ = Buffer({positions_, width_}, dtype);
  if (dtype == DType::float64) {
    fill_waves(waves_.tensor().as<double>(), positions_, width_);
  } else {
    fill_waves(waves_.tensor().as<float>(), positions_, width_);
  }
}

Var PositionEmbedding::add_to(Var x) const {
  Tape& tape = x.tape();
  const auto scope = tape.enter(path());
  const int64_t T = x.shape()[1];
  const auto add_from_first = [&](Var rows) {
    const int64_t first = tape.first_position();
    return add(rows, learned_ != nullptr ? slice(tape.parameter(*learned_), 0, first, first + T)
                                         : tape.constant(waves_.tensor().rows(first, T)));
  };
  if (learned_ == nullptr && !sinusoidal_) {
    return x;
  }
  return tape.reads_on() ? for_each_sequence(x, add_from_first) : add_from_first(x);
}

}  // namespace minillm
