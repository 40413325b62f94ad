#include "train/nan_trace.h"

#include "optim/finite.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm {

namespace {

/// What a node's value has that is not finite.
struct Oddities {
  bool nan = false;
  bool above = false;   // +infinity
  bool below = false;   // -infinity
  bool masked = false;  // -infinity alone, which a constant brought in

  bool none() const { return !nan && !above && !below; }
};

Oddities oddities_of(const Tensor& tensor) {
  Oddities odd;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double value = tensor.at(i);
    odd.nan = odd.nan || std::isnan(value);
    odd.above = odd.above || value == std::numeric_limits<double>::infinity();
    odd.below = odd.below || value == -std::numeric_limits<double>::infinity();
  }
  return odd;
}

std::vector<Oddities> oddities_of(Tape& tape) {
  std::vector<Oddities> all;
  for (NodeId id = 0; id < tape.size(); ++id) {
    const Node& node = tape.node(id);
    Oddities odd = oddities_of(node.value);
    const bool brought_in = (node.inputs.empty() && node.parameter == nullptr) ||
                            std::any_of(node.inputs.begin(), node.inputs.end(),
                                        [&](NodeId input) { return all[static_cast<size_t>(input)].masked; });
    odd.masked = odd.below && !odd.nan && !odd.above && brought_in;
    all.push_back(odd);
  }
  return all;
}

std::string name_of(const Node& node) {
  return node.parameter != nullptr ? node.parameter->name : fmt::format("#{} {} {}", node.id, node.op, node.scope);
}

/// The place without its operands; `odd` holds the value.
Birthplace place_of(const Node& node, Pass pass, const Tensor& odd) {
  Birthplace place;
  place.pass = pass;
  place.node = node.id;
  place.op = node.op;
  place.scope = scope_of(node);
  place.called_at = fmt::format("{}", node.here);
  place.shape = odd.shape;
  place.index = find_non_finite(odd);
  place.value = odd.at(place.index);
  if (std::isnan(place.value)) {
    place.value = std::numeric_limits<double>::quiet_NaN();  // a sign would be shown
  }
  return place;
}

void add_operands(Tape& tape, const Node& node, Birthplace& place) {
  for (const NodeId input : node.inputs) {
    const Node& operand = tape.node(input);
    place.operands.push_back({name_of(operand), operand.value.shape, element_statistics(operand.value)});
  }
}

}  // namespace

ElementStatistics element_statistics(const Tensor& tensor) {
  ElementStatistics elements;
  elements.count = tensor.numel();
  elements.least = std::numeric_limits<double>::infinity();
  elements.largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int64_t i = 0; i < elements.count; ++i) {
    const double value = tensor.at(i);
    if (!std::isfinite(value)) {
      ++elements.not_finite;
      continue;
    }
    elements.least = std::min(elements.least, value);
    elements.largest = std::max(elements.largest, value);
    sum += value;
  }
  const int64_t finite = elements.count - elements.not_finite;
  if (finite == 0) {
    elements.least = elements.largest = std::numeric_limits<double>::quiet_NaN();
  }
  elements.mean = sum / static_cast<double>(finite);
  return elements;
}

std::optional<Birthplace> value_birthplace(Tape& tape, Var loss) {
  const std::vector<Oddities> odd = oddities_of(tape);
  const auto first_nan = std::find_if(odd.begin(), odd.end(), [](const Oddities& at) { return at.nan; });
  const auto end = first_nan == odd.end() ? loss.id() : static_cast<NodeId>(first_nan - odd.begin());
  const std::vector<bool> leads = tape.ancestors(end);
  for (NodeId id = 0; id <= end; ++id) {
    const Oddities& at = odd[static_cast<size_t>(id)];
    if (leads[static_cast<size_t>(id)] && !at.none() && !at.masked) {
      const Node& node = tape.node(id);
      Birthplace place = place_of(node, Pass::forward, node.value);
      add_operands(tape, node, place);
      return place;
    }
  }
  return std::nullopt;
}

std::optional<Birthplace> gradient_birthplace(Tape& tape) {
  for (NodeId id = tape.size() - 1; id >= 0; --id) {
    const Node& node = tape.node(id);
    if (!has_gradient(node) || find_non_finite(node.grad) >= 0) {
      continue;
    }
    for (const NodeId input : node.inputs) {
      const Tensor& gradient = tape.node(input).grad;
      if (has_gradient(tape.node(input)) && find_non_finite(gradient) >= 0) {
        Birthplace place = place_of(node, Pass::backward, gradient);
        place.operands.push_back({"gradient of its result", node.grad.shape, element_statistics(node.grad)});
        add_operands(tape, node, place);
        return place;
      }
    }
  }
  return std::nullopt;
}

std::string birthplace_text(const Birthplace& place) {
  const bool is_forward = place.pass == Pass::forward;
  std::string text =
      fmt::format("the first value that is not finite: {} at element {} of {} {}, {} of #{} {} {}, called at {}",
                  place.value, place.index, is_forward ? "the result" : "an operand's gradient", place.shape,
                  is_forward ? "forward" : "backward", place.node, place.op, place.scope, place.called_at);
  for (const Birthplace::Operand& operand : place.operands) {
    const ElementStatistics& elements = operand.elements;
    text += fmt::format("\n  {} {}: {:.4g} to {:.4g}, mean {:.4g}, {} of {} not finite", operand.name, operand.shape,
                        elements.least, elements.largest, elements.mean, elements.not_finite, elements.count);
  }
  if (place.operands.empty()) {
    text += "\n  it was so before this pass";
  }
  return text;
}

}  // namespace minillm
