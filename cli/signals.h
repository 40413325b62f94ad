#pragma once
// Ctrl-C and kill: the first asks the work to stop at the next safe place, a second one stops at once.

namespace minillm::cli {

/// Exit status of a command that a signal stopped after everything was saved.
constexpr int stopped_by_signal = 3;

/// Handles SIGINT and SIGTERM from here on. The first is remembered and announced on standard error; a second leaves
/// the process with 130 (SIGINT) or 143 (SIGTERM): files under their final names are whole at any moment.
void install_signal_handlers();

/// Whether a signal arrived. Cheap: asked after every step.
bool stop_requested();

}  // namespace minillm::cli
