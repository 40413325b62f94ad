#pragma once
// Checkpoints: everything a run needs to go on bit for bit, in one HDF5 file.
//
//   checkpoints/step_000500.h5   after 500 updates; best.h5 the same, of the lowest val_loss
//     /weights/<name>            every named tensor, float32 or float64
//     /optimizer/{m,v}/<name>    AdamW's moments; /optimizer/steps the number of its updates
//     /state/<key>               integers, numbers and texts: step, cursor, seed, bytes of metrics.jsonl, ...
//     /config, /tokenizer        the resolved TOML; the tokenizer as it lies in the data file
//
// A file appears whole or not at all (data/h5_file.h), and is checked before it is used: a damaged one is named and
// skipped for the one before.

#include "autograd/parameter.h"
#include "data/h5_file.h"
#include "optim/adamw.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

inline constexpr std::string_view checkpoint_format_name = "minillm-checkpoint";

/// What a run remembers beside its tensors, by name. Random streams are keyed, not stored: the seed is their state.
struct RunState {
  int64_t step = 0;                               ///< updates done
  std::map<std::string, int64_t> integers = {};   ///< "cursor", "seed", "metrics_bytes"
  std::map<std::string, double> numbers = {};     ///< "best_val_loss"; NaN and infinities keep their bits
  std::map<std::string, std::string> texts = {};  ///< "random_streams", "data_sha256"
};

/// What goes into one file. The store and the optimizer are read, not kept; without an optimizer (an imported model)
/// the file has weights only.
struct CheckpointContents {
  const ParameterStore& store;
  const AdamW* optimizer = nullptr;
  const RunState& state;
  std::string_view config;
  std::string_view tokenizer;
};

/// Writes run_folder/checkpoints/step_<step>.h5, then removes older ones so that `keep` (>= 1) stay. Returns the path.
/// A disk that fills is a work Error; the older checkpoints are untouched then.
std::string save_checkpoint(const std::string& run_folder, const CheckpointContents& contents, int64_t keep);

/// Writes run_folder/checkpoints/best.h5. Returns the path.
std::string save_best_checkpoint(const std::string& run_folder, const CheckpointContents& contents);

/// Removes what killed writers left behind, and says so. For the start of a run.
void clean_checkpoints(const std::string& run_folder);

/// The steps of the step_*.h5 files, ascending; damaged ones included.
std::vector<int64_t> checkpoint_steps(const std::string& run_folder);

/// run_folder/checkpoints/best.h5
std::string best_checkpoint_path(const std::string& run_folder);

/// run_folder/checkpoints/step_000500.h5
std::string checkpoint_path(const std::string& run_folder, int64_t step);

/// One open, checked checkpoint.
class Checkpoint {
 public:
  /// Checks the whole file's checksum and reads the state; throws an input Error that says what is wrong.
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return reader_.path(); }
  int64_t step() const { return state_.step; }
  const RunState& state() const { return state_; }
  /// A value of the state; an input Error names one that is missing.
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  std::string config() const;
  std::string tokenizer() const;
  bool has_optimizer() const;

  /// Throws an input Error when the file holds weights only, as that of an imported model does.
  void check_can_go_on() const;

  /// Fills the store's weights. Names and shapes must be the file's, else an input Error lists what differs, a line
  /// each, and nothing is changed. float32 and float64 are converted into each other.
  void load_weights(const ParameterStore& store) const;

  /// Fills `into`, float32 or float64 and of the stored shape, with one weight.
  void load_weight(std::string_view name, const Tensor& into) const;

  /// Fills both moments and the number of updates; the element type must be the same.
  void load_optimizer(const ParameterStore& store, AdamW& optimizer) const;

 private:
  void check_names_and_shapes(const ParameterStore& store, const std::string& group) const;

  H5Reader reader_;
  RunState state_;
};

/// The valid checkpoint with the most steps; damaged ones are named in a warning and skipped. Empty when there is none.
std::optional<Checkpoint> newest_checkpoint(const std::string& run_folder);

/// Whether the run was killed before its first checkpoint, so that a resume starts at step 0: its folder of checkpoints
/// is there, and no step's file in it, not even a damaged one.
bool awaits_first_checkpoint(const std::string& run_folder);

/// What a new training can take from a run.
enum class Continuation {
  resume,   ///< `train --resume` goes on with it
  weights,  ///< its newest valid checkpoint holds weights only: --init
  none,     ///< every checkpoint of its steps is damaged, or their folder is missing
};
Continuation continuation_of(const std::string& run_folder);

/// What a command reads from: `run` is a run's folder, or a checkpoint file; `which` is "last" (or ""), "best" or a
/// number of steps. An input Error lists the checkpoints there are when the one asked for is not.
Checkpoint open_checkpoint(const std::string& run, const std::string& which = "last");

}  // namespace minillm
