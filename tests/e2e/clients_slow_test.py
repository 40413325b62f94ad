"""Programs of others on our files: node-llama-cpp writes the same text from an exported GGUF, and GPT-2's published
tables give the ids that gpt-3-encoder gives. Skipped where scripts/get_clients has not fetched them."""
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

import export_case
import support
from export_case import safetensors

CLIENTS = pathlib.Path(os.environ.get("MINILLM_CLIENTS", support.ROOT / "build" / "clients"))
MODULES = CLIENTS / "node_modules"
TOKENS = 60

TEXTS = ["Hello world", "It's  a   test\n\n  of 好吃, 不难吃 🙂 \r\n\ttabs  ", "don't we'll I'D they've 2026 3.14159",
         "naïve café Ærøskøbing Ελλάδα 한국어 ١٢٣ ½ ²", "    def f(x):\n        return x\n\n\n",
         "\u3000段落\u00a0\u2003x\u0085", "a" * 300, "!?" * 50, " ", "\n", "<|endoftext|>", "e\u0301 \u200d👩\u200d🚀"]


def random_text(characters):
    draw = random.Random(3)
    pools = ["abcdefgh     \n'sdm", "好吃不难吃小明把苹果给了小王。，\u3000 \n", "0123456789.,- \t", "éèüßñ€😀👍🏽\u0301 a\n\n"]
    return "".join(draw.choice(draw.choice(pools)) for _ in range(characters))


def tiny_gpt2(vocabulary, positions):
    """{file: content}: GPT-2 of two numbers a token, all zero, which knows nothing but its tokenizer."""
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_head": 1, "n_embd": 2,
              "n_positions": positions, "vocab_size": vocabulary, "layer_norm_epsilon": 1e-5,
              "activation_function": "gelu_new"}
    shapes = {"wte.weight": (vocabulary, 2), "wpe.weight": (positions, 2), "ln_f.weight": (2,), "ln_f.bias": (2,)}
    for name, shape in {"ln_1.weight": (2,), "ln_1.bias": (2,), "ln_2.weight": (2,), "ln_2.bias": (2,),
                        "attn.c_attn.weight": (2, 6), "attn.c_attn.bias": (6,), "attn.c_proj.weight": (2, 2),
                        "attn.c_proj.bias": (2,), "mlp.c_fc.weight": (2, 8), "mlp.c_fc.bias": (8,),
                        "mlp.c_proj.weight": (8, 2), "mlp.c_proj.bias": (2,)}.items():
        shapes[f"h.0.{name}"] = shape
    return {"config.json": json.dumps(config), "model.safetensors": safetensors(
        {f"transformer.{name}": (shape, [0.0] * math.prod(shape))
         for name, shape in shapes.items()})}


class Clients(export_case.ExportCase):
    def node(self, *words, **options):
        done = subprocess.run(["node", *map(str, words)], text=True, capture_output=True, check=False, timeout=300,
                              **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @unittest.skipUnless((MODULES / "node-llama-cpp").is_dir(), "node-llama-cpp is not there")
    def test_llama_cpp_writes_the_same_text(self):
        self.export("text", "gguf", "text.gguf")
        script = support.ROOT / "scripts" / "peers" / "gguf_greedy.mjs"
        there = self.node(script, CLIENTS, self.folder / "text.gguf", TOKENS, 1)
        self.assertEqual(there, self.greedy(self.given / "text")["token_ids"][:TOKENS])

    @unittest.skipUnless((MODULES / "gpt-3-encoder").is_dir(), "gpt-3-encoder is not there")
    def test_gpt2_has_its_ids(self):
        encoder = MODULES / "gpt-3-encoder"
        texts = TEXTS + [random_text(1500)]
        script = f"const {{encode}} = require({json.dumps(str(encoder))});" \
                 "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).map(t => encode(t))))"
        expected = self.node("-e", script, input=json.dumps(texts))
        for name, content in tiny_gpt2(50257, 4096).items():
            self.write(f"gpt2/{name}", content)
        shutil.copy(encoder / "encoder.json", self.folder / "gpt2" / "vocab.json")
        shutil.copy(encoder / "vocab.bpe", self.folder / "gpt2" / "merges.txt")
        for text, ids in zip(texts, expected):
            found = self.json_of("generate", "gpt2", "--max-tokens", 0, "--prompt", text)
            self.assertEqual(found["prompt_token_ids"], [50256, *ids], text[:40])
        self.run_program("import", "gpt2", "--out", "run")
        self.export(self.folder / "run", "huggingface", "back")
        found = self.json_of("generate", "back", "--max-tokens", 0, "--prompt", texts[-1])
        self.assertEqual(found["prompt_token_ids"], [50256, *expected[-1]])


if __name__ == "__main__":
    if shutil.which("node") is None or not MODULES.is_dir():
        print("skipped: scripts/get_clients has not fetched the clients")
        sys.exit(77)
    support.main()
