#include "train/lint.h"

#include "core/log.h"
#include "core/text.h"

#include <algorithm>

namespace minillm {

namespace {

constexpr LintRule rules[] = {
    {"E01", Severity::warning, "no residual connection", "config"},
    {"E02", Severity::warning, "tokens become alike", "weights"},
    {"E03", Severity::info, "depth without a residual stream trains worse", "comparison"},
    {"E04", Severity::warning, "BatchNorm in a language model", "config"},
    {"E05", Severity::warning, "a sequence's output depends on its batch", "weights"},
    {"E06", Severity::warning, "post-norm without warm-up or at a high rate", "config"},
    {"E07", Severity::warning, "stalled at the unigram loss", "run"},
    {"E08", Severity::warning, "gradients surge at the start", "run"},
    {"E09", Severity::error, "diverged", "run"},
    {"E10", Severity::error, "compared runs are not matched", "comparison, refused"},
    {"E11", Severity::warning, "a gated FFN as wide as a plain one", "config"},
    {"E12", Severity::info, "FFN width is no round number", "config"},
    {"E13", Severity::warning, "weight decay on gains", "config"},
    {"E14", Severity::warning, "gains are pressed out", "weights"},
    {"E15", Severity::info, "SiLU gate read as 0..1", "weights"},
    {"E16", Severity::info, "a difference below the noise floor", "comparison"},
    {"E17", Severity::warning, "the noise floor rests on few seeds", "comparison"},
    {"E18", Severity::warning, "speed was not measured alone", "comparison"},
    {"E19", Severity::warning, "pre-norm without a final norm", "config"},
    {"E20", Severity::info, "output matrices start unscaled", "config"},
    {"E21", Severity::info, "the residual stream grows", "weights"},
    {"E22", Severity::warning, "FFN values near the limit of 16 or 8 bits", "weights"},
    {"E23", Severity::info, "attention sinks into the first token", "weights"},
    {"E24", Severity::error, "a share without its denominator", "the program itself"},
    {"E25", Severity::warning, "buffers in a file of weights", "ledger"},
    {"E26", Severity::warning, "the classic estimate does not fit this model", "ledger"},
    {"E27", Severity::warning, "most parameters are not most compute", "ledger"},
    {"E28", Severity::info, "the FFN's share is not two thirds", "ledger"},
    {"E29", Severity::warning, "a mixture has two counts", "ledger"},
    {"E30", Severity::warning, "the stated size is not the counted one", "ledger"},
    {"E31", Severity::info, "one table or two", "ledger"},
    {"E32", Severity::info, "depth without FFN", "config"},
    {"E33", Severity::warning, "dead units", "weights"},
    {"E34", Severity::error, "no activation between two matrices", "config, refused"},
    {"E35", Severity::warning, "post-norm in a deep model", "config"},
    {"E36", Severity::error, "heads of keys that do not divide the heads", "config, refused"},
    {"E40", Severity::error, "a sampler's option out of its range", "command line, refused"},
    {"E41", Severity::info, "experts are used unevenly", "weights"},
    {"E42", Severity::warning, "latent attention without keys from the latent", "config"},
};

std::vector<std::string> ids_in(std::string_view text) {
  std::vector<std::string> ids(1);
  for (const char c : text) {
    if (c == ' ' || c == ',') {
      ids.emplace_back();
    } else {
      ids.back() += c;
    }
  }
  std::erase(ids, "");
  return ids;
}

/// nullptr: no lint has the id.
const LintRule* find_rule(std::string_view id) {
  const auto rule = std::find_if(std::begin(rules), std::end(rules), [&](const LintRule& row) { return row.id == id; });
  return rule == std::end(rules) ? nullptr : rule;
}

std::string text_of(const Finding& finding) {
  return fmt::format("{}, {}: {}{}{}", finding.rule->id, finding.rule->name, finding.what,
                     finding.advice.empty() ? "" : "; ", finding.advice);
}

}  // namespace

std::span<const LintRule> lint_rules() {
  return rules;
}

Finding make_finding(std::string_view id, std::string what, std::string advice) {
  const LintRule* rule = find_rule(id);
  check(rule != nullptr, "no lint has the id {}", id);
  return {rule, std::move(what), std::move(advice)};
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: break;
  }
  return "error";
}

std::string describe(const Finding& finding) {
  return fmt::format("{} {}", severity_name(finding.rule->severity), text_of(finding));
}

void log_findings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    switch (finding.rule->severity) {
      case Severity::info: log_info("{}", describe(finding)); break;
      case Severity::warning: log_warning("{}", text_of(finding)); break;  // which says that it is one
      case Severity::error: log_warning("{}", describe(finding)); break;
    }
  }
}

std::vector<Finding> audible(std::vector<Finding> findings, const Config& config) {
  const std::vector<std::string> silenced = ids_in(config.run.silence);
  std::erase_if(findings, [&](const Finding& finding) {
    return std::find(silenced.begin(), silenced.end(), finding.rule->id) != silenced.end();
  });
  return findings;
}

std::string fault_of_silence(std::string_view ids) {
  for (const std::string& id : ids_in(ids)) {
    const LintRule* rule = find_rule(id);
    if (rule == nullptr) {
      return fmt::format("{}, which no lint has", printable(id));
    }
    if (rule->severity == Severity::error) {
      return fmt::format("{}, which is an error", id);
    }
  }
  return "";
}

}  // namespace minillm
