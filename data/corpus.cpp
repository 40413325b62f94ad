#include "data/corpus.h"

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "core/utf8.h"
#include "data/user_block.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace minillm {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr size_t pass_block_bytes = size_t{1} << 20;

/// UTF-16 without its mark shows as NUL in every other byte.
bool looks_like_utf16(std::string_view start) {
  if (start.substr(0, 2) == "\xff\xfe" || start.substr(0, 2) == "\xfe\xff") {
    return true;
  }
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < start.size(); ++i) {
    zeros[i % 2] += start[i] == '\0' ? 1 : 0;
  }
  const size_t most = std::max(zeros[0], zeros[1]);
  return start.size() >= 8 && std::min(zeros[0], zeros[1]) == 0 && most > start.size() / 5;
}

/// Text may hold a NUL or a bad byte here and there; where they are a third of all, it is something else.
bool looks_binary(std::string_view start) {
  const size_t size = start.size();
  size_t strange = 0;
  while (!start.empty()) {
    const size_t character = utf8_character(start);
    const unsigned char byte = static_cast<unsigned char>(start[0]);
    const bool control = byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f' && byte != 0x1b;
    strange += character == 0 || control ? 1 : 0;
    start.remove_prefix(std::max<size_t>(character, 1));
  }
  return strange * 3 > size;
}

/// A NUL, or bytes that are not UTF-8; a character that the end of `start` cuts is forgiven.
bool holds_other_than_text(std::string_view start) {
  while (!start.empty()) {
    const Utf8Front front = utf8_front(start);
    if (start[0] == '\0' || front.kind == Utf8Front::Kind::wrong) {
      return true;
    }
    start.remove_prefix(front.bytes);
  }
  return false;
}

void check_is_text(const std::string& path, uint64_t bytes) {
  const std::string start = read_bytes(path, size_t{1} << 16);
  if (looks_like_utf16(start)) {
    fail_input({.where = path,
                .what = "is UTF-16 text",
                .expected = "UTF-8",
                .hint = fmt::format("convert it: iconv -f UTF-16 -t UTF-8 '{}' > utf8.txt", path)});
  }
  const std::string kind = guess_file_kind(start.substr(0, UserBlock::size), bytes);
  // Text may begin with the letters that mark a format: GGUF, %PDF.
  const bool known_kind = kind != "text" && kind != "unknown binary data" && holds_other_than_text(start);
  if (known_kind || looks_binary(start)) {
    fail_input({.where = path,
                .what = "is not text: looks like " + kind,
                .hint = "give text files, or use import-tokens for token ids"});
  }
}

void add_file(Corpus& corpus, const std::string& path) {
  const uint64_t bytes = file_size(open_for_reading(path).get(), path);
  check_is_text(path, bytes);
  corpus.files.push_back({path, bytes});
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return !a.empty() && !b.empty() && fs::equivalent(a, b, error) && !error;
}

/// What a folder holds beside the text that is read, by name.
struct LeftOut {
  std::vector<std::string> folders;
  std::vector<std::string> empty;
  std::vector<std::string> broken;  // links to nothing, sockets, devices
};

