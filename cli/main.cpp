// minillm: finds the command, runs it, turns errors into one message and an exit status.

#include "cli/command.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/kernels/gemm.h"
#include "core/kernels/instruction_set.h"
#include "core/openmp_runtime.h"
#include "core/text.h"
#include "data/h5_version.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

namespace minillm::cli {

namespace {

std::vector<Command> all_commands() {
  return {prepare_command(),    import_tokens_command(), import_command(),  export_command(),    train_command(),
          check_command(),      ledger_command(),        lint_command(),    lesson_command(),    eval_command(),
          generate_command(),   chat_command(),          inspect_command(), gradcheck_command(), bench_command(),
          experiment_command(), report_command()};
}

std::string overview(const std::vector<Command>& commands) {
  std::string text = "minillm " + version() + ": trains small Transformers from configs\n\nCommands:\n";
  for (const Command& command : commands) {
    text += fmt::format("  {:<14} {}\n", command.spec.name, command.spec.summary);
  }
  return text +
         "\nminillm COMMAND --help shows a command's options with an example.\n"
         "To begin: minillm prepare TEXT.txt --out data.h5\n"
         "    then: minillm train configs/baseline.toml data.path=data.h5\n"
         "  or now: minillm train configs/tiny.toml          (a generated corpus, a minute, no files needed)\n";
}

std::string version_text() {
  const std::string of_commit = commit().empty() ? "" : " (commit " + commit() + ")";
  const std::string onednn = onednn_version().empty() ? "none" : onednn_version();
  return fmt::format("minillm {}{}\ncompiler {}\nproducts by {}\noneDNN {}\nHDF5 {}\n", version(), of_commit,
                     compiler(), kernels::gemm_engine(), onednn, hdf5_version());
}

const Command& find_command(const std::vector<Command>& commands, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.spec.name == name) {
      return command;
    }
    names.push_back(command.spec.name);
  }
  const std::string near = did_you_mean(name, names);
  fail_input({.where = "minillm",
              .what = "unknown command " + printable(name),
              .hint = near.empty() ? "commands are " + join(names) : near});
}

int run(std::vector<std::string> typed) {
  const std::vector<Command> commands = all_commands();
  const std::string first = typed.empty() ? "help" : typed.front();
  const bool help = first == "help" || first == "--help" || first == "-h";
  if (help && typed.size() < 2) {
    std::fputs(overview(commands).c_str(), stdout);
    return 0;
  }
  if (first == "--version") {
    std::fputs(version_text().c_str(), stdout);
    return 0;
  }
  const Command& command = find_command(commands, help ? typed[1] : first);
  typed.erase(typed.begin());
  if (help || asks_for_help(command.spec, typed)) {
    std::fputs(help_text(command.spec).c_str(), stdout);
    return 0;
  }
  static_cast<void>(
      kernels::widest_instruction_set());  // a wrong MINILLM_MAX_ISA ends here, before anything is written
  return command.run(parse_arguments(command.spec, typed));
}

int report(const char* message, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", without_controls(message).c_str());
  return status;
}

const std::string output_failure = "standard output cannot be written: ";

/// Results that never reached their file are failed work: a full disk behind `> file` shows only here.
int flush_results(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return status;
  }
  return report((output_failure + system_error_text(errno)).c_str(), 1);
}

/// A file opened under the number of a closed standard stream would receive what is meant for that stream.
void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      const int opened = ::open("/dev/null", O_RDWR);  // takes the lowest free number: this one
      static_cast<void>(opened);
    }
  }
}

}  // namespace

int guarded_run(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report, not the end of the process
  try {
    refuse_two_openmp_runtimes();
    return flush_results(run({argv + std::min(argc, 1), argv + argc}));
  } catch (const Error& error) {
    return report(error.what(), static_cast<int>(error.fault()));
  } catch (const std::filesystem::filesystem_error& error) {  // a name that no file system takes, a loop of links
    return report(fmt::format("{}: {}", error.path1().string(), error.code().message()).c_str(), 2);
  } catch (const std::system_error& error) {  // a full disk may show before the last flush
    const bool is_output = std::ferror(stdout) != 0;
    return report((is_output ? output_failure + error.code().message() : error.what()).c_str(), 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory; a smaller train.micro_batch_size, data.seq_len or model needs less", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  } catch (...) {
    return report("an unknown failure", 1);
  }
}

}  // namespace minillm::cli

int main(int argc, char** argv) {
  return minillm::cli::guarded_run(argc, argv);
}
