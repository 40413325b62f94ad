#include "train/config_file.h"

#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "train/config_checks.h"

#include <doctest/doctest.h>

#include <map>

using namespace minillm;
using namespace minillm::test;

namespace {

/// The message of the Error that a config gives, with the folder's name taken out; "" when it loads.
std::string problems(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "a.toml", overrides);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    return error.what();
  }
  return "";
}

std::string problem_of_override(const std::string& word) {
  return problems("", {word});
}

}  // namespace

TEST_CASE("an empty config is the defaults, with what can be derived here") {
  const LoadedConfig loaded = parse_config("", "configs/baseline.toml");
  CHECK(loaded.config.optim.lr == 1e-3);
  CHECK(loaded.config.run.name == "baseline");
  CHECK(loaded.config.run.out == "runs/baseline");
  CHECK(loaded.config.train.micro_batch_size == 16);
  CHECK(loaded.config.model.vocab_size == 0);
  CHECK(loaded.origins.empty());
}

TEST_CASE("run.name is a plain name") {
  for (const char* name : {"..", ".", "a/b", "a\nb"}) {
    CAPTURE(name);
    CHECK(problem_of_override(std::string("run.name=") + name).find("run.name: is not a plain name") !=
          std::string::npos);
  }
  CHECK(problem_of_override("run.name=模型 é") == "");
}

TEST_CASE("values of every type reach their fields with their origin") {
  const LoadedConfig loaded = parse_config(
      "[model]\nn_layers = 6\ntie_embeddings = false\nfinal_norm = true\nposition = \"learned\"\n"
      "[optim]\nlr = 1\n[train]\nsteps = 200\nseed = 9223372036854775807\nthreads = 3\nmax_minutes = 2.5\n[data]\npath "
      "= 'x.h5'\n",
      "a.toml", {"optim.lr=3e-4", "train.dtype=float64", "run.name=\"a b\"", "data.order='sequential'"});
  CHECK(loaded.config.model.n_layers == 6);
  CHECK_FALSE(loaded.config.model.tie_embeddings);
  CHECK(loaded.config.model.final_norm == 1);
  CHECK(loaded.config.model.position == "learned");
  CHECK(loaded.config.optim.lr == 3e-4);
  CHECK(loaded.config.train.seed == 9223372036854775807U);
  CHECK(loaded.config.train.threads == 3);
  CHECK(loaded.config.train.max_minutes == 2.5);
  CHECK(loaded.config.train.dtype == "float64");
  CHECK(loaded.config.run.name == "a b");
  CHECK(loaded.config.run.out == "runs/a b");
  CHECK(loaded.config.data.path == "x.h5");
  CHECK(loaded.config.data.order == "sequential");
  CHECK(loaded.origins.at("model.n_layers") == "a.toml:2");
  CHECK(loaded.origins.at("train.threads") == "a.toml:11");
  CHECK(loaded.origins.at("optim.lr") == "command line");
}

TEST_CASE("an integer is accepted for a number, exactly") {
  CHECK(parse_config("[optim]\nlr = 1\n", "a.toml").config.optim.lr == 1.0);
  CHECK(parse_config("", "a.toml", {"optim.lr=1"}).config.optim.lr == 1.0);
}

TEST_CASE("unknown keys and sections are named with their line and the nearest known one, all at once") {
  CHECK(problems("[optim]\nlearing_rate = 3e-4\n") == "a.toml:2: unknown key optim.learing_rate; did you mean lr?");
  CHECK(problems("[optim]\nwarmup_step = 3\n") ==
        "a.toml:2: unknown key optim.warmup_step; did you mean warmup_steps?");
  CHECK(problems("\n[trian]\nsteps = 5\n") == "a.toml:2: unknown section [trian]; did you mean [train]?");
  CHECK(problems("[train]\nlr = 1e-3\n") == "a.toml:2: unknown key train.lr; that key belongs to [optim]");
  CHECK(problems("lr = 1e-3\n") == "a.toml:1: unknown key lr; that key belongs to [optim]");
  CHECK(problems("[model]\nn_embd = 64\n") == "a.toml:2: unknown key model.n_embd; did you mean d_model?");
  CHECK(problems("[train]\nblock_size = 64\n") ==
        "a.toml:2: unknown key train.block_size; did you mean seq_len of [data]?");
  CHECK(problems("[run]\nzzzzz = 1\n") == "a.toml:2: unknown key run.zzzzz; the keys of [run] are name, out, silence");
  CHECK(problems("bse = 'x.toml'\n") == "a.toml:1: unknown key bse; did you mean base?");
  CHECK(problems("[[run]]\nname = 'x'\n") == "a.toml:1: run: wrong type; found an array; expected a table, [run]");
  CHECK(problems("[optim]\nlearing_rate = 3e-4\n[trian]\nx = 1\n[train]\nlr = 1\n") ==
        "a.toml:2: unknown key optim.learing_rate; did you mean lr?\n"
        "a.toml:3: unknown section [trian]; did you mean [train]?\n"
        "a.toml:6: unknown key train.lr; that key belongs to [optim]");
}

