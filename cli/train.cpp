// minillm train: a training run, new or resumed.

#include "cli/command.h"
#include "cli/signals.h"
#include "core/log.h"
#include "suite/tape_file.h"
#include "train/config_keys.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/tape_drawing.h"

namespace minillm::cli {

namespace {

/// --out and --threads are short for keys of the config.
std::vector<std::string> overrides_of(const Arguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides();
  const auto add = [&](const std::string& option, const std::string& key, const std::string& value) {
    for (const std::string& setting : arguments.overrides()) {
      if (setting.starts_with(key + "=")) {
        fail_input(
            {.where = "--" + option, .what = "says the same as " + key, .found = setting, .hint = "leave one out"});
      }
    }
    overrides.push_back(key + "=" + value);
  };
  if (arguments.given("out")) {
    check_folder_name(arguments.text("out"));
    add("out", "run.out", toml_quoted(arguments.text("out")));
  }
  if (arguments.given("threads")) {
    add("threads", "train.threads", fmt::format("{}", arguments.integer("threads", 0, most_threads)));
  }
  return overrides;
}

SessionOptions session_of(const Arguments& arguments) {
  SessionOptions session = {.stop_requested = stop_requested, .trace_nan = arguments.given("trace-nan")};
  if (arguments.given("dump-tape")) {
    const std::string path = arguments.text("dump-tape");
    check_tape_file(path, "--dump-tape");  // before the work
    session.look_at_step = [path](const TapeRecord& record) {
      write_tape_file(path, record);
      log_info("the tape of step {} is in {}: {}", record.step, path, tape_summary(record));
    };
  }
  return session;
}

RunEnd start_or_resume(const Arguments& arguments) {
  if (arguments.given("resume")) {
    for (const char* option : {"init", "force", "out"}) {
      if (arguments.given(option)) {
        fail_input({.where = fmt::format("--{}", option),
                    .what = "does not go with --resume",
                    .hint = "a resumed run keeps its folder and its weights"});
      }
    }
    if (!arguments.words().empty()) {
      fail_input({.where = "train",
                  .what = "a resumed run brings its own config",
                  .found = arguments.words().front(),
                  .hint = "leave the config out; section.key=value changes a setting"});
    }
    return resume_run(
        {.folder = arguments.text("resume"), .overrides = overrides_of(arguments), .session = session_of(arguments)});
  }
  if (arguments.words().empty()) {
    fail_input({.where = "train",
                .what = "a config is missing",
                .expected = "CONFIG.toml or --resume DIR",
                .hint = "minillm train configs/tiny.toml"});
  }
  StartRequest request;
  request.loaded = load_config(arguments.words().front(), overrides_of(arguments));
  request.init = arguments.text("init");
  request.force = arguments.given("force");
  request.session = session_of(arguments);
  return start_run(request);
}

int run_train(const Arguments& arguments) {
  install_signal_handlers();
  return start_or_resume(arguments) == RunEnd::stopped ? stopped_by_signal : 0;
}

}  // namespace

Command train_command() {
  return {{.name = "train",
           .words = "CONFIG.toml",
           .summary = "a training run; --resume DIR goes on with one",
           .max_words = 1,
           .overrides = true,
           .options = {{"resume", "DIR", "", "go on from DIR's newest valid checkpoint, bit for bit"},
                       {"out", "DIR", "", "the run's folder (run.out; default runs/<config's name>)"},
                       {"init", "W.safetensors|RUN", "", "weights to start from; the run begins at step 0"},
                       {"threads", "N", "", "threads (train.threads; 0 = the usable cores)"},
                       {"force", "", "", "move an existing run to DIR.old instead of refusing"},
                       {"trace-nan", "", "", "when a step is not finite, make it again and tell where that began"},
                       {"dump-tape", "FILE", "", "the first step's tape: .txt a table, .dot for Graphviz, .html"}},
           .examples = {"minillm train configs/baseline.toml data.path=corpora/austen.h5 optim.lr=3e-3",
                        "minillm train --resume runs/baseline train.steps=500"}},
          run_train};
}

}  // namespace minillm::cli
