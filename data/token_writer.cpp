#include "data/token_writer.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "data/token_file.h"
#include "data/unigram.h"
#include "data/user_block.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

/// A file of another kind under the target's name, a checkpoint too, is somebody's work, and the name most likely a
/// slip. A data file may be damaged as long as its header still says what it was.
void refuse_foreign_file(const std::string& path) {
  struct stat existing = {};
  if (::stat(path.c_str(), &existing) != 0 || !S_ISREG(existing.st_mode) || existing.st_size == 0) {
    return;
  }
  const std::string start = read_bytes(path, UserBlock::size);
  const std::string format = format_of(start);
  if (format != token_format().name) {
    fail_input({.where = path,
                .what = "exists and is no data file of minillm",
                .found = format.empty() ? guess_file_kind(start, static_cast<uint64_t>(existing.st_size))
                                        : "a " + printable(format) + " file",
                .expected = "a new name, or a " + token_format().name + " file to replace",
                .hint = "give another name, or remove the file"});
  }
}

/// Asking for more memory than there is ends in a kill, not in an error.
void check_counts_fit_memory(int64_t vocab_size) {
  const double bytes = 2.0 * sizeof(int64_t) * static_cast<double>(vocab_size);  // a table for each split
  if (bytes > physical_memory()) {
    fail_input({.where = "--vocab",
                .what = "the counts of so many ids do not fit this machine's memory",
                .found = fmt::format("{} for {} ids", bytes_text(bytes), vocab_size),
                .expected = "at most " + bytes_text(physical_memory()),
                .hint = "give the size of the vocabulary that the tokens belong to"});
  }
}

}  // namespace

/// One dataset, its counts, and the streams for both widths, of which one is open.
struct SplitStream {
  explicit SplitStream(const char* dataset) : name(dataset) {}

  std::string name;
  std::unique_ptr<H5Stream<uint16_t>> narrow;
  std::unique_ptr<H5Stream<uint32_t>> wide;
  std::vector<int64_t> counts;
  int64_t tokens = 0;

  void begin(H5Writer& writer, int64_t vocab_size) {
    counts.assign(static_cast<size_t>(vocab_size), 0);
    if (vocab_size <= 65536) {
      narrow = std::make_unique<H5Stream<uint16_t>>(writer, name);
    } else {
      wide = std::make_unique<H5Stream<uint32_t>>(writer, name);
    }
  }

  void append(const std::vector<int32_t>& ids) {
    count(ids);
    if (narrow) {
      const std::vector<uint16_t> stored(ids.begin(), ids.end());
      narrow->append(stored.data(), stored.size());
    } else {
      const std::vector<uint32_t> stored(ids.begin(), ids.end());
      wide->append(stored.data(), stored.size());
    }
  }

  void count(const std::vector<int32_t>& ids) {
    for (int32_t id : ids) {
      if (id < 0 || static_cast<size_t>(id) >= counts.size()) {
        fail_input({.where = name,
                    .what = fmt::format("the token at position {} is outside the vocabulary", tokens),
                    .found = std::to_string(id),
                    .expected = fmt::format("ids below {}", counts.size())});
      }
      ++counts[static_cast<size_t>(id)];
      ++tokens;
    }
  }

  void finish() {
    if (narrow) {
      narrow->finish();
    } else {
      wide->finish();
    }
  }
};

struct TokenWriter::State {
  explicit State(const std::string& path) : writer(path, token_format()) {}

  H5Writer writer;
  SplitStream splits[2] = {SplitStream("/train"), SplitStream("/val")};
  int64_t vocab_size = 0;

  SplitStream& of(Split split) { return splits[static_cast<size_t>(split)]; }
};

TokenWriter::TokenWriter(const std::string& path) {
  refuse_foreign_file(path);
  state_ = std::make_unique<State>(path);
}
TokenWriter::~TokenWriter() = default;

void TokenWriter::begin(int64_t vocab_size) {
  check(vocab_size >= smallest_token_vocabulary && vocab_size <= INT32_MAX, "a vocabulary of {} is impossible",
        vocab_size);
  check_counts_fit_memory(vocab_size);
  state_->vocab_size = vocab_size;
  for (SplitStream& split : state_->splits) {
    split.begin(state_->writer, vocab_size);
  }
}

void TokenWriter::append(Split split, const std::vector<int32_t>& ids) {
  state_->of(split).append(ids);
}

int64_t TokenWriter::tokens(Split split) const {
  return state_->of(split).tokens;
}

const std::vector<int64_t>& TokenWriter::counts(Split split) const {
  return state_->of(split).counts;
}

double TokenWriter::unigram_loss() const {
  return minillm::unigram_loss(counts(Split::train), counts(Split::val));
}

std::string TokenWriter::finish(const std::string& source, const Tokenizer* tokenizer, std::optional<Bytes> bytes) {
  H5Writer& writer = state_->writer;
  for (SplitStream& split : state_->splits) {
    split.finish();
  }
  const H5Format format = token_format();
  writer.set_attribute("/", "format", format.name);
  writer.set_attribute("/", "version", int64_t{format.version});
  writer.set_attribute("/", "vocab_size", state_->vocab_size);
  writer.set_attribute("/", "source", source);
  writer.set_attribute("/", "tokenizer_sha256", tokenizer == nullptr ? "" : tokenizer->sha256());
  if (tokenizer != nullptr) {
    writer.write_bytes("/tokenizer", tokenizer->serialized());
  }
  if (bytes) {
    writer.set_attribute("/train", "bytes", bytes->train);
    writer.set_attribute("/val", "bytes", bytes->val);
  }
  const double loss = unigram_loss();
  if (std::isfinite(loss)) {
    writer.set_attribute("/", "unigram_loss", loss);
  }
  return writer.commit();
}

}  // namespace minillm
