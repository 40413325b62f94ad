"""minillm export --format huggingface and its way back, for each architecture: what stands in the folder computes what
the run computes, by a decoder of our own in plain Python; settings that our model has not are refused."""
import json
import re
import sys

import export_case
import support
from cli_support import Row
from export_case import CONTEXT, IDS, NEAR, safetensors

sys.path.append(str(support.ROOT / "tests" / "support"))
import plain_gpt2  # noqa: E402
import plain_llama  # noqa: E402
import plain_readers  # noqa: E402

RUNS = {
    "llama": ["model.tie_embeddings=false", "model.rope_theta=5000", "model.head_dim=6", "model.norm_eps=1e-6"],
    "biased": ["model.bias=true"],
    "qwen3": ["model.qk_norm=true", "model.norm_eps=1e-6"],
    "olmo2": ["model.qk_norm=true", "model.qk_norm_over=width", "model.norm_position=sublayer_output"],
    "gpt2": ["model.position=learned", "model.norm=layernorm", "model.ffn=gelu_tanh", "model.bias=true",
             "model.n_kv_heads=4", "model.d_ff=40"],
}
NAMES = {"llama": "LlamaForCausalLM", "biased": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM",
         "olmo2": "Olmo2ForCausalLM", "gpt2": "GPT2LMHeadModel"}


