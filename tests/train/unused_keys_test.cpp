#include "train/unused_keys.h"
#include "train/config_file.h"

#include <doctest/doctest.h>

using namespace minillm;

namespace {

using Notes = std::vector<std::string>;

Notes notes_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const LoadedConfig loaded = parse_config(text, "a.toml", overrides);
  return unused_keys(loaded.config, loaded.origins);
}

}  // namespace

TEST_CASE("a key that was set and has no effect is told, with its place and what decided") {
  CHECK(notes_of("[model]\nposition = \"learned\"\nrope_theta = 5e5\n") ==
        Notes{"a.toml:3: model.rope_theta is not used: model.position is \"learned\""});
  CHECK(notes_of("", {"optim.decay_fraction=0.1"}) ==
        Notes{"command line: optim.decay_fraction is not used: optim.schedule is \"cosine\""});
  CHECK(notes_of("[model]\nffn = \"none\"\nd_ff = 64\nmoe_top_k = 1\n").size() == 2);
  CHECK(notes_of("[model]\nattention = \"mla\"\nrope_fraction = 0.5\nattention_gate = \"headwise\"\n"
                 "attention_gate_position = \"v\"\n") ==
        Notes{"a.toml:5: model.attention_gate_position is not used: model.attention is \"mla\""});
  CHECK(notes_of("[model]\nattention = \"gdn\"\nqk_clip = 100\n") ==
        Notes{"a.toml:3: model.qk_clip is not used: model.attention is \"gdn\""});
  CHECK(notes_of("[model]\nqk_norm = true\nqk_clip = 100\n") ==
        Notes{"a.toml:3: model.qk_clip is not used: model.qk_norm is true"});
}

TEST_CASE("a key that has its effect, or was not set, is not told") {
  CHECK(notes_of("").empty());
  CHECK(notes_of("[model]\nrope_theta = 5e5\n[optim]\nschedule = \"wsd\"\ndecay_fraction = 0.1\n").empty());
  CHECK(notes_of("[model]\nattention = \"hybrid\"\nn_kv_heads = 2\ngdn_key_heads = 2\nfull_attention_every = 3\n")
            .empty());
  CHECK(notes_of("[model]\nffn = \"swiglu_clamp\"\nffn_limit = 7\n").empty());
  CHECK(notes_of("[model]\nattention = \"mla\"\nqk_clip = 100\n").empty());
}