TEST_CASE("wrong types say what was found and expected") {
  CHECK(problems("[model]\nn_layers = \"6\"\n") ==
        "a.toml:2: model.n_layers: wrong type; found the string \"6\"; expected an integer in [1, 10000]");
  CHECK(problems("[model]\nn_layers = 6.5\n") ==
        "a.toml:2: model.n_layers: wrong type; found 6.5; expected an integer in [1, 10000]");
  CHECK(problems("[model]\ntie_embeddings = \"yes\"\n") ==
        "a.toml:2: model.tie_embeddings: wrong type; found the string \"yes\"; expected true or false");
  CHECK(problems("[model]\ntied = \"yes\"\n") == "a.toml:2: unknown key model.tied; did you mean tie_embeddings?");
  CHECK(problems("[model]\nfinal_norm = 1\n") ==
        "a.toml:2: model.final_norm: wrong type; found 1; expected true or false");
  CHECK(problems("[optim]\nlr = [1]\n") == "a.toml:2: optim.lr: wrong type; found an array; expected a number");
  CHECK(problems("[data]\npath = 3\n") == "a.toml:2: data.path: wrong type; found 3; expected a string");
  CHECK(problems("[optim.lr]\nx = 3\n").ends_with("optim.lr: wrong type; found a table; expected a number"));
  CHECK(problems("model = 3\n") == "a.toml:1: model: wrong type; found 3; expected a table, [model]");
  CHECK(problems("base = 3\n") ==
        "a.toml:1: base: wrong type; found 3; expected the path of another config, relative to this file");
}

TEST_CASE("one bad value neither hides others nor lets them be half applied") {
  CHECK(problems("[model]\nn_layers = \"6\"\nd_model = 6.5\n[optim]\nlr = -1\nbeta2 = 1.0\n[train]\nsteps = true\n") ==
        "a.toml:2: model.n_layers: wrong type; found the string \"6\"; expected an integer in [1, 10000]\n"
        "a.toml:3: model.d_model: wrong type; found 6.5; expected an integer in [1, 2147483647]\n"
        "a.toml:8: train.steps: wrong type; found true; expected an integer in [0, 9007199254740992]\n"
        "a.toml:5: optim.lr: value out of range; found -1; expected a finite number >= 0\n"
        "a.toml:6: optim.beta2: value out of range; found 1; expected a number in [0, 1)");
}

TEST_CASE("a refused value is not complained about a second time through the default that stands for it") {
  CHECK(problems("[optim]\nwarmup_steps = 'x'\n[train]\nsteps = 20\n") ==
        "a.toml:2: optim.warmup_steps: wrong type; found the string \"x\"; expected an integer");
  CHECK(problems("[optim]\nwarmup_steps = 2000\n[train]\nsteps = 'x'\n").find("warmup_steps") == std::string::npos);
  CHECK(problems("[train]\nbatch_size = 'x'\nmicro_batch_size = 5\n").find("divide") == std::string::npos);
}

TEST_CASE("a key given twice and other broken TOML is refused with its line") {
  CHECK(problems("[optim]\nlr = 1\nlr = 2\n").starts_with("a.toml:3: not valid TOML"));
  CHECK(problems("[\n").starts_with("a.toml:1: not valid TOML"));  // toml++ aborts here in debug builds when left alone
  CHECK(problems("[optim]\nlr = \n").starts_with("a.toml:2: not valid TOML"));
  CHECK(problems("[optim]\nlr = 0.1 \xff\n").starts_with("a.toml:2: not valid TOML"));
  CHECK(problems(std::string("\x89HDF\r\n\x1a\n\0\0", 10)).starts_with("a.toml:1: not valid TOML"));
}

