#pragma once
// Text files as a stream of documents, read block by block: what `prepare` walks several times, with bounded memory.

#include "data/file_descriptor.h"
#include "data/sha256.h"
#include "data/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct CorpusFile {
  std::string path;
  uint64_t bytes = 0;
};

struct Corpus {
  std::vector<CorpusFile> files;
  std::optional<std::string> separator;  ///< a line equal to it stands between two documents and belongs to neither
  std::string provenance;                ///< what files named SOURCE in the folders say
};

/// Files as given; a folder stands for its files, sorted by name. Left out are hidden files and `skip`, and, with a
/// line to standard error, SOURCE (the folder's provenance), sub-folders, empty files and links to nothing. Throws an
/// input Error for what is missing, empty, UTF-16 (with the conversion) or not text.
Corpus find_corpus(const std::vector<std::string>& inputs, const std::optional<std::string>& separator,
                   const std::string& skip = "");

struct CorpusBlock {
  std::string text;
  bool starts_document = false;
};

/// Blocks of about block_bytes, cut where a tokenizer's ids allow it or at line ends; a longer line is cut at a blank
/// or between two characters. Every document begins a block; empty documents do not exist.
class CorpusReader {
 public:
  /// `hash`, where one is given, sees the bytes of the files, one after the other. `tokenizer`: the blocks are for it.
  CorpusReader(const Corpus& corpus, size_t block_bytes, Sha256* hash = nullptr, const Tokenizer* tokenizer = nullptr);

  /// False at the end of the last file. Throws an input Error when a file has not the size that find_corpus found.
  bool next(CorpusBlock& block);

 private:
  bool open_next();
  void fill();
  void check_size() const;
  size_t block_length() const;
  size_t separator_line(std::string_view text, size_t& line_bytes) const;
  void take(size_t count, CorpusBlock& block);

  const Corpus& corpus_;
  size_t block_bytes_;
  Sha256* hash_;
  const Tokenizer* tokenizer_;
  size_t next_file_ = 0;
  FileDescriptor file_;
  std::string pending_;
  size_t begin_ = 0;         // of what is left in pending_
  uint64_t file_bytes_ = 0;  // read of file_
  bool file_ended_ = false;
  bool at_line_start_ = true;
  bool starts_document_ = true;
};

/// What one pass over a corpus finds.
struct CorpusSurvey {
  int64_t bytes = 0;  ///< of documents: separator lines do not count
  int64_t documents = 0;
  int64_t lines = 0;
  int64_t crlf_lines = 0;
  int64_t bom_files = 0;  ///< files that begin with a byte order mark
  int64_t nul_bytes = 0;
  int64_t invalid_bytes = 0;  ///< bytes that are not well-formed UTF-8
  bool blank = true;          ///< nothing but blanks, tabs and line ends
  std::string sha256;         ///< of the files' bytes, one after the other
};

CorpusSurvey survey_corpus(const Corpus& corpus);

/// What to do about text that changes between or during passes.
inline constexpr const char* changed_text_hint = "run it again when nothing writes to the text";

/// Where /val begins, counted in bytes of documents: the first line end (or document end) that leaves at most val_share
/// of the bytes behind it; the last one before when none is left; between two characters in a text of one line
/// (`at_line_end` says which).
struct CorpusCut {
  int64_t train_bytes = 0;
  bool at_line_end = true;
};

CorpusCut cut_corpus(const Corpus& corpus, int64_t bytes, double val_share);

}  // namespace minillm
