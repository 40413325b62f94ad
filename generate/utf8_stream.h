#pragma once
// Text that arrives byte by byte, shown character by character: a token may hold a third of a character.

#include <string>
#include <string_view>

namespace minillm {

/// Collects bytes and gives them back as whole UTF-8 characters.
///
/// Joined, the pieces and the flushed end equal the bytes fed when these are valid UTF-8, however they were cut. Bytes
/// that are not UTF-8 become U+FFFD, one for each longest part that could have begun a character (Unicode 15, section
/// 3.9, "substitution of maximal subparts"; Python's and browsers' rule), or pass as they are.
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
  void take(unsigned char byte, std::string& out);
  void reject(std::string& out);

  Invalid invalid_;
  std::string pending_;    // the beginning of a character
  int missing_ = 0;        // bytes it still needs
  unsigned char low_ = 0;  // the range its next byte must lie in
  unsigned char high_ = 0;
};

/// The whole text with what is not UTF-8 replaced.
std::string valid_utf8(std::string_view bytes);

}  // namespace minillm
