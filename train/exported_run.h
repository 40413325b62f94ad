#pragma once
// `minillm export`: a run's weights and tokenizer in another tool's format, read back and compared before they get
// their name.

#include <cstddef>
#include <cstdint>
#include <string>

namespace minillm {

struct ExportRequest {
  std::string run;         ///< a run's folder or a checkpoint
  std::string checkpoint;  ///< "last", "best" or a number of steps
  std::string format;      ///< a row of the table in formats/model_export.cpp
  std::string out;         ///< the folder to make, or the file
  std::string weights;     ///< a type of formats/weight_type.h; "" = f32
  bool allow_eps = false;  ///< also where the format's programs add another eps under the root of norms
};

/// The largest difference of logits between the run and what was read back that an export may have.
inline constexpr double most_logit_difference = 1e-4;

struct ExportedRun {
  std::string checkpoint;
  std::string format;  ///< as its reader calls it
  std::string out;
  std::string left_out;    ///< "" = nothing
  int64_t tokens = 0;      ///< that were compared
  double difference = 0;   ///< the largest of a logit
  std::string weights;     ///< the matrices' type
  double rounding = 0;     ///< the largest difference of a logit that its rounding makes
  bool other_eps = false;  ///< the format's is another than the run's
  double eps = 0;          ///< the run's
  double format_eps = 0;
  double eps_difference = 0;  ///< the largest of a logit under the format's eps
  bool has_tokenizer = false;
  int64_t pieces = 0;  ///< of the tokenizer, read back and equal

  std::string to_text() const;
};

/// Writes request.out. It is written under another name, opened with the reader of `import`, and its logits on up to 64
/// tokens are compared with the run's; only then it gets its name. Throws an input Error when the run cannot be
/// expressed in the format or something stands at `out`, a work Error when the logits differ by more than
/// most_logit_difference or the disk fills; nothing is left then.
ExportedRun export_run(const ExportRequest& request);

}  // namespace minillm
