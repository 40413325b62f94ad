#!/usr/bin/python3 -B
"""Writes the seeds of the fuzz targets: small valid files that the program itself makes, and pieces of them.

usage: tests/fuzz/make_seeds.py PROGRAM
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
WORDS = "the cat saw a dog. A dog saw the red ball!\nTwo cats ran home, and it rained.\n"
SMALL = ["model.d_model=8", "model.n_layers=1", "model.n_heads=2", "model.n_kv_heads=1", "model.d_ff=8",
         "model.norm_eps=1e-5", "data.seq_len=8", "train.steps=1", "train.batch_size=1", "train.eval_every=0",
         "optim.warmup_steps=0", "train.threads=1"]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*words):
            subprocess.run([program, *map(str, words)], cwd=folder, check=True, capture_output=True)

        def seed(target, file, content):
            path = SEEDS / target / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

        def read(path):
            return (folder / path).read_bytes()

        shutil.rmtree(SEEDS, ignore_errors=True)
        (folder / "words.txt").write_text(WORDS * 40, encoding="utf-8")
        (folder / "a.toml").write_text("", encoding="utf-8")
        ids = [(i * i + i // 3) % 30 for i in range(400)]
        (folder / "ids.bin").write_bytes(struct.pack("<400H", *ids))
        run("prepare", "words.txt", "--vocab", 262, "--out", "text.h5")
        run("import-tokens", "ids.bin", "--vocab", 30, "--out", "ids.h5")
        run("train", "a.toml", "--out", "text", "data.path=text.h5", *SMALL)
        run("train", "a.toml", "--out", "ids", "data.path=ids.h5", *SMALL)
        run("train", "a.toml", "--out", "gpt2", "data.path=ids.h5", *SMALL, "model.position=learned",
            "model.norm=layernorm", "model.ffn=gelu_tanh", "model.bias=true", "model.n_kv_heads=2")
        for made in ("text", "ids"):
            run("export", made, "--format", "gguf", "--out", f"{made}.gguf")
            run("export", made, "--format", "llama2c", "--out", f"{made}_l2c")
            run("export", made, "--format", "huggingface", "--out", f"{made}_hf")
            seed("foreign_model", f"{made}.gguf", read(f"{made}.gguf"))
            seed("foreign_model", f"{made}_model.bin", read(f"{made}_l2c/model.bin"))
        run("export", "gpt2", "--format", "huggingface", "--out", "gpt2_hf")
        seed("safetensors", "model.safetensors", read("ids_hf/model.safetensors"))
        seed("safetensors", "empty.safetensors", struct.pack("<Q", 2) + b"{}")
        seed("huggingface_config", "llama.json", read("ids_hf/config.json"))
        seed("huggingface_config", "gpt2.json", read("gpt2_hf/config.json"))
        seed("llama2c_tokenizer", "tokenizer.bin", struct.pack("<H", 262) + read("text_l2c/tokenizer.bin"))
        seed("tokenizer", "sentencepiece.model", read("text_hf/tokenizer.model"))
        seed("tokenizer", "words.bin", b"minillm-words 1\n4  cat\n2 .\n\n")
        seed("tokenizer", "bpe.json", bpe_json())
        seed("config", "run.toml", read("ids/config.toml"))
        seed("config", "small.toml", b'[model]\nffn = "gelu"\n[optim]\nlr = 1e-3 # a comment\n')
        seed("user_block", "text.h5", read("text.h5")[:2048])
        seed("import_tokens", "plain.bin", bytes([28]) + read("ids.bin"))
        header = struct.pack("<256i", 20240520, 1, 400, *[0] * 253)
        seed("import_tokens", "llmc.bin", bytes([28]) + header + read("ids.bin"))


def bpe_json():
    """As in tests/data/byte_bpe_test.cpp: all bytes, two merges."""

    shown, code = [], 256
    for byte in range(256):
        visible = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        shown.append(chr(byte if visible else code))
        code += not visible
    vocab = {character: byte for byte, character in enumerate(shown)}
    vocab.update({"th": 256, "the": 257})
    return json.dumps({"added_tokens": [{"id": 258, "content": "<|endoftext|>"}],
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                       "model": {"type": "BPE", "vocab": vocab, "merges": ["t h", ["th", "e"]]}}).encode()


if __name__ == "__main__":
    main()
