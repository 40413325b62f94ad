// D12: the 8 d / 3 rule beside the widths that models really have.

#include "core/error.h"
#include "experiments/lessons/lesson.h"
#include "nn/ffn.h"
#include "train/complete_config.h"
#include "train/presets.h"

#include <utility>
#include <vector>

namespace minillm {

namespace {

/// The [model] section of a preset, which the program's configs hold.
ModelConfig model_of(const std::string& preset) {
  const std::string path = find_preset(preset);
  if (path.empty()) {
    fail_input({.where = preset,
                .what = "this preset is not found",
                .expected = "configs/presets beside the program or below the working folder",
                .hint = "run it where minillm was built or installed"});
  }
  return load_without_data(path, {"model.vocab_size=2"}).config.model;
}

}  // namespace

Numbers ffn_width(Page& page) {
  std::vector<std::pair<std::string, ModelConfig>> models;
  for (const char* preset : {"original_2017", "gpt2", "llama_2023", "llama2-7b", "deepseek-llm-67b", "qwen3.8-27b"}) {
    models.emplace_back(preset, model_of(preset));
  }
  page.say(
      {"Question: a gated network has three matrices where a plain one has two. How wide may it be for the same\n"
       "parameters? 2 * d * 4d = 3 * d * f gives f = 8d/3, rounded up to a multiple of 16 (of 256 for large\n"
       "models). Is that what models have?\n",
       "问题：门控网络有三个矩阵，普通的只有两个。参数一样多时能有多宽？\n"
       "2 * d * 4d = 3 * d * f，得 f = 8d/3，向上取到 16 的倍数（大模型取 256）。模型真的这么取吗？\n"});
  Numbers numbers;
  Table table({page.in({"model", "模型"}), page.in({"matrices", "矩阵"}), "d", "d_ff", "d_ff / d", "8d/3",
               page.in({"up to 16", "取到 16"}), page.in({"up to 256", "取到 256"})});
  for (const auto& [preset, model] : models) {
    const int matrices = unit_kind(model) == nullptr ? 2 : 3;
    const double ratio = static_cast<double>(model.d_ff) / static_cast<double>(model.d_model);
    const double rule = 8 * static_cast<double>(model.d_model) / 3;
    table.add_row({preset, std::to_string(matrices), std::to_string(model.d_model), std::to_string(model.d_ff),
                   fmt::format("{:.4g}", ratio), fmt::format("{:.2f}", rule),
                   std::to_string(gated_width(model.d_model, 16)), std::to_string(gated_width(model.d_model, 256))});
    numbers[preset] = {static_cast<double>(model.d_model),
                       static_cast<double>(model.d_ff),
                       ratio,
                       rule,
                       static_cast<double>(gated_width(model.d_model, 16)),
                       static_cast<double>(gated_width(model.d_model, 256))};
  }
  page.show(table);
  page.say(
      {"The two-matrix models take 4d. minillm's gated width is the rule rounded to 16, Llama's and DeepSeek's are\n"
       "the rule rounded to 256. Qwen3.8 is not: 3.4d by choice. 8d/3 makes a comparison fair; a model's width is a\n"
       "question of its budget.\n"
       "(original_2017 and llama_2023 are minillm's presets at its own size.)\n"
       "Next: what does such a network see? See per-token.",
       "两矩阵的模型取 4d。minillm 的门控宽度就是该规则取到 16，Llama 和 DeepSeek 是取到 256。\n"
       "Qwen3.8 不是：它选了 3.4d。8d/3 是为了对比公平，真正的宽度由预算决定。\n"
       "（original_2017 与 llama_2023 是 minillm 自己尺寸的预设。）\n"
       "下一步：这样的网络看得到什么？见 per-token。"});
  return numbers;
}

}  // namespace minillm
