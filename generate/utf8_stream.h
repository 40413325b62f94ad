#pragma once
// Text that arrives byte by byte, shown character by character: a token may hold a third of a character.

#include <string>
#include <string_view>

namespace minillm {

/// Collects bytes and gives them back as whole UTF-8 characters.
///
/// Joined, the pieces and the flushed end equal the bytes fed when these are valid UTF-8, however they were cut. Bytes
/// that are not UTF-8 become what valid_utf8 (core/utf8.h) makes of them, or pass as they are.
class CharacterStream {
 public:
  enum class Invalid {
    replace,  ///< for terminals and JSON
    keep      ///< for files: the bytes themselves
  };

  explicit CharacterStream(Invalid invalid = Invalid::replace) : invalid_(invalid) {}

  /// The characters that are complete now. At most 3 bytes are held back.
  std::string feed(std::string_view bytes);

  /// What was held back, at the end of the text.
  std::string flush();

 private:
  Invalid invalid_;
  std::string pending_;  // the beginning of a character
};

}  // namespace minillm
