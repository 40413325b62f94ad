#include "cli/bench_text.h"

#include "core/parallel.h"
#include "core/terminal.h"
#include "core/text.h"

#include <cmath>

namespace minillm::cli {

namespace {

JsonObject phases_json(const BenchResult& result) {
  JsonObject json;
  for (size_t i = 0; i < phase_count; ++i) {
    json.add(name_of(static_cast<Phase>(i)), 1e3 * result.phases[i]);
  }
  return json;
}

/// "GFLOP/s" and "of peak"; "" where there is nothing to tell.
std::vector<std::string> speed_cells(const BenchResult& result, double operations, double seconds) {
  if (!(operations > 0 && seconds > 0)) {
    return {"", ""};
  }
  return {fmt::format("{:.1f}", operations / seconds / 1e9),
          result.has_peak() ? fmt::format("{:.1f} %", 100 * result.share_of_peak(operations, seconds)) : ""};
}

void add_row(Table& table, const BenchResult& result, std::string_view name, double seconds, double operations) {
  if (std::isnan(seconds)) {
    table.add_row({std::string(name), "", "", "", ""});
    return;
  }
  std::vector<std::string> cells = {std::string(name), fmt::format("{:.2f}", 1e3 * seconds),
                                    fmt::format("{:.1f} %", 100 * seconds / result.step_seconds)};
  for (std::string& cell : speed_cells(result, operations, seconds)) {
    cells.push_back(std::move(cell));
  }
  table.add_row(std::move(cells));
}

std::string phase_table(const BenchResult& result) {
  Table table({"phase", "ms", "share", "GFLOP/s", "of peak"});
  for (size_t i = 0; i < phase_count; ++i) {
    add_row(table, result, name_of(static_cast<Phase>(i)), result.phases[i], result.phase_flops[i]);
  }
  table.add_rule();
  add_row(table, result, "step", result.step_seconds, result.flops);
  return table.text();
}

std::string peak_text(const BenchResult& result) {
  if (!result.has_peak()) {
    return "the FMA peak of this processor is not measured";
  }
  return fmt::format("FMA peak {:.1f} GFLOP/s ({:+.1f} % from before to after)", result.fma_peak_gflops,
                     100 * result.fma_peak_change);
}

}  // namespace

JsonObject bench_json(const BenchResult& result, int allocations) {
  JsonObject json;
  json.add("tokens_per_s", result.tokens_per_second());
  json.add("step_ms", 1e3 * result.step_seconds);
  json.add("phases_ms", phases_json(result));
  json.add("mfu", result.mfu());
  if (result.has_peak()) {
    json.add("fma_peak_gflops", result.fma_peak_gflops);
    json.add("fma_peak_change", result.fma_peak_change);
  } else {
    json.add_null("fma_peak_gflops");
    json.add_null("fma_peak_change");
  }
  json.add("flops_per_step", result.flops);
  json.add("tokens_per_step", result.tokens_per_step);
  json.add("parameters", result.parameters);
  json.add("threads", int64_t{num_threads()});
  json.add("loss", result.last_loss);
  json.add("peak_memory_bytes", result.peak_memory_bytes);
  json.add("memory_before_bytes", result.memory_before_bytes);
  json.add("memory_formula_bytes", result.memory_formula_bytes);
  json.add("arena_bytes", result.arena_bytes);
  if (allocations >= 0) {
    json.add("heap_allocations_per_step", int64_t{allocations});
  } else {
    json.add_null("heap_allocations_per_step");
  }
  return json;
}

std::string bench_text(const BenchResult& result, int allocations) {
  std::string text = fmt::format("{} parameters, {} tokens a step, {} threads\n{}", thousands(result.parameters),
                                 thousands(result.tokens_per_step), num_threads(), phase_table(result));
  text += fmt::format("{:.0f} tokens/s; {}\n", result.tokens_per_second(), peak_text(result));
  const double used = static_cast<double>(result.peak_memory_bytes - result.memory_before_bytes);
  text += fmt::format("peak memory {}, {} before the model; the difference is {:.2f} of the formula's {}\n",
                      bytes_text(static_cast<double>(result.peak_memory_bytes)),
                      bytes_text(static_cast<double>(result.memory_before_bytes)), used / result.memory_formula_bytes,
                      bytes_text(result.memory_formula_bytes));
  text += fmt::format("heap allocations in a step: {}; loss of the last one {:.4f}\n",
                      allocations < 0 ? "not counted in this build" : std::to_string(allocations), result.last_loss);
  return text;
}

JsonObject decode_bench_json(const DecodeBenchResult& result, int allocations) {
  JsonObject json;
  json.add("tokens_per_s", result.tokens_per_second());
  json.add("prefill_tokens_per_s", result.prefill_tokens_per_second());
  json.add("prompt_tokens", result.prompt_tokens);
  json.add("tokens", result.tokens);
  json.add("weight_bytes", result.weight_bytes);
  json.add("read_gigabytes_per_s", result.read_gigabytes_per_s);
  json.add("share_of_reading", result.share_of_reading());
  json.add("threads", int64_t{num_threads()});
  if (allocations >= 0) {
    json.add("heap_allocations_per_token", int64_t{allocations});
  } else {
    json.add_null("heap_allocations_per_token");
  }
  return json;
}

std::string decode_bench_text(const DecodeBenchResult& result, int allocations) {
  std::string text = fmt::format("{} threads; a prompt of {} tokens: {:.0f} tokens/s\n", num_threads(),
                                 result.prompt_tokens, result.prefill_tokens_per_second());
  text += fmt::format("{} tokens behind it, one by one: {:.0f} tokens/s (median)\n", result.tokens,
                      result.tokens_per_second());
  text += fmt::format("each reads {} of weights: {:.1f} GB/s, {:.1f} % of the {:.1f} GB/s that summing as much reads\n",
                      bytes_text(result.weight_bytes), result.share_of_reading() * result.read_gigabytes_per_s,
                      100 * result.share_of_reading(), result.read_gigabytes_per_s);
  return text + fmt::format("heap allocations for a token: {}\n",
                            allocations < 0 ? "not counted in this build" : std::to_string(allocations));
}

}  // namespace minillm::cli