TEST_CASE("numbers outside their range are refused by name") {
  for (const char* key :
       {"model.n_layers", "model.d_model", "model.n_heads", "model.n_kv_heads", "model.head_dim", "model.d_ff",
        "model.max_seq_len", "data.seq_len", "train.batch_size", "train.micro_batch_size", "train.eval_tokens",
        "train.keep_checkpoints", "model.vocab_size"}) {
    for (const char* bad : {"0", "-1"}) {
      const std::string message = problem_of_override(std::string(key) + "=" + bad);
      CAPTURE(message);
      CHECK(message.find(std::string(key) + ": value out of range; found " + bad) != std::string::npos);
    }
  }
  CHECK(problem_of_override("model.vocab_size=1") ==
        "override model.vocab_size=1: model.vocab_size: value out of range; found 1; expected an integer in [2, "
        "2147483647]");
  for (const char* key : {"train.steps", "train.eval_every", "train.checkpoint_every", "train.sample_every",
                          "train.threads", "train.max_minutes", "optim.warmup_steps"}) {
    CHECK(problem_of_override(std::string(key) + "=0").empty());
    CHECK(problem_of_override(std::string(key) + "=-1").find(std::string(key) + ": value out of range") !=
          std::string::npos);
  }
  CHECK(problem_of_override("model.n_layers=9999999999") != "");
  CHECK(problem_of_override("model.dropout=1").find("expected a number in [0, 1)") != std::string::npos);
  CHECK(problem_of_override("model.dropout=nan").find("found nan") != std::string::npos);
  CHECK(problem_of_override("model.rope_fraction=0").find("expected a number in (0, 1]") != std::string::npos);
  CHECK(problem_of_override("model.norm_eps=0").find("expected a number in [1.17549") != std::string::npos);
  CHECK(problem_of_override("model.rope_theta=inf").find("found inf") != std::string::npos);
  CHECK(problem_of_override("train.seed=-1").find("expected an integer >= 0") != std::string::npos);
}

TEST_CASE("impossible optimizer settings are refused by name, through overrides too") {
  CHECK(problem_of_override("optim.lr=-1e-3") ==
        "command line: optim.lr: value out of range; found -0.001; expected a finite number >= 0");
  CHECK(problem_of_override("optim.lr=nan").find("optim.lr: value out of range; found nan") != std::string::npos);
  CHECK(problem_of_override("optim.lr=inf").find("optim.lr: value out of range; found inf") != std::string::npos);
  CHECK(problem_of_override("optim.weight_decay=-0.1").find("optim.weight_decay: ") != std::string::npos);
  CHECK(problem_of_override("optim.beta2=1.0").find("optim.beta2: ") != std::string::npos);
  CHECK(problem_of_override("optim.eps=0").find("optim.eps: ") != std::string::npos);
  CHECK(problem_of_override("optim.grad_clip=-1").find("optim.grad_clip: ") != std::string::npos);
  CHECK(problem_of_override("optim.lr=0").empty());
  CHECK(config_notices(parse_config("", "a.toml", {"optim.lr=0"}).config).size() == 1);
  CHECK(config_notices(parse_config("", "a.toml").config).empty());
}

TEST_CASE("a warm-up longer than the run and a micro-batch that does not divide the batch are refused") {
  CHECK(problems("[optim]\nwarmup_steps = 200\n[train]\nsteps = 100\n") ==
        "a.toml:2: optim.warmup_steps: value out of range; found 200; expected 0 to train.steps = 100; shorten the "
        "warm-up or lengthen the run");
  CHECK(problems("[train]\nsteps = 20\n")
            .starts_with("a.toml:2: optim.warmup_steps: value out of range; found 100 (default)"));
  CHECK(problems("[train]\nsteps = 0\n").empty());
  CHECK(problems("[train]\nsteps = 100\n").empty());
  CHECK(problems("[train]\nbatch_size = 16\nmicro_batch_size = 5\n") ==
        "a.toml:3: train.micro_batch_size: does not divide train.batch_size; found 5; expected a divisor of 16");
}