std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t most = 5;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<ptrdiff_t>(std::min(most, names.size())));
  return join(shown) + (names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

void say_what_is_left_out(const std::string& folder, const LeftOut& left_out) {
  if (!left_out.folders.empty()) {
    log_info("{}: sub-folders are not read: {}", folder, first_names(left_out.folders));
  }
  if (!left_out.empty.empty()) {
    log_info("{}: empty files are left out: {}", folder, first_names(left_out.empty));
  }
  if (!left_out.broken.empty()) {
    log_warning("{}: no files, or links to nothing, are left out: {}", folder, first_names(left_out.broken));
  }
}

std::vector<std::string> sorted_entries(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    paths.push_back(entry->path().string());
  }
  if (error) {
    fail_input({.where = folder, .what = "cannot be read: " + error.message()});
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void add_folder(Corpus& corpus, const std::string& folder, const std::string& skip) {
  std::error_code error;
  LeftOut left_out;
  const size_t before = corpus.files.size();
  for (const std::string& path : sorted_entries(folder)) {
    const std::string name = fs::path(path).filename().string();
    if (name[0] == '.' || same_file(path, skip)) {
      continue;
    }
    if (fs::is_directory(path, error)) {
      left_out.folders.push_back(name);
    } else if (!fs::is_regular_file(path, error)) {
      left_out.broken.push_back(name);
    } else if (name == "SOURCE") {
      log_info("{}: SOURCE is recorded as where the text comes from, and not read as text", folder);
      corpus.provenance += read_bytes(path, 4096);
    } else if (fs::file_size(path) == 0) {
      left_out.empty.push_back(name);
    } else {
      add_file(corpus, path);
    }
  }
  say_what_is_left_out(folder, left_out);
  if (corpus.files.size() == before) {
    fail_input(
        {.where = folder, .what = "the folder holds no text files", .hint = "files in sub-folders are not read"});
  }
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

void survey_text(std::string_view text, CorpusSurvey& survey) {
  survey.bytes += static_cast<int64_t>(text.size());
  survey.blank = survey.blank && std::all_of(text.begin(), text.end(), is_blank);
  survey.nul_bytes += std::count(text.begin(), text.end(), '\0');
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', end + 1)) {
    ++survey.lines;
    survey.crlf_lines += end > 0 && text[end - 1] == '\r' ? 1 : 0;
  }
  for (size_t i = 0; i < text.size();) {
    const size_t character = utf8_character(text.substr(i));
    survey.invalid_bytes += character == 0 ? 1 : 0;
    i += std::max<size_t>(character, 1);
  }
}

}  // namespace

Corpus find_corpus(const std::vector<std::string>& inputs, const std::optional<std::string>& separator,
                   const std::string& skip) {
  Corpus corpus;
  corpus.separator = separator;
  if (inputs.empty()) {
    fail_input({.what = "no text was given", .hint = "name files or folders"});
  }
  for (const std::string& input : inputs) {
    std::error_code error;
    if (fs::is_directory(input, error)) {
      add_folder(corpus, input, skip);
      continue;
    }
    if (same_file(input, skip)) {
      fail_input({.where = input, .what = "is both the input and the output"});
    }
    if (file_size(open_for_reading(input).get(), input) == 0) {
      fail_input({.where = input, .what = "the file is empty (0 bytes)"});
    }
    add_file(corpus, input);
  }
  return corpus;
}

CorpusReader::CorpusReader(const Corpus& corpus, size_t block_bytes, Sha256* hash, const Tokenizer* tokenizer)
    : corpus_(corpus), block_bytes_(block_bytes), hash_(hash), tokenizer_(tokenizer) {
  check(block_bytes >= 16, "blocks of {} bytes are too small", block_bytes);
}

bool CorpusReader::open_next() {
  if (next_file_ == corpus_.files.size()) {
    return false;
  }
  file_ = open_for_reading(corpus_.files[next_file_].path);
  ++next_file_;
  file_bytes_ = 0;
  file_ended_ = false;
  at_line_start_ = true;
  starts_document_ = true;
  return true;
}

void CorpusReader::fill() {
  if (file_ended_ || pending_.size() - begin_ >= block_bytes_) {
    return;
  }
  pending_.erase(0, begin_);
  begin_ = 0;
  const size_t old_size = pending_.size();
  pending_.resize(2 * block_bytes_);
  const size_t wanted = pending_.size() - old_size;
  const size_t got = read_fully(file_.get(), pending_.data() + old_size, wanted, corpus_.files[next_file_ - 1].path);
  pending_.resize(old_size + got);
  if (hash_ != nullptr) {
    hash_->update(pending_.data() + old_size, got);
  }
  file_bytes_ += got;
  file_ended_ = got < wanted;
  check_size();
}

/// The passes must see the same text: what one counts another one cuts and encodes.
void CorpusReader::check_size() const {
  const CorpusFile& file = corpus_.files[next_file_ - 1];
  if (file_bytes_ > file.bytes || (file_ended_ && file_bytes_ < file.bytes)) {
    fail_input({.where = file.path,
                .what = "changed while the text was read",
                .found = fmt::format("{} bytes", std::max(file_bytes_, file_size(file_.get(), file.path))),
                .expected = fmt::format("{} bytes", file.bytes),
                .hint = changed_text_hint});
  }
}

/// At most block_bytes_ of what is pending, up to where the tokenizer would cut it, else to a line end if there is one.
size_t CorpusReader::block_length() const {
  const std::string_view text = std::string_view(pending_).substr(begin_);
  if (text.size() <= block_bytes_ && file_ended_) {
    return text.size();
  }
  const std::string_view block = text.substr(0, block_bytes_);
  const size_t cut = tokenizer_ != nullptr ? tokenizer_->cut(block) : 0;
  const size_t newline = block.rfind('\n');
  if (cut > 0) {
    return cut;
  }
  return newline != std::string_view::npos ? newline + 1 : utf8_cut(text, std::min(block_bytes_, text.size() - 4));
}

/// Where the first separator line of `text` begins, and its length with the line end; npos when there is none.
size_t CorpusReader::separator_line(std::string_view text, size_t& line_bytes) const {
  const bool reaches_end = file_ended_ && begin_ + text.size() == pending_.size();
  bool line_start = at_line_start_;
  for (size_t start = 0; corpus_.separator && start < text.size(); line_start = true) {
    const size_t newline = text.find('\n', start);
    const bool whole = newline != std::string_view::npos || reaches_end;
    const size_t end = newline != std::string_view::npos ? newline : text.size();
    std::string_view line = text.substr(start, end - start);
    if (!line.empty() && line.back() == '\r' && line != *corpus_.separator) {
      line.remove_suffix(1);
    }
    if (line_start && whole && line == *corpus_.separator) {
      line_bytes = std::min(end + 1, text.size()) - start;
      return start;
    }
    start = end + 1;
  }
  return std::string_view::npos;
}

void CorpusReader::take(size_t count, CorpusBlock& block) {
  block.text.assign(pending_, begin_, count);
  block.starts_document = std::exchange(starts_document_, false);
  begin_ += count;
  at_line_start_ = block.text.back() == '\n';
}

bool CorpusReader::next(CorpusBlock& block) {
  while (true) {
    if (!file_ && !open_next()) {
      return false;
    }
    fill();
    if (begin_ == pending_.size() && file_ended_) {
      file_.close();
      continue;
    }
    size_t length = block_length();
    size_t line_bytes = 0;
    const size_t separator = separator_line(std::string_view(pending_).substr(begin_, length), line_bytes);
    if (separator == 0) {
      begin_ += line_bytes;
      at_line_start_ = true;
      starts_document_ = true;
      continue;
    }
    take(std::min(length, separator), block);
    return true;
  }
}

CorpusSurvey survey_corpus(const Corpus& corpus) {
  CorpusSurvey survey;
  Sha256 hash;
  CorpusReader reader(corpus, pass_block_bytes, &hash);
  CorpusBlock block;
  while (reader.next(block)) {
    survey.documents += block.starts_document ? 1 : 0;
    survey_text(block.text, survey);
  }
  for (const CorpusFile& file : corpus.files) {
    survey.bom_files += read_bytes(file.path, byte_order_mark.size()) == byte_order_mark ? 1 : 0;
  }
  survey.sha256 = hash.hex();
  if (survey.blank) {
    fail_input({.where = corpus.files.front().path,
                .what = "the text is blank: nothing but blanks and line ends",
                .found = fmt::format("{} bytes in {}", survey.bytes,
                                     counted(static_cast<int64_t>(corpus.files.size()), "file"))});
  }
  return survey;
}

CorpusCut cut_corpus(const Corpus& corpus, int64_t bytes, double val_share) {
  const int64_t target = bytes - static_cast<int64_t>(std::floor(static_cast<double>(bytes) * val_share));
  if (target >= bytes) {
    return {bytes, true};
  }
  CorpusReader reader(corpus, pass_block_bytes);
  CorpusBlock block;
  int64_t position = 0;
  int64_t line_end_before = 0;
  int64_t between_characters = 0;
  while (reader.next(block)) {
    const std::string_view text = block.text;
    if (block.starts_document && position > 0) {  // a document's end is a line end, also without a newline
      if (position >= target) {
        return {position, true};
      }
      line_end_before = position;
    }
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', end + 1)) {
      const int64_t line_end = position + static_cast<int64_t>(end) + 1;
      if (line_end >= target && line_end < bytes) {
        return {line_end, true};
      }
      line_end_before = line_end < target ? line_end : line_end_before;
    }
    const int64_t block_end = position + static_cast<int64_t>(text.size());
    if (position < target && target <= block_end) {
      const size_t offset = static_cast<size_t>(target - position);
      between_characters = position + static_cast<int64_t>(utf8_cut(text, std::max<size_t>(offset, 8)));
    }
    position = block_end;
  }
  return line_end_before > 0 ? CorpusCut{line_end_before, true} : CorpusCut{between_characters, false};
}

}  // namespace minillm
