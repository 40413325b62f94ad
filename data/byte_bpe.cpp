#include "data/byte_bpe.h"

#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "data/byte_bpe_file.h"
#include "data/word_pattern.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>
#include <utility>

namespace minillm {

namespace {

/// Unicode's White_Space.
constexpr std::string_view white_space[] = {" ",
                                            "\t",
                                            "\n",
                                            "\v",
                                            "\f",
                                            "\r",
                                            "\xc2\x85",
                                            "\xc2\xa0",
                                            "\xe1\x9a\x80",
                                            "\xe2\x80\x80",
                                            "\xe2\x80\x81",
                                            "\xe2\x80\x82",
                                            "\xe2\x80\x83",
                                            "\xe2\x80\x84",
                                            "\xe2\x80\x85",
                                            "\xe2\x80\x86",
                                            "\xe2\x80\x87",
                                            "\xe2\x80\x88",
                                            "\xe2\x80\x89",
                                            "\xe2\x80\x8a",
                                            "\xe2\x80\xa8",
                                            "\xe2\x80\xa9",
                                            "\xe2\x80\xaf",
                                            "\xe2\x81\x9f",
                                            "\xe3\x80\x80"};

bool begins_with_word(std::string_view text) {
  return utf8_character(text) > 0 && std::none_of(std::begin(white_space), std::end(white_space),
                                                  [&](std::string_view blank) { return text.starts_with(blank); });
}

bool ends_with_blank(std::string_view text) {
  return std::any_of(std::begin(white_space), std::end(white_space),
                     [&](std::string_view blank) { return text.ends_with(blank); });
}

/// Two tokens as one number.
uint64_t pair_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

struct Join {
  int32_t rank;    // in the training's order: lower first
  int32_t joined;  // the token that both make
};

/// The tokens of one word while neighbours are joined: a list of those that are left, in a vector.
class Word {
 public:
  Word(const std::unordered_map<uint64_t, Join>& joins, std::vector<int32_t> tokens) : joins_(joins) {
    const auto count = static_cast<int32_t>(tokens.size());
    for (int32_t i = 0; i < count; ++i) {
      parts_.push_back({tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    }
    for (int32_t i = 0; i + 1 < count; ++i) {
      propose(i);
    }
  }

  /// The lowest rank first, the leftmost among equals, until no neighbours can be joined.
  void join_all() {
    while (!proposals_.empty()) {
      const Proposal best = proposals_.top();
      proposals_.pop();
      if (is_current(best)) {
        join(best);
      }
    }
  }

  void append_to(std::vector<int32_t>& ids) const {
    for (int32_t i = 0; i >= 0; i = parts_[static_cast<size_t>(i)].next) {
      ids.push_back(parts_[static_cast<size_t>(i)].token);
    }
  }

 private:
  struct Part {
    int32_t token;  // -1: joined to the one in front
    int32_t previous;
    int32_t next;
  };
  struct Proposal {
    int32_t rank;
    int32_t left;  // place of the left part
    int32_t joined;
    uint64_t pair;
    bool operator<(const Proposal& other) const {  // of a queue whose top is its largest
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };

  Part& part(int32_t place) { return parts_[static_cast<size_t>(place)]; }

  void propose(int32_t left) {
    if (left < 0 || part(left).next < 0) {
      return;
    }
    const uint64_t pair = pair_of(part(left).token, part(part(left).next).token);
    const auto found = joins_.find(pair);
    if (found != joins_.end()) {
      proposals_.push({found->second.rank, left, found->second.joined, pair});
    }
  }

  /// Whether both parts are still what they were when they were proposed.
  bool is_current(const Proposal& proposal) {
    const Part& left = part(proposal.left);
    return left.token >= 0 && left.next >= 0 && pair_of(left.token, part(left.next).token) == proposal.pair;
  }

  void join(const Proposal& proposal) {
    Part& left = part(proposal.left);
    Part& right = part(left.next);
    left.token = proposal.joined;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0) {
      part(left.next).previous = proposal.left;
    }
    propose(left.previous);
    propose(proposal.left);
  }

  const std::unordered_map<uint64_t, Join>& joins_;
  std::vector<Part> parts_;
  std::priority_queue<Proposal> proposals_;
};

class ByteBpeTokenizer final : public Tokenizer {
 public:
  ByteBpeTokenizer(std::string serialized, const std::string& name)
      : serialized_(std::move(serialized)), file_(parse_byte_bpe(serialized_, name)), words_(file_.pattern, name) {
    for (size_t id = 0; id < file_.tokens.size(); ++id) {
      const ByteBpeToken& token = file_.tokens[id];
      if (!token.special) {
        by_bytes_.emplace(token.bytes, static_cast<int32_t>(id));
      }
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      of_byte_[byte] = by_bytes_.at(std::string(1, static_cast<char>(byte)));
    }
    for (size_t rank = 0; rank < file_.merges.size(); ++rank) {
      const ByteBpeMerge& merge = file_.merges[rank];
      joins_.emplace(pair_of(merge.left, merge.right), Join{static_cast<int32_t>(rank), merge.joined});
    }
  }

  TokenizerKind tokenizer_kind() const override { return TokenizerKind::byte_bpe; }
  int32_t vocab_size() const override { return static_cast<int32_t>(file_.tokens.size()); }
  int32_t unk_id() const override { return -1; }
  int32_t bos_id() const override { return file_.bos; }
  int32_t eos_id() const override { return file_.eos; }

  using Tokenizer::encode;
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const override {
    while (!bytes.empty()) {
      const size_t length = well_formed(bytes);
      const std::string_view text = bytes.substr(0, length);
      for (size_t begin = 0; begin < length;) {
        const size_t end = words_.word_end(text, begin);
        encode_word(text.substr(begin, end - begin), ids);
        begin = end;
      }
      bytes.remove_prefix(length);
      if (!bytes.empty()) {
        ids.push_back(of_byte_[static_cast<unsigned char>(bytes[0])]);
        bytes.remove_prefix(1);
      }
    }
  }

  /// GPT-2 has a blank in front of words, so the last blank of several may begin a part. Other patterns put line
  /// ends behind signs or together: they are cut behind one that stands alone.
  size_t cut(std::string_view front) const override {
    const bool is_gpt2 = file_.pattern == gpt2_pattern;
    for (size_t at = front.size() < 5 ? 0 : front.size() - 5; at > 0; --at) {  // a whole character may follow
      const bool is_place = front[at] == '\n' || (is_gpt2 && front[at] == ' ');
      if (is_place && begins_with_word(front.substr(at + 1)) && (is_gpt2 || !ends_with_blank(front.substr(0, at)))) {
        return is_gpt2 ? at : at + 1;
      }
    }
    return 0;
  }

  std::string_view bytes(int32_t id) const override {
    const ByteBpeToken& token = at(id);
    return token.special ? std::string_view() : std::string_view(token.bytes);
  }
  std::string piece(int32_t id) const override { return at(id).bytes; }
  float score(int32_t id) const override {
    check_id(id);
    return 0;
  }
  PieceKind kind(int32_t id) const override {
    const ByteBpeToken& token = at(id);
    return token.special ? PieceKind::control : token.bytes.empty() ? PieceKind::unused : PieceKind::normal;
  }
  const std::string& serialized() const override { return serialized_; }

 private:
  const ByteBpeToken& at(int32_t id) const {
    check_id(id);
    return file_.tokens[static_cast<size_t>(id)];
  }

  /// How many bytes at the front are whole characters.
  static size_t well_formed(std::string_view bytes) {
    size_t length = 0;
    while (length < bytes.size()) {
      const size_t character = utf8_character(bytes.substr(length));
      if (character == 0) {
        break;
      }
      length += character;
    }
    return length;
  }

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    if (file_.ignore_merges) {
      const auto found = by_bytes_.find(std::string(word));
      if (found != by_bytes_.end()) {
        ids.push_back(found->second);
        return;
      }
    }
    std::vector<int32_t> tokens;
    for (const char c : word) {
      tokens.push_back(of_byte_[static_cast<unsigned char>(c)]);
    }
    Word parts(joins_, std::move(tokens));
    parts.join_all();
    parts.append_to(ids);
  }

  std::string serialized_;
  ByteBpeFile file_;
  WordPattern words_;
  std::unordered_map<std::string, int32_t> by_bytes_;
  std::array<int32_t, 256> of_byte_ = {};
  std::unordered_map<uint64_t, Join> joins_;
};

}  // namespace

bool is_byte_bpe(std::string_view serialized) {
  const size_t first = serialized.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && serialized[first] == '{';
}

std::unique_ptr<Tokenizer> load_byte_bpe(const std::string& serialized, const std::string& name) {
  return std::make_unique<ByteBpeTokenizer>(serialized, name);
}

}  // namespace minillm