class Huggingface(export_case.ExportCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, settings in RUNS.items():
            cls.train_given(name, "ids.h5", *settings)
            cls.call("export", name, "--format", "huggingface", "--out", f"{name}_hf")
        cls.call("export", "text", "--format", "huggingface", "--out", "text_hf")

    def loss_of(self, config, tensors):
        ids = IDS[:CONTEXT + 1]
        if config["model_type"] == "gpt2":
            return plain_gpt2.mean_loss(config, tensors, ids)
        return plain_llama.mean_loss(plain_readers.read_decoder(config, tensors), ids)

    def test_every_architecture_is_the_run(self):
        for name in RUNS:
            if name == "biased":  # the plain decoder has no biases
                continue
            with self.subTest(name):
                config, tensors = plain_readers.read_huggingface(self.given / f"{name}_hf")
                self.assertEqual(config["architectures"], [NAMES[name]])
                self.assertAlmostEqual(self.loss_of(config, tensors), self.loss(self.given / name), delta=NEAR)

    def test_names_and_shapes_are_those_of_transformers(self):
        _, header = plain_readers.read_safetensors((self.given / "gpt2_hf" / "model.safetensors").read_bytes())
        self.assertEqual(header.pop("__metadata__"), {"format": "pt"})
        shapes = {re.sub(r"\.h\.\d\.", ".h.N.", name): entry["shape"] for name, entry in header.items()}
        self.assertEqual(shapes, {
            "transformer.wte.weight": [37, 16], "transformer.wpe.weight": [64, 16],
            "transformer.h.N.ln_1.weight": [16], "transformer.h.N.ln_1.bias": [16],
            "transformer.h.N.attn.c_attn.weight": [16, 48], "transformer.h.N.attn.c_attn.bias": [48],
            "transformer.h.N.attn.c_proj.weight": [16, 16], "transformer.h.N.attn.c_proj.bias": [16],
            "transformer.h.N.ln_2.weight": [16], "transformer.h.N.ln_2.bias": [16],
            "transformer.h.N.mlp.c_fc.weight": [16, 40], "transformer.h.N.mlp.c_fc.bias": [40],
            "transformer.h.N.mlp.c_proj.weight": [40, 16], "transformer.h.N.mlp.c_proj.bias": [16],
            "transformer.ln_f.weight": [16], "transformer.ln_f.bias": [16]})
        _, header = plain_readers.read_safetensors((self.given / "olmo2_hf" / "model.safetensors").read_bytes())
        self.assertEqual(header["model.layers.1.self_attn.q_norm.weight"]["shape"], [16])
        self.assertEqual(header["model.layers.1.self_attn.k_norm.weight"]["shape"], [8])
        self.assertNotIn("model.layers.1.input_layernorm.weight", header)
        self.assertIn("model.layers.1.post_feedforward_layernorm.weight", header)
        config, tensors = plain_readers.read_huggingface(self.given / "biased_hf")
        self.assertTrue(config["attention_bias"] and config["mlp_bias"])
        self.assertIn("model.layers.0.mlp.gate_proj.bias", tensors)

    def test_the_text_model_and_its_tokenizer(self):
        folder = self.given / "text_hf"
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["config.json", "generation_config.json", "model.safetensors", "tokenizer.model",
                          "tokenizer_config.json"])
        config, tensors = plain_readers.read_huggingface(folder)
        self.assertEqual((config["bos_token_id"], config["eos_token_id"], config["hidden_act"], config["head_dim"]),
                         (1, 2, "silu", 4))
        words = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self.assertEqual((words["tokenizer_class"], words["bos_token"], words["add_prefix_space"], words["legacy"]),
                         ("LlamaTokenizer", "<s>", False, False))
        model = plain_readers.read_decoder(config, tensors)
        self.assertEqual(plain_llama.greedy(model, 1, CONTEXT, (1, 2)), self.greedy(self.given / "text")["token_ids"])
        self.run_program("prepare", self.given / "story.txt", "--tokenizer", folder / "tokenizer.model",
                         "--out", "d.h5")
        self.run_program("eval", self.given / "text", "--data", "d.h5")

    def test_the_way_back(self):
        for name in RUNS:
            with self.subTest(name):
                printed = self.run_program("import", self.given / f"{name}_hf", "--out", name).stdout
                self.assertIn(f"Hugging Face, {NAMES[name]}", printed)
                self.assert_same_weights(self.given / name, self.folder / name)
                self.assertEqual(self.loss(name), self.loss(self.given / name))
        self.run_program("import", self.given / "text_hf", "--out", "back")
        self.assertEqual(self.greedy("back")["text"], self.greedy(self.given / "text")["text"])
        self.assert_speaks_as_it_is(self.given / "text_hf")
        self.run_program("eval", "back", "--data", self.given / "text.h5")  # the tokenizer is the same, byte for byte

    def test_older_files_of_gpt2_are_read(self):
        """Names without "transformer.", the masks that were saved with them, and a head that repeats the embedding."""
        _, header = plain_readers.read_safetensors((self.given / "gpt2_hf" / "model.safetensors").read_bytes())
        config, tensors = plain_readers.read_huggingface(self.given / "gpt2_hf")
        del header["__metadata__"]
        flat = {name.removeprefix("transformer."): (entry["shape"], tensors[name] if len(entry["shape"]) == 1
                                                    else [v for row in tensors[name] for v in row])
                for name, entry in header.items()}
        flat["h.0.attn.bias"] = ([1, 1, 4, 4], [1.0] * 16)
        flat["lm_head.weight"] = flat["wte.weight"]
        self.write("old/model.safetensors", safetensors(flat))
        self.write("old/config.json", json.dumps(config))
        done = self.run_program("import", "old", "--out", "run")
        self.assertIn("left out: 1 tensors that were never trained", done.stdout)
        self.assertIn("lm_head.weight equals model.embed_tokens.weight", done.stderr)
        self.assert_same_weights(self.given / "gpt2", self.folder / "run")

    def test_what_no_architecture_is(self):
        self.run_program("train", self.given / "base.toml", "--out", "run", f"data.path={self.given / 'ids.h5'}",
                         *export_case.SETTINGS, "model.norm=scalenorm", "train.steps=1")
        self.assertRegex(self.refused("export", "run", "--format", "huggingface", "--out", "x"),
                         r"no LlamaForCausalLM: model\.norm = scalenorm, not rmsnorm; "
                         r"no Qwen3ForCausalLM: model\.norm = scalenorm, not rmsnorm, model\.qk_norm = false, not "
                         r"true; no Olmo2ForCausalLM: .*; "
                         r"no GPT2LMHeadModel: model\.n_kv_heads = 2, not 4, .*model\.position = rope, not learned")

    def test_folders_that_are_refused(self):
        llama = {name: (self.given / "llama_hf" / name).read_bytes() for name in ("config.json", "model.safetensors")}
        config = json.loads(llama["config.json"])

        def imported(changes, *patterns, weights=llama["model.safetensors"], names=tuple(llama)):
            files = {"m/config.json": json.dumps({**config, **changes}), "m/model.safetensors": weights}
            return Row("import m --out run", patterns, files={f"m/{name}": files[f"m/{name}"] for name in names})
        self.check_all([
            imported({"model_type": "qwen2"}, r"config\.json: model_type: models of this type can be counted and not "
                     r"imported; found qwen2"),
            imported({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
                     r'rope_scaling\.rope_type: a setting that no model of minillm has; found "llama3"'),
            imported({"rope_parameters": {"rope_type": "yarn"}}, r"rope_parameters\.rope_type"),
            imported({"hidden_act": "gelu"}, r'hidden_act: .*found "gelu"; expected "silu" or "swish" or nothing'),
            imported({"sliding_window": 4096}, r"layers that see the last tokens alone"),
            imported({"quantization_config": {"bits": 4}}, r"quantization_config: a setting"),
            imported({"mlp_bias": True}, r"attention_bias: differs from mlp_bias"),
            imported({"num_key_value_heads": 4},  # I08
                     r"self_attn\.k_proj\.weight has another shape than config\.json says; "
                     r"found \[12, 16\]; expected \[24, 16\]"),
            imported({"num_key_value_heads": None}, r"k_proj\.weight has another shape"),
            imported({"num_hidden_layers": 3}, r"9 missing in the file: model\.layers\.2\."),
            imported({"num_hidden_layers": 1}, r"9 not in the model: model\.layers\.1\."),
            imported({"num_hidden_layers": 2**40}, r"num_hidden_layers: is no count; found 1099511627776"),
            imported({"vocab_size": -1}, r"vocab_size: is no count; found -1"),
            imported({}, r"m: has neither model\.safetensors nor", names=("config.json",)),
            imported({}, r"m: is a folder without a model", names=("model.safetensors",)),
            imported({}, r"ends beyond the file", weights=llama["model.safetensors"][:-1]),
            imported({}, r"its header does not fit", weights=b"\xff" * 8 + llama["model.safetensors"][8:]),
            imported({}, r"lm_head\.weight is not finite", weights=llama["model.safetensors"][:-4] + b"\0\0\xc0\x7f"),
            Row("import m.safetensors --out run", (r"found safetensors; .*beside its config\.json give the folder",),
                files={"m.safetensors": llama["model.safetensors"]}),
            Row("import m --out run", (r"is no index of weights: it has no weight_map",),
                files={"m/config.json": llama["config.json"], "m/model.safetensors.index.json": "{}"}),
            Row("import m --out run", (r"has neither model\.safetensors nor .*index\.json; found pytorch_model\.bin",),
                files={"m/config.json": llama["config.json"], "m/pytorch_model.bin": "x"}),
        ])

    def test_weights_in_several_files(self):
        """The same model cut into three files, with an index; and what an index can have wrong."""
        _, tensors = plain_readers.read_huggingface(self.given / "llama_hf")
        flat = {name: ([len(rows), len(rows[0])], [float(value) for row in rows for value in row])
                if isinstance(rows[0], (list, tuple)) else ([len(rows)], rows) for name, rows in tensors.items()}
        names = sorted(flat)
        parts = {f"model-0000{part + 1}-of-00003.safetensors": names[part::3] for part in range(3)}
        where = {name: part for part, held in parts.items() for name in held}

        def write(folder, **changes):
            self.write(f"{folder}/config.json", (self.given / "llama_hf" / "config.json").read_bytes())
            for part, held in parts.items():
                self.write(f"{folder}/{part}", safetensors({name: flat[name] for name in held}))
            index = {"metadata": {}, "weight_map": {**where, **changes}}
            self.write(f"{folder}/model.safetensors.index.json", json.dumps(index))

        write("m")
        self.run_program("import", "m", "--out", "run")
        self.assert_same_weights(self.given / "llama", self.folder / "run")
        write("moved", **{names[0]: list(parts)[1]})
        self.assertIn("00001-of-00003.safetensors: holds other tensors than moved/model.safetensors.index.json lists",
                      self.refused("import", "moved", "--out", "r"))
        write("more", **{"another": list(parts)[0]})
        self.assertIn("has no tensor another", self.refused("import", "more", "--out", "r"))
        write("outside", **{names[0]: "../m/" + list(parts)[0]})
        self.assertIn("is not the name of a file beside the index", self.refused("import", "outside", "--out", "r"))
        write("missing", another="absent.safetensors")
        self.assertIn("absent.safetensors: cannot be opened", self.refused("import", "missing", "--out", "r"))
        self.assertFalse((self.folder / "r").exists())


if __name__ == "__main__":
    support.main()
