#pragma once
// The page of a step's tape: its nodes as a table beside the lanes of their values, coloured by time or bytes.

#include "train/tape_record.h"

#include <string>

namespace minillm {

/// The first words of the page, which tell it from other people's.
inline constexpr const char* tape_page_mark = "The page of `minillm train --dump-tape`";

/// The page as one file that needs nothing beside itself.
std::string tape_page(const TapeRecord& record);

}  // namespace minillm
