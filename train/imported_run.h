#pragma once
// `minillm import`: a run's folder made of another tool's weights, to evaluate and to start from with --init.

#include "formats/foreign_model.h"
#include "nn/transformer.h"
#include "train/config_file.h"

#include <cstddef>
#include <string>

namespace minillm {

struct ImportRequest {
  std::string file;    ///< or folder, in one of the formats of formats/foreign_model.h
  std::string out;     ///< the run's folder
  bool force = false;  ///< an existing folder is moved aside
};

struct ImportedRun {
  std::string file;
  std::string format;      ///< "llm.c, GPT-2, version 3 (float32)"
  std::string dropped;     ///< what the file has and the model has not; "" = nothing
  Config config;           ///< resolved; config.run.out is the folder
  std::string checkpoint;  ///< the weights' file, read back and compared with `file`
  size_t tensors = 0;      ///< by name
  bool has_tokenizer = false;
  std::string tokenizer_file;  ///< for `prepare --tokenizer`; "" = the model was made here, or there is none
  std::string parameters;      ///< a table of the parts

  std::string to_text() const;  ///< what was made, and the next commands

 private:
  std::string next_commands(const std::string& folder) const;
};

/// The config of a run in `out` with the model of `file`: what that fixes, defaults for the rest.
LoadedConfig config_for(const ForeignModel& model, const std::string& file, const std::string& out);

/// Takes float32 weights, and fills them from the file. Throws an input Error where one is not finite.
void read_foreign_weights(Transformer& model, const WeightFile& file);

/// Writes request.out: config.toml, and checkpoints/step_000000.h5 with weights alone. Everything that can be wrong
/// with the file is told before the folder is made; until the weights were read back and equal the file's bit for bit
/// it has no config.toml, so it is no run. Throws as create_run_folder and open_foreign_model; a work Error when the
/// disk fills or gives back other values.
ImportedRun import_run(const ImportRequest& request);

}  // namespace minillm
