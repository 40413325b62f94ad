#include "nn/match.h"

#include "core/error.h"
#include "nn/transformer.h"

#include <algorithm>
#include <cstdlib>

namespace minillm {

namespace {

int64_t count_with(ModelConfig& config, int64_t d_ff) {
  config.d_ff = d_ff;
  return Transformer(config).parameters().count();
}

}  // namespace

WidthMatch match_parameters(ModelConfig config, int64_t wanted) {
  // Every feed-forward network's size is linear in its width, so two counts give the line.
  const int64_t at_one = count_with(config, 1);
  const int64_t slope = count_with(config, 2) - at_one;
  if (slope == 0) {
    fail_input({.where = "--match",
                .what = "the model has no feed-forward network whose width could change",
                .found = "model.ffn = \"" + config.ffn + "\""});
  }
  if (wanted < at_one) {
    fail_input({.where = "--match",
                .what = "the rest of the model is larger already",
                .found = std::to_string(wanted),
                .expected = fmt::format("at least {}", at_one)});
  }
  const int64_t below = 1 + (wanted - at_one) / slope;
  const int64_t error_below = std::abs(count_with(config, below) - wanted);
  const int64_t error_above = std::abs(count_with(config, below + 1) - wanted);
  WidthMatch match;
  match.d_ff = error_above < error_below ? below + 1 : below;
  match.parameters = count_with(config, match.d_ff);
  match.difference = match.parameters - wanted;
  match.percent = 100.0 * static_cast<double>(match.difference) / static_cast<double>(wanted);
  return match;
}

}  // namespace minillm
