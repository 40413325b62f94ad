#pragma once
// Small files that are replaced whole or not at all.

#include <string>
#include <string_view>

namespace minillm {

/// Writes `<path>.tmp.<pid>` beside the target, flushes it to the disk and renames it over `path`: whoever looks sees
/// the old file or the new one. Throws an input Error when the folder cannot be written, a work Error when the disk
/// fails; nothing is left behind then.
void write_file_atomically(const std::string& path, std::string_view contents);

}  // namespace minillm
