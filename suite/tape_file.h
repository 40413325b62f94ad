#pragma once
// A recorded tape as a file, in the form that its name asks for: a table, a graph for Graphviz, a page.

#include "train/tape_record.h"

#include <string>

namespace minillm {

/// Throws an input Error where no tape can be written: another name than .txt, .dot or .html, a folder, or a file that
/// somebody else put there. `option` names what asked for it.
void check_tape_file(const std::string& path, const std::string& option);

/// Writes the file whole or not at all, its folder too; check_tape_file comes first.
void write_tape_file(const std::string& path, const TapeRecord& record);

}  // namespace minillm