TEST_CASE("what must fit together in a model is told with the other problems, each with its place") {
  CHECK(
      problems("[model]\nd_model = 100\nn_heads = 12\nn_kv_heads = 5\nnorm = \"layrnorm\"\n[optim]\nlr = -1\n") ==
      "a.toml:5: model.norm: unknown word; found \"layrnorm\"; expected one of rmsnorm, layernorm, "
      "zero_centered_rmsnorm, scalenorm, batchnorm, none; did you mean layernorm?\n"
      "a.toml:3: model.n_heads: d_model 100 is not a multiple of the number of heads; found 12; expected 10 or 20; or "
      "set model.head_dim\n"
      "a.toml:4: model.n_kv_heads: does not divide n_heads 12; found 5; expected 4 or 6\n"
      "a.toml:7: optim.lr: value out of range; found -1; expected a finite number >= 0");
  // A default that does not fit is told at the line that made it wrong, and a value that was refused is not compared.
  CHECK(problems("[model]\nd_model = 100\n")
            .starts_with("a.toml:2: model.n_heads: d_model 100 is not a multiple of the "
                         "number of heads; found 8 (default)"));
  CHECK(problem_of_override("model.d_model=520").starts_with("command line: model.head_dim: rotary"));
  CHECK(problem_of_override("model.d_model=520").find("found 65 (derived); expected 64 or 66") != std::string::npos);
  CHECK(problems("[model]\nd_model = 100.5\nn_heads = 12\n").starts_with("a.toml:2: model.d_model: wrong type"));
  CHECK(problems("[model]\nd_model = 100.5\nn_heads = 12\n").find('\n') == std::string::npos);
  CHECK(problems("[model]\nd_model = 520\nposition = \"none\"\n").empty());
  CHECK(problems("[data]\nseq_len = 300\n[model]\nmax_seq_len = 299\n").starts_with("a.toml:4: model.max_seq_len"));
}

TEST_CASE("models whose sizes cannot be counted in 64 bits are refused at once") {
  const std::vector<std::string> sizes = {"model.d_model=2147483646", "model.head_dim=2", "model.d_ff=2147483647"};
  CHECK(problems("", sizes).find("command line: model.d_model: the model is too large to be counted") == 0);
  CHECK(problems("", {"model.n_heads=2147483647", "model.head_dim=2147483646"}).find("too large") != std::string::npos);
  CHECK(problems("", {"model.d_model=2147483647"}).find("expected 1 or 2147483647") != std::string::npos);
  CHECK(problem_of_override("model.n_layers=10001").find("expected an integer in [1, 10000]") != std::string::npos);
  CHECK(problem_of_override("train.seed=99999999999999999999").find("which is not between -2^63 and 2^63 - 1") !=
        std::string::npos);
}

