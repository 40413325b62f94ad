#pragma once
// A run: a config becomes a folder with a trained model. Starts, resumes, evaluates, saves, stops.

#include "train/config_file.h"
#include "train/tape_record.h"

#include <functional>
#include <string>
#include <vector>

namespace minillm {

enum class RunEnd {
  finished,  ///< all steps done, or the time limit reached
  stopped,   ///< asked to stop; everything is saved
};

/// What is asked of a session, new or resumed.
struct SessionOptions {
  bool (*stop_requested)() = nullptr;  ///< asked after every step
  bool trace_nan = false;              ///< a step that is not finite is made again, to tell where it began
  std::function<void(const TapeRecord&)> look_at_step = nullptr;  ///< called with the tape of the session's first step
};

/// `minillm train CONFIG`
struct StartRequest {
  LoadedConfig loaded;
  std::string init;    ///< weights to start from: a safetensors file or a run, kept as the checkpoint
                       ///< of step 0; "" = from the seed
  bool force = false;  ///< an existing folder is moved aside
  SessionOptions session;
};
RunEnd start_run(const StartRequest& request);

/// `minillm train --resume DIR`: goes on from the newest valid checkpoint, bit for bit; at step 0 when there is none.
struct ResumeRequest {
  std::string folder;
  std::vector<std::string> overrides = {};  ///< "optim.lr=1e-4"; [model] and the data must stay as they were
  SessionOptions session = {};
};
RunEnd resume_run(const ResumeRequest& request);

}  // namespace minillm
