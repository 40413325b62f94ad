#include "nn/match.h"

#include "core/error.h"
#include "nn/transformer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace minillm {

namespace {

int64_t count_with(ModelConfig& config, int64_t d_ff) {
  config.d_ff = d_ff;
  return Transformer(config).parameters().count();
}

/// The largest d_ff with which the config is still one: each size is a 31-bit number, and their products are bounded.
int64_t largest_width(ModelConfig config) {
  int64_t fits = 1;
  int64_t too_large = int64_t{INT32_MAX} + 1;
  while (too_large - fits > 1) {
    config.d_ff = fits + (too_large - fits) / 2;
    if (derive_and_check(config, 0, 0).empty()) {
      fits = config.d_ff;
    } else {
      too_large = config.d_ff;
    }
  }
  return fits;
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
  const int64_t most = largest_width(config);
  const int64_t at_most = at_one + slope * (most - 1);
  if (wanted > at_most) {
    fail_input({.where = "--match",
                .what = fmt::format("no model.d_ff reaches it: the largest is {}", most),
                .found = std::to_string(wanted),
                .expected = fmt::format("at most {}", at_most),
                .hint = most == INT32_MAX ? "a larger model.d_model or more layers" : ""});
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
