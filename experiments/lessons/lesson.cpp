#include "experiments/lessons/lesson.h"

#include "core/error.h"
#include "core/text.h"

namespace minillm {

// Each in a file of its own, named after it.
Numbers linear_fails(Page& page);
Numbers two_neurons(Page& page);
Numbers linear_collapse(Page& page);
Numbers vanishing_gradient(Page& page);
Numbers tokens_alike(Page& page);
Numbers residual_on(Page& page);
Numbers residual_gradient(Page& page);
Numbers stream_growth(Page& page);
Numbers stream_sum(Page& page);
Numbers batchnorm_zeros(Page& page);
Numbers batchnorm_neighbours(Page& page);
Numbers norm_invariance(Page& page);
Numbers norm_scale(Page& page);
Numbers norm_per_layer(Page& page);
Numbers zero_mean(Page& page);
Numbers gain_decay(Page& page);
Numbers gate_plane(Page& page);
Numbers silu_gate(Page& page);
Numbers overflow(Page& page);
Numbers ffn_width(Page& page);
Numbers per_token(Page& page);
Numbers ffn_neurons(Page& page);
Numbers ladder(Page& page);
Numbers temperature(Page& page);

namespace {

constexpr Lesson lesson_table[] = {
    {.id = "D01",
     .name = "linear-fails",
     .title = {"no linear scheme tells 好吃, 不好吃, 难吃, 不难吃 apart", "线性方案分不清 好吃、不好吃、难吃、不难吃"},
     .run = linear_fails},
    {.id = "D02",
     .name = "two-neurons",
     .title = {"a feed-forward network of two neurons does, exactly", "两个神经元的前馈网络恰好分得清"},
     .run = two_neurons},
    {.id = "D03",
     .name = "linear-collapse",
     .title = {"two linear layers are one", "两层线性等于一层"},
     .run = linear_collapse},
    {.id = "D04",
     .name = "vanishing-gradient",
     .title = {"without a residual connection the gradient is geometric in depth", "没有残差，梯度随深度成几何级数"},
     .run = vanishing_gradient,
     .has_picture = true},
    {.id = "D05",
     .name = "tokens-alike",
     .title = {"without a residual connection all tokens become one vector", "没有残差，所有 token 变成同一个向量"},
     .run = tokens_alike,
     .has_picture = true},
    {.id = "D06",
     .name = "residual-on",
     .title = {"what `x +` changes, and what it needs beside it", "加上「x +」改变了什么，还缺什么"},
     .run = residual_on,
     .has_picture = true},
    {.id = "R06",
     .name = "residual-gradient",
     .title = {"the gradient is dL/dy (I + dF/dx), not plus 1", "梯度是 dL/dy (I + dF/dx)，不是加 1"},
     .run = residual_gradient},
    {.id = "D21",
     .name = "stream-growth",
     .title = {"N writes make the stream sqrt(1 + N) large", "写入 N 次，流涨到 sqrt(1 + N)"},
     .run = stream_growth,
     .has_picture = true},
    {.id = "D22",
     .name = "stream-sum",
     .title = {"the last stream is the embedding plus every write", "最后的流等于嵌入加上所有写入"},
     .run = stream_sum},
    {.id = "D07",
     .name = "batchnorm-zeros",
     .title = {"BatchNorm turns a single token into all zeros", "BatchNorm 把单个 token 变成全零"},
     .run = batchnorm_zeros},
    {.id = "D08",
     .name = "batchnorm-neighbours",
     .title = {"BatchNorm lets a sentence depend on its neighbours in the batch", "BatchNorm 让一句话受同批邻句影响"},
     .run = batchnorm_neighbours},
    {.id = "D09",
     .name = "norm-invariance",
     .title = {"what LayerNorm and RMSNorm do not see: shift and scale, or scale",
               "LayerNorm 与 RMSNorm 看不出什么：平移与缩放，或只有缩放"},
     .run = norm_invariance},
    {.id = "N17",
     .name = "norm-scale",
     .title = {"features of 0 to 1 and of 100 to 200 behind a norm", "0 到 1 与 100 到 200 的特征，归一化之后"},
     .run = norm_scale},
    {.id = "N16",
     .name = "norm-per-layer",
     .title = {"whatever the size of the stream, a sublayer reads size 1", "不管流多大，子层读到的大小是 1"},
     .run = norm_per_layer,
     .reads_run = true},
    {.id = "N18",
     .name = "zero-mean",
     .title = {"is the mean of the features near 0?", "特征的均值接近 0 吗？"},
     .run = zero_mean,
     .reads_run = true},
    {.id = "N21",
     .name = "gain-decay",
     .title = {"weight decay pulls a gain to 0, a zero-centered one to 1", "权重衰减把增益拉向 0，零中心的拉向 1"},
     .run = gain_decay,
     .has_picture = true},
    {.id = "D10",
     .name = "gate-plane",
     .title = {"SiLU(g) u over the plane of gate and value", "门与值的平面上的 SiLU(g) u"},
     .run = gate_plane,
     .has_picture = true},
    {.id = "D11",
     .name = "silu-gate",
     .title = {"a SiLU gate is no switch between 0 and 1", "SiLU 门不是 0 到 1 的开关"},
     .run = silu_gate,
     .reads_run = true},
    {.id = "F18",
     .name = "overflow",
     .title = {"where SiLU(g) u leaves the range of a number type", "SiLU(g) u 在哪里超出数值类型的范围"},
     .run = overflow},
    {.id = "D12",
     .name = "ffn-width",
     .title = {"the 8d/3 rule beside the widths of real models", "8d/3 规则与真实模型的宽度"},
     .run = ffn_width},
    {.id = "F19",
     .name = "per-token",
     .title = {"a feed-forward network works on each token by itself", "前馈网络逐个 token 地工作"},
     .run = per_token},
    {.id = "D23",
     .name = "ffn-neurons",
     .title = {"what a neuron reads and what it writes", "一个神经元读什么、写什么"},
     .run = ffn_neurons,
     .reads_run = true},
    {.id = "D24",
     .name = "ladder",
     .title = {"attention, then FFN, residual, norm: the loss with each part more",
               "注意力、FFN、残差、归一化：每多一个部件的损失"},
     .run = ladder,
     .has_picture = true},
    {.id = "I17",
     .name = "temperature",
     .title = {"a temperature flattens or sharpens what is drawn from", "温度让抽样的分布变平或变尖"},
     .run = temperature},
};

}  // namespace

std::span<const Lesson> lessons() {
  return lesson_table;
}

const Lesson& find_lesson(std::string_view word) {
  std::vector<std::string> names;
  for (const Lesson& lesson : lesson_table) {
    if (edit_distance(word, lesson.name) == 0 || edit_distance(word, lesson.id) == 0) {  // of letters, not their case
      return lesson;
    }
    names.emplace_back(lesson.name);
  }
  const std::string near = did_you_mean(word, names);
  fail_input({.where = "lesson",
              .what = "there is no lesson " + printable(word),
              .hint = near.empty() ? "minillm lesson lists them" : near});
}

}  // namespace minillm
