#pragma once
// Ctrl-C, kill, a terminal that is closed, a batch system's time limit: the first asks the work to stop at the next
// safe place, a second one stops at once.

namespace minillm::cli {

/// Exit status of a command that a signal stopped after everything was saved.
constexpr int stopped_by_signal = 3;

/// Handles SIGINT, SIGTERM, SIGHUP and SIGXCPU from here on, but for those that the parent ignores. The first is
/// remembered and announced on standard error; a second leaves the process with 128 + its number: files under their
/// final names are whole at any moment. SIGXCPU comes again by itself and is no second one. A standard error that
/// nobody reads any more is no reason to stop either (SIGPIPE).
void install_signal_handlers();

/// Whether a signal arrived. Cheap: asked after every step.
bool stop_requested();

}  // namespace minillm::cli