TEST_CASE("what is no config text is named, and never read for ever") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) {
    try {
      load_config(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(folder.write("a.h5", "minillm-file\nbytes 1"))
            .ends_with("a.h5: is not a config file; found a minillm file; expected TOML text, at most 1000000 bytes"));
  CHECK(refused(folder.write("b.toml", std::string("a\0b", 3))).find("found unknown binary data") != std::string::npos);
  CHECK(refused(folder.write("c.toml", std::string(1000001, '#'))).find("a very long text") != std::string::npos);
  CHECK(refused(folder.write("d.toml", std::string(1000000, '#'))).empty());
  CHECK(refused("/dev/zero").find("/dev/zero: is not a config file") == 0);
  CHECK(refused("").starts_with("\"\": cannot read the config"));
}

TEST_CASE("words are checked against their list") {
  CHECK(problems("[optim]\nschedule = \"cosin\"\n") ==
        "a.toml:2: optim.schedule: unknown word; found the string \"cosin\"; expected one of cosine, linear, constant, "
        "wsd; did you mean cosine?");
  CHECK(problem_of_override("train.dtype=float46").find("did you mean float64?") != std::string::npos);
  CHECK(problem_of_override("data.objective=last").find("expected one of next, masked") != std::string::npos);
  CHECK(problem_of_override("model.position=3").find("unknown word") != std::string::npos);
}

TEST_CASE("overrides that are none are refused with the likely one") {
  CHECK(problem_of_override("lr=3e-4") ==
        "override lr=3e-4: not an override; expected section.key=value; did you mean optim.lr?");
  CHECK(problem_of_override("optim.lr") ==
        "override optim.lr: not an override; expected section.key=value; optim.lr=3e-4, for example");
  CHECK(problem_of_override("optim.lrr=1") == "override optim.lrr=1: unknown key optim.lrr; did you mean lr?");
  CHECK(problem_of_override("optm.lr=1") == "override optm.lr=1: unknown key optm.lr; did you mean optim.lr?");
  CHECK(problem_of_override("train.lr=1") == "override train.lr=1: unknown key train.lr; that key belongs to [optim]");
  CHECK(problem_of_override("optim.lr=fast") ==
        "override optim.lr=fast: optim.lr: wrong type; found the word \"fast\"; expected a number");
  CHECK(problem_of_override("optim.lr=").find("found nothing; expected a number") != std::string::npos);
  CHECK(problem_of_override("train.steps=1\n[optim]\nlr=2") != "");
  CHECK(problem_of_override("run.name=\xff\xfe").find("nor valid UTF-8") != std::string::npos);
  CHECK(parse_config("", "a.toml", {"run.name=1e3"}).config.run.name == "1e3");
  CHECK(parse_config("", "a.toml", {"data.path=a=b c.h5"}).config.data.path == "a=b c.h5");
}

TEST_CASE("files with CRLF line ends and a byte order mark are read as without") {
  const LoadedConfig loaded =
      parse_config("\xef\xbb\xbf[optim]\r\nschedule = \"wsd\"\r\n[data]\r\npath = 'd.h5'\r\n", "a.toml");
  CHECK(loaded.config.optim.schedule == "wsd");
  CHECK(loaded.config.data.path == "d.h5");
  CHECK(loaded.origins.at("data.path") == "a.toml:4");
}

TEST_CASE("a base lies below its file, relative to it, and overrides above both") {
  TemporaryFolder folder;
  folder.write("configs/root.toml", "[optim]\nlr = 1e-2\nbeta1 = 0.8\n[train]\nsteps = 500\n[run]\nname = 'root'\n");
  folder.write("configs/middle.toml", "base = 'root.toml'\n[optim]\nlr = 2e-2\n");
  const std::string top =
      folder.write("configs/ablations/top.toml", "base = \"../middle.toml\"\n[optim]\nbeta1 = 0.7\n");
  const LoadedConfig loaded = load_config(top, {"train.steps=600"});
  CHECK(loaded.config.optim.lr == 2e-2);
  CHECK(loaded.config.optim.beta1 == 0.7);
  CHECK(loaded.config.train.steps == 600);
  CHECK(loaded.config.run.name == "root");
  CHECK(loaded.origins.at("optim.beta1") == top + ":3");
  CHECK(loaded.origins.at("optim.lr").ends_with("middle.toml:3"));
}

TEST_CASE("base cycles, missing files and folders are refused with the line that names them") {
  TemporaryFolder folder;
  const std::string a = folder.write("a.toml", "base = 'b.toml'\n");
  const std::string b = folder.write("b.toml", "\nbase = './a.toml'\n");
  CHECK_THROWS_WITH_AS(load_config(a),
                       (folder / "b.toml:2: base files form a cycle; found " + folder / "./a.toml").c_str(), Error);
  const std::string lost = folder.write("lost.toml", "base = 'gone.toml'\n[optim]\nlrr = 1\n");
  CHECK_THROWS_WITH_AS(load_config(lost),
                       (lost + ":1: cannot read the base config: No such file or directory; found " +
                        folder / "gone.toml\n" + lost + ":3: unknown key optim.lrr; did you mean lr?")
                           .c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(load_config(folder / "no.toml"),
                       (folder / "no.toml: cannot read the config: No such file or directory").c_str(), Error);
  CHECK_THROWS_WITH_AS(load_config(folder.path()), (folder.path() + ": a folder, not a config file").c_str(), Error);
}

TEST_CASE("the resolved config reads back to the same config") {
  LoadedConfig loaded = parse_config(
      "[optim]\nlr = 0.1\neps = 1e-20\nbeta2 = 0.999\n[model]\nffn = \"gelu\"\nn_layers = 3\nfinal_norm = "
      "false\n"
      "[train]\nmax_minutes = 3\nseed = 18\n[run]\nname = \"a\\\"b\\\\c d\"\nout = \"a\\nb\"\n",
      "dir\nwith line end/a.toml", {"optim.weight_decay=0.30000000000000004"});
  loaded.config.model.vocab_size = 2048;  // what nn derives
  loaded.config.model.norm_eps = 1e-6;
  const std::string text = to_toml(loaded.config, loaded.origins);
  const LoadedConfig again = parse_config(text, "config.toml");
  for (const ConfigChange& change : diff(loaded.config, again.config)) {
    FAIL_CHECK(change.key << ": " << change.before << " became " << change.after);
  }
  CHECK(again.config.optim.weight_decay == 0.30000000000000004);
  CHECK(again.config.optim.eps == 1e-20);
  CHECK(again.config.run.name == "a\"b\\c d");
  CHECK(again.config.run.out == "a\nb");
  CHECK(again.config.model.n_heads == 8);
  CHECK(again.config.model.n_kv_heads == 0);  // not derived, so not written
  CHECK(text.find("\nlr = 0.1                                 # dir\\u000Awith line end/a.toml:2\n") !=
        std::string::npos);
  CHECK(text.find("\nbeta1 = 0.9                              # default\n") != std::string::npos);
  CHECK(text.find("\nvocab_size = 2048                        # derived\n") != std::string::npos);
  CHECK(text.find("\nmax_minutes = 3.0 ") != std::string::npos);
  CHECK(text.find("\nweight_decay = 0.30000000000000004       # command line\n") != std::string::npos);
  CHECK(text.find("\n# n_kv_heads is not set\n") != std::string::npos);
}

TEST_CASE("every key of the table survives writing and reading with a value of its own") {
  Config config = parse_config("", "a.toml").config;
  config.model.n_kv_heads = 4;
  config.model.head_dim = 64;
  config.model.max_seq_len = 1200;  // at least data.seq_len, doubled as well
  config.model.vocab_size = 77;
  config.model.norm_eps = 1e-5;
  config.model.final_norm = 0;
  config.data.path = "x";
  config.data.objective = "masked";  // the one that takes a model that is not causal
  config.model.ffn_limit = 3;
  config.model.residual_rank = 4;
  config.model.mla_kv_rank = 5;
  config.model.gdn_key_heads = 2;
  config.model.gdn_value_heads = 4;
  config.model.gdn_key_dim = 6;
  config.model.gdn_value_dim = 7;
  const std::map<std::string, std::string> parts = {{"norm", "layernorm"},
                                                    {"ffn", "gelu"},
                                                    {"residual", "none"},
                                                    {"attention", "full"},
                                                    {"attention_gate", "elementwise"},
                                                    {"moe_unit", "geglu"},
                                                    {"silence", "E12"}};
  int written = 0;
  for (const ConfigKey& key : config_keys()) {
    Config changed = config;
    const ConfigField field = key.field(changed);
    if (double* const* value = std::get_if<double*>(&field)) {
      **value = **value * 0.5 + 0.01;
    } else if (bool* const* yes = std::get_if<bool*>(&field)) {
      **yes = !**yes;
    } else if (std::string* const* text = std::get_if<std::string*>(&field)) {
      const auto part = parts.find(key.name);
      **text = part != parts.end() ? part->second : key.words.empty() ? "other" : key.words.back();
    } else if (int64_t* const* integer = std::get_if<int64_t*>(&field)) {
      **integer = key.name == "micro_batch_size" ? 8 : **integer * 2;
    }
    const LoadedConfig again = parse_config(to_toml(changed, {}), "a.toml");
    CAPTURE(key.path());
    CHECK(diff(again.config, changed).empty());
    ++written;
  }
  CHECK(written == 98);
}

TEST_CASE("diff lists the keys that changed with both values") {
  Config before;
  Config after = before;
  after.optim.lr = 5e-4;
  after.train.steps = 1500;
  after.data.path = "b.h5";
  const std::vector<ConfigChange> changes = diff(before, after);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].key == "data.path");
  CHECK((changes[0].before.empty() && changes[0].after == "\"b.h5\""));
  CHECK(changes[1].key == "optim.lr");
  CHECK(changes[1].before == "0.001");
  CHECK(changes[1].after == "0.0005");
  CHECK(changes[2].key == "train.steps");
}
