"""`minillm ledger` against sums done by hand from the public sizes of each model, and against a header that a released
file would have. The numbers that the course states are in recomputed_test.py."""
import json
import math
import struct

import support

MODELS = support.ROOT / "configs" / "presets" / "models"
QWEN = {"d": 5120, "f": 17408, "L": 64, "V": 248320}

# Sizes of the published config, in Hugging Face's words.
QWEN_CONFIG = {
    "model_type": "qwen3_5", "tie_word_embeddings": False, "dtype": "bfloat16",
    "text_config": {
        "vocab_size": 248320, "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 17408, "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6, "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        "mtp_num_hidden_layers": 1, "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25}},
    "vision_config": {
        "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_position_embeddings": 2304,
        "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2}}


def qwen_tensors():
    """Names and shapes as the released files have them: linear attention's projections in four parts."""
    d, f, V = QWEN["d"], QWEN["f"], QWEN["V"]
    ffn = {"mlp.gate_proj.weight": [f, d], "mlp.up_proj.weight": [f, d], "mlp.down_proj.weight": [d, f]}
    norms = {"input_layernorm.weight": [d], "post_attention_layernorm.weight": [d]}
    full = {"self_attn.q_proj.weight": [12288, d], "self_attn.k_proj.weight": [1024, d],
            "self_attn.v_proj.weight": [1024, d], "self_attn.o_proj.weight": [d, 6144],
            "self_attn.q_norm.weight": [256], "self_attn.k_norm.weight": [256]}
    linear = {"linear_attn.in_proj_qkv.weight": [10240, d], "linear_attn.in_proj_z.weight": [6144, d],
              "linear_attn.in_proj_b.weight": [48, d], "linear_attn.in_proj_a.weight": [48, d],
              "linear_attn.conv1d.weight": [10240, 1, 4], "linear_attn.A_log": [48], "linear_attn.dt_bias": [48],
              "linear_attn.norm.weight": [128], "linear_attn.out_proj.weight": [d, 6144]}
    tensors = {"model.language_model.embed_tokens.weight": [V, d], "model.language_model.norm.weight": [d],
               "lm_head.weight": [V, d]}
    for layer in range(QWEN["L"]):
        mixer = full if layer % 4 == 3 else linear
        for name, shape in {**ffn, **norms, **mixer}.items():
            tensors[f"model.language_model.layers.{layer}.{name}"] = shape
    for name, shape in {**ffn, **norms, **full}.items():
        tensors[f"mtp.layers.0.{name}"] = shape
    tensors["mtp.fc.weight"] = [d, 2 * d]
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        tensors[f"mtp.{norm}.weight"] = [d]
    h, wide = 1152, 4304
    linears = {"attn.qkv": [3 * h, h], "attn.proj": [h, h], "mlp.linear_fc1": [wide, h], "mlp.linear_fc2": [h, wide]}
    for block in range(27):
        for name, shape in {**linears, "norm1": [h], "norm2": [h]}.items():
            tensors[f"model.visual.blocks.{block}.{name}.weight"] = shape
            tensors[f"model.visual.blocks.{block}.{name}.bias"] = shape[:1]
    ends = {"patch_embed.proj": [h, 3, 2, 16, 16], "merger.norm": [h], "merger.linear_fc1": [4 * h, 4 * h],
            "merger.linear_fc2": [d, 4 * h]}
    for name, shape in ends.items():
        tensors[f"model.visual.{name}.weight"] = shape
        tensors[f"model.visual.{name}.bias"] = shape[:1]
    tensors["model.visual.pos_embed.weight"] = [2304, h]
    return tensors


def header_only(tensors, dtypes=None):
    """The bytes of a safetensors file that ends where its values would begin."""
    sizes = {"BF16": 2, "F32": 4, "U8": 1}
    entries, offset = {}, 0
    for name, shape in tensors.items():
        dtype = (dtypes or {}).get(name, "BF16")
        end = offset + math.prod(shape) * sizes[dtype]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


class Ledger(support.Case):
    def ledger(self, *words):
        return json.loads(self.run_program("ledger", *words, "--json").stdout)

    def check_config(self, *words):
        return json.loads(self.run_program("check", *words, "--json").stdout)

    @staticmethod
    def groups(ledger):
        return {group["name"]: group for group in ledger["groups"]}

    @staticmethod
    def lint(checked, lint_id):
        return next(lint["message"] + " " + lint["advice"] for lint in checked["lints"] if lint["id"] == lint_id)

    def assert_same_counts(self, found, expected):
        """Where two ways to one model must agree; buffers are no part of a config."""
        for key in ("parameters", "text_parameters", "classic_estimate", "gap", "gap_items", "training_bytes"):
            self.assertEqual(found[key], expected[key], key)
        self.assertEqual(list(self.groups(found)), list(self.groups(expected)))
        for name, group in self.groups(expected).items():
            for key in ("parameters", "per_unit", "units", "share", "text_share"):
                self.assertEqual(self.groups(found)[name][key], group[key], f"{name}.{key}")

    def test_baseline(self):
        baseline = support.ROOT / "configs" / "baseline.toml"
        self.assertEqual(self.ledger(baseline)["crossover_context"], 1032)
        halved = self.groups(self.ledger(baseline, "model.n_kv_heads=4"))["full_attention"]["derivation"]
        self.assertEqual(halved, "2*256*256 + 2*128*256")
        wide = self.lint(self.check_config(baseline, "model.d_ff=1024"), "E11")
        self.assertIn("model.d_ff = 688", wide)

    def test_qwen_by_name(self):
        ledger = self.ledger("qwen3.8-27b")
        groups = self.groups(ledger)
        self.assertEqual([groups[name]["units"] for name in ("full_attention", "linear_attention", "ffn")],
                         [16, 48, 64])
        self.assertEqual(groups["full_attention"]["per_unit"], 104858112)
        self.assertEqual(groups["linear_attention"]["per_unit"], 115876064)
        self.assertEqual(ledger["text_parameters"], 26895998464)
        self.assertEqual(groups["mtp"]["parameters"], 424699392)
        self.assertEqual(groups["vision"]["parameters"], 460730096)
        self.assertEqual(groups["norms"]["parameters"], 660480)
        gap = {item["what"]: item["parameters"] for item in ledger["gap_items"]}
        self.assertEqual(gap, {"full_attention beyond 4 d^2 a layer": 8192,
                               "linear_attention beyond 4 d^2 a layer": 528886272,
                               "ffn beyond 8 d^2 a layer": 3690987520, "norms": 660480, "lm_head": 1271398400,
                               "mtp": 424699392, "vision": 460730096})
        self.assertEqual(sum(gap.values()), ledger["gap"])
        self.assertEqual(ledger["training_bytes"], 444502847232)
        self.assertEqual(ledger["ffn_flops_per_token"], 34225520640)
        self.assertEqual(ledger["score_flops_per_past_token"], 393216)
        self.assertEqual(ledger["context"], 262144)
        self.assertEqual(ledger["kv_bytes_per_token"], 65536)
        self.assertEqual(ledger["state_bytes"], 75497472)

    def test_qwen_from_huggingface(self):
        path = self.folder / "config.json"
        path.write_text(json.dumps(QWEN_CONFIG))
        found, expected = self.ledger(path), self.ledger("qwen3.8-27b")
        self.assert_same_counts(found, expected)
        for key in ("active_parameters", "flops_per_token", "ffn_flops_per_token", "score_flops_per_past_token",
                    "crossover_context", "kv_bytes_per_token", "state_bytes", "context", "scores_to_ffn"):
            self.assertEqual(found[key], expected[key], key)

    def test_qwen_from_a_header(self):
        path = self.folder / "qwen.safetensors"
        path.write_bytes(header_only(qwen_tensors()))
        ledger = self.ledger(path)
        self.assert_same_counts(ledger, self.ledger("qwen3.8-27b"))
        self.assertEqual(ledger["tensors"], 1199)
        self.assertEqual(ledger["file_elements"], 27781427952)

    def test_gpt2_from_a_header(self):
        tensors = {"wte.weight": [50257, 768], "wpe.weight": [1024, 768], "ln_f.weight": [768], "ln_f.bias": [768]}
        for layer in range(12):
            for name, shape in {"ln_1.weight": [768], "ln_1.bias": [768], "attn.bias": [1, 1, 1024, 1024],
                                "attn.c_attn.weight": [768, 2304], "attn.c_attn.bias": [2304],
                                "attn.c_proj.weight": [768, 768], "attn.c_proj.bias": [768], "ln_2.weight": [768],
                                "ln_2.bias": [768], "mlp.c_fc.weight": [768, 3072], "mlp.c_fc.bias": [3072],
                                "mlp.c_proj.weight": [3072, 768], "mlp.c_proj.bias": [768]}.items():
                tensors[f"h.{layer}.{name}"] = shape
        path = self.folder / "gpt2.safetensors"
        path.write_bytes(header_only(tensors))
        by_file, by_config = self.ledger(path), self.ledger("gpt2")
        self.assert_same_counts(by_file, by_config)
        for key in ("buffers", "file_elements"):
            self.assertEqual(by_file[key], by_config[key], key)
        config = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
                  "n_positions": 1024}
        path = self.folder / "config.json"
        path.write_text(json.dumps(config))
        self.assertEqual(self.ledger(path)["parameters"], 124439808)

    def test_other_models(self):
        wide = self.lint(self.check_config(MODELS / "deepseek-llm-67b.toml", "model.d_ff=32768"), "E11")
        self.assertIn("model.d_ff = 22016", wide)
        largest = self.ledger("qwen3.8-2.4t-a95b")
        self.assertEqual(largest["parameters"], 2446182725504)
        self.assertEqual(round(largest["active_parameters"] / 1e9, 2), 95.29)
        self.assertEqual(self.ledger("gpt-oss-20b")["parameters"], 20914757184)
        self.assertEqual(self.ledger("gpt-oss-120b")["parameters"], 116829156672)
        self.assertEqual(self.ledger("llama2-7b")["parameters"], 6738415616)

    def of_config(self, **sizes):
        path = self.folder / "config.json"
        path.write_text(json.dumps(sizes))
        return self.ledger(path)

    def test_config_json_of_each_type(self):
        """Totals as the released files have them."""
        qwen = {"num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936}
        models = {
            7241732096: {"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
                         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336},
            46702792704: {"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
                          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                          "num_local_experts": 8, "num_experts_per_tok": 2},
            7615616512: {"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "num_hidden_layers": 28,
                         "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944},
            8190735360: {"model_type": "qwen3", **qwen, "num_key_value_heads": 8, "hidden_size": 4096,
                         "num_hidden_layers": 36, "intermediate_size": 12288, "attention_bias": False},
            30532122624: {"model_type": "qwen3_moe", **qwen, "hidden_size": 2048, "num_hidden_layers": 48,
                          "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
                          "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": []},
            7298617344: {"model_type": "olmo2", "vocab_size": 100352, "hidden_size": 4096, "num_hidden_layers": 32,
                         "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008},
            20914757184: {"model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 24,
                          "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
                          "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
                          "attention_bias": True, "sliding_window": 128},
        }
        for parameters, sizes in models.items():
            with self.subTest(sizes["model_type"]):
                found = self.of_config(**sizes)
                self.assertEqual(found["parameters"], parameters)
                lints = {lint["id"] for lint in found["lints"]}
                is_mixture = "num_experts_per_tok" in sizes
                self.assertEqual("E29" in lints, is_mixture)
                self.assertEqual(found["active_parameters"] < parameters, is_mixture)
        self.assertIn("as if they saw all", " ".join(found["notes"]))
        experts = 24 * 28 * (3 * 2880 * 2880 + 3 * 2880)  # that do not work on a token
        self.assertEqual(found["active_parameters"], 20914757184 - experts)

    def test_hostile_config_json(self):
        llama = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 64, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "intermediate_size": 96}
        hybrid = {**QWEN_CONFIG["text_config"], "model_type": "qwen3_next"}
        vision = QWEN_CONFIG["vision_config"]
        path = self.folder / "config.json"
        deep = "[" * 200_000
        texts = {
            '{"model_type": ' + deep: "nested deeper", '{"model_type": "llama", "model_type": "gpt2"}': "twice",
            json.dumps({**llama, "num_key_value_heads": 0}): "num_key_value_heads",
            json.dumps({**llama, "num_attention_heads": 33}): "config.json: model.n_heads",
            json.dumps({**llama, "torch_dtype": []}): "torch_dtype",
            json.dumps({**llama, "attention_bias": True}): "attention_bias",
            json.dumps({**llama, "weight_map": {}, "model_type": ""}): "index of a model's files",
            json.dumps({**hybrid, "layer_types": ["linear_attention", "full_attention"]}): "layer_types",
            json.dumps({**hybrid, "layer_types": "full_attention"}): "no list",
            json.dumps({**hybrid, "mtp_num_hidden_layers": 1_000_000_000}): "mtp_layers",
        }
        for key, value in {"depth": 2**31 - 1, "patch_size": 2**31 - 1, "spatial_merge_size": 2**31 - 1,
                           "hidden_size": 2**31 - 1, "intermediate_size": 2**31 - 1}.items():
            texts[json.dumps({**QWEN_CONFIG, "vision_config": {**vision, key: value}})] = "release.vision_"
        for text, expected in texts.items():
            path.write_text(text)
            self.assertIn(expected, self.refused("ledger", path))

    def test_odd_headers(self):
        path = self.folder / "odd.safetensors"

        def of(tensors, dtypes=None):
            path.write_bytes(header_only(tensors, dtypes))
            return self.ledger(path)

        found = of({"h.0.attn.bias": [1, 1, 8, 8], "inv_freq": [4]})
        self.assertEqual((found["parameters"], found["buffers"]), (0, 68))
        self.assertEqual([lint["id"] for lint in found["lints"]], ["E25"])
        self.assertNotRegex(self.run_program("ledger", path).stdout, "nan|inf ")
        self.assertEqual([group["name"] for group in of({"strange": [3]})["groups"]], ["other"])
        self.assertIn("whole numbers", of({"model.layers.0.mlp.w": [4]}, {"model.layers.0.mlp.w": "U8"})["notes"][0])
        self.assertEqual(of({"layers.99999999999.mlp.w": [4]})["parameters"], 4)
        entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        text = json.dumps({"model.embed_tokens.weight": entry, "lm_head.weight": entry}).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        tied = self.ledger(path)
        self.assertEqual(tied["parameters"], 4)
        self.assertIn("share the values of another", tied["notes"][0])
        shard = self.folder / "model-00001-of-00003.safetensors"
        shard.write_bytes(header_only({"model.layers.0.mlp.w": [4]}))
        self.assertIn("one of several files", self.ledger(shard)["notes"][0])
        path.write_bytes(header_only({"a": [2**31, 2**29]}, {"a": "U8"}))
        self.assertIn("too many to be counted", self.refused("ledger", path))
        of({"a": [1]})
        self.assertIn("--context", self.refused("ledger", path, "--context", "9"))

    def test_release_is_checked(self):
        baseline = support.ROOT / "configs" / "baseline.toml"
        for setting, expected in {"release.router_bias=true": "no router", "release.vision_layers=2": "vision_d_model",
                                  "release.mtp_layers=20000": "mtp_layers"}.items():
            self.assertIn(expected, self.refused("ledger", baseline, setting))
        self.assertIn("already", self.refused("check", baseline, "release.qkv_bias=true", "model.bias=true"))
        hybrid = [baseline, "model.attention=hybrid"]
        plain, biased = (self.ledger(*hybrid, f"release.qkv_bias={word}") for word in ("false", "true"))
        self.assertEqual(biased["parameters"] - plain["parameters"], 3 * 256)  # of its one layer of full attention
        self.assertIn("too many", self.refused("ledger", "gpt2", "model.max_seq_len=2147483647"))
        lints = [lint["id"] for lint in self.ledger("gpt2", "release.stated_parameters=1e9")["lints"]]
        self.assertIn("E30", lints)

    def test_comparison(self):
        text = self.run_program("ledger", "--compare", "gpt2", support.ROOT / "configs" / "baseline.toml",
                                "qwen3.8-27b").stdout
        for number in ("124,439,808", "3,688,704", "27,781,427,952", "31.02 %", "14.21 %", "4.58 %"):
            self.assertIn(number, text)
        self.assertIn("shares are of each model's parameters", text)
        models = json.loads(self.run_program("ledger", "--compare", "gpt2", "llama2-7b", "--json").stdout)["models"]
        self.assertEqual([model["parameters"] for model in models], [124439808, 6738415616])

    def test_text_names_every_denominator(self):
        text = self.run_program("ledger", "qwen3.8-27b").stdout
        self.assertIn("shares are of all parameters, then of the text model's parameters", text)
        for piece in ("444.50 GB", "55.56 GB", "87040", "174079", "3.0118", "17.18 GB", "11,017,952"):
            self.assertIn(piece, text)
        self.assertIn("E27", self.run_program("ledger", "qwen3.8-27b", "--context", "262144").stdout)
        self.assertNotIn("E27", self.run_program("ledger", "qwen3.8-27b", "--context", "1000").stdout)

    def test_wrong_input(self):
        tests = {("no-such-model",): "neither a file nor a preset", ("qwen3.8-27B",): "did you mean",
                 ("gpt2", "llama2-7b"): "--compare", ("--compare", "gpt2", "--context", "9"): "--context"}
        for words, expected in tests.items():
            self.assertIn(expected, self.refused("ledger", *words))
        path = self.folder / "config.json"
        for text, expected in {"[": "not JSON", "[]": "an object", '{"model_type": "bert"}': "model_type",
                               '{"model_type": "llama", "vocab_size": 1.5}': "vocab_size",
                               '{"model_type": "llama", "vocab_size": -1}': "vocab_size",
                               '{"model_type": "llama"}': "is missing"}.items():
            path.write_text(text)
            self.assertIn(expected, self.refused("ledger", path))
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(header_only({"a": [2, 2]})[:-3])
        self.refused("ledger", broken)
        broken.write_bytes(header_only({"a": [2, 2]}))
        self.assertIn("no settings", self.refused("ledger", broken, "model.d_ff=3"))


if __name__ == "__main__":
    support.main()
