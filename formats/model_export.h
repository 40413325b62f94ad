#pragma once
// Models for other programs: one row a format, with what it cannot express.

#include "data/tokenizer.h"
#include "formats/weight_layout.h"
#include "formats/weight_type.h"
#include "nn/transformer.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct ModelToExport {
  const Transformer& model;    ///< allocated, its config derived
  const Tokenizer* tokenizer;  ///< null: none
  std::string name;            ///< the run's
  const WeightType& weights;   ///< of matrices
};

struct ExportFormat {
  std::string_view name;
  bool is_folder;
  std::optional<double> fixed_eps;  ///< of the norms: programs that read the format know no other
  bool all_weight_types;            ///< false: float32 only
  /// Why a model cannot be written so, the eps apart; none: it can be.
  std::vector<std::string> (*obstacles)(const ModelToExport& source);
  /// Writes into the empty folder, or the file, `path`; returns what is left out: "the tokenizer, ...", or "".
  std::string (*write)(const ModelToExport& source, const std::string& path);
};

/// The format of a name; throws an input Error about --format that lists all.
const ExportFormat& export_format(const std::string& name);
std::vector<std::string> export_format_names();

/// The weights of a model by name, as float32 in a file's layout.
class WeightsByName {
 public:
  explicit WeightsByName(const Transformer& model);

  /// Throws unless the model has it.
  std::vector<float> values(std::string_view name, const WeightLayout& layout = {}) const;

  /// Fills the columns of a transposed matrix that are this weight's.
  void write_columns(std::string_view name, const WeightLayout& layout, const Tensor& in_file) const;

  const Shape& shape(std::string_view name) const { return find(name).shape; }

 private:
  const Tensor& find(std::string_view name) const;

  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace minillm
