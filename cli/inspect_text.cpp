#include "cli/inspect_text.h"

#include "cli/layers_text.h"
#include "core/terminal.h"
#include "core/text.h"

#include <algorithm>

namespace minillm::cli {

namespace {

constexpr size_t heads_across = 12;  // columns of a table of heads: 120 characters

/// Mean over the heads; NaN of none.
double mean_entropy(const std::vector<HeadAttention>& heads) {
  double sum = 0;
  for (const HeadAttention& head : heads) {
    sum += head.entropy;
  }
  return heads.empty() ? not_there : sum / static_cast<double>(heads.size());
}

std::string activations_table(const Inspection& inspection) {
  Table table({"layer", "mean", "std", "RMS", "norms' RMS", "token cosine", "entropy", "to first token", "dead units"});
  const Moments& embedding = inspection.embedding;
  table.add_row({"embedding", number_text(embedding.mean), number_text(embedding.std), number_text(embedding.rms), "-",
                 "-", "-", "-", "-"});
  for (size_t l = 0; l < inspection.layers.size(); ++l) {
    const LayerInspection& at = inspection.layers[l];
    table.add_row({std::to_string(l), number_text(at.stream.mean), number_text(at.stream.std),
                   number_text(at.stream.rms), number_text(at.statistics.norm_output),
                   number_text(at.statistics.token_cosine), number_text(mean_entropy(at.heads)),
                   number_text(at.statistics.first_token_share), number_text(at.statistics.ffn_dead)});
  }
  return table.text();
}

std::string gradients_table(const Inspection& inspection) {
  Table table({"layer", "d stream", "d parameters", "mixer writes", "FFN writes", "mixer, logit", "FFN, logit"});
  table.add_row({"embedding", number_text(inspection.embedding_gradient), "-",
                 number_text(inspection.embedding_write.rms), "-", number_text(inspection.embedding_write.logit), "-"});
  for (size_t l = 0; l < inspection.layers.size(); ++l) {
    const LayerInspection& at = inspection.layers[l];
    table.add_row({std::to_string(l), number_text(at.stream_gradient), number_text(at.parameter_gradient),
                   number_text(at.mixer.rms), number_text(at.ffn.rms), number_text(at.mixer.logit),
                   number_text(at.ffn.logit)});
  }
  return table.text();
}

/// One number of each head, a layer a row, at most heads_across heads side by side; "" where no layer has heads.
std::string heads_table(const Inspection& inspection, const std::string& title, double HeadAttention::*number) {
  size_t heads = 0;
  for (const LayerInspection& layer : inspection.layers) {
    heads = std::max(heads, layer.heads.size());
  }
  std::string text;
  for (size_t begin = 0; begin < heads; begin += heads_across) {
    const size_t end = std::min(heads, begin + heads_across);
    std::vector<std::string> headings = {"layer"};
    for (size_t h = begin; h < end; ++h) {
      headings.push_back(fmt::format("head {}", h));
    }
    Table table(headings);
    for (size_t l = 0; l < inspection.layers.size(); ++l) {
      const std::vector<HeadAttention>& own = inspection.layers[l].heads;
      std::vector<std::string> row = {std::to_string(l)};
      for (size_t h = begin; h < end; ++h) {
        row.push_back(own.empty() ? "-" : number_text(own[h].*number));
      }
      table.add_row(std::move(row));
    }
    text += "\n" + title + "\n" + table.text();
  }
  return text;
}

std::string sum_line(const Inspection& inspection) {
  const ResidualSum& sum = inspection.sum;
  if (!sum.reason.empty()) {
    return fmt::format("sum of writes: -, the last stream is none: {}\n", sum.reason);
  }
  const std::string line = fmt::format(
      "sum of writes: embedding + all writes differs from the last stream by at most {:.2g}, {} of its "
      "largest value\n",
      sum.difference, number_text(sum.difference / sum.largest));
  return inspection.no_loss.empty() ? line + fmt::format("next token's logit: {} above the mean of all\n",
                                                         number_text(inspection.next_token_logit))
                                    : line;
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  std::vector<LayerStatistics> statistics;
  for (const LayerInspection& layer : inspection.layers) {
    statistics.push_back(layer.statistics);
  }
  std::string text = counted(inspection.tokens, "token");
  text += inspection.no_loss.empty() ? fmt::format(", loss {:.4f} nats a token, gradient norm {:.4g}\n",
                                                   inspection.loss, inspection.gradient_norm)
                                     : fmt::format("; no loss and no gradients: {}\n", inspection.no_loss);
  text += "\n" + activations_table(inspection) + "\n" + gradients_table(inspection) + sum_line(inspection);
  text += heads_table(inspection,
                      fmt::format("entropy of attention in nats, {:.4g} where it is even", inspection.largest_entropy),
                      &HeadAttention::entropy);
  text += heads_table(inspection, "share of attention that the first token gets", &HeadAttention::first_token_share);
  return text + gates_text(statistics);
}

}  // namespace minillm::cli
