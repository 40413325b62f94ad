"""minillm export --format gguf and its way back: metadata, vocabulary and weights are what llama.cpp's architecture
"llama" has, by a reader and decoder of our own in plain Python; headers that cannot be right are refused."""
import struct
import sys

import export_case
import support
from cli_support import Row
from export_case import CONTEXT, IDS, NEAR

sys.path.append(str(support.ROOT / "tests" / "support"))
import plain_llama  # noqa: E402
import plain_readers  # noqa: E402

RUNS = {"ids": ["model.tie_embeddings=false", "model.rope_theta=5000", "model.norm_eps=1e-6", "model.head_dim=6"],
        "tied": []}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, kind, pattern, value):
    return text(key) + struct.pack("<I", kind) + (text(value) if pattern is None else struct.pack("<" + pattern, value))


def requantized(content, kind, encode):
    """The file with its matrices in another type: encode(values) -> bytes."""
    file = plain_readers.Gguf(content)
    infos, body = b"", b""
    for name, rows in file.tensors.items():
        is_matrix = isinstance(rows[0], tuple)
        extents = (len(rows[0]), len(rows)) if is_matrix else (len(rows),)
        values = [v for row in rows for v in row] if is_matrix else rows
        infos += text(name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, kind if is_matrix else 0,
                                          len(body))
        body += encode(values) if is_matrix else struct.pack(f"<{len(values)}f", *values)
        body += bytes(-len(body) % 32)
    first = content.index(text("token_embd.weight"))
    header = content[:first] + infos
    return header + bytes(-len(header) % 32) + body


def halves(values):
    return struct.pack(f"<{len(values)}e", *values)


def blocks(values):
    packed = b""
    for first in range(0, len(values), 32):
        block = values[first:first + 32]
        scale = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))[0]
        packed += struct.pack("<e32b", scale, *[max(-127, min(127, round(v / scale))) for v in block])
    return packed


class Gguf(export_case.ExportCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, settings in RUNS.items():
            cls.train_given(name, "ids.h5", *settings)
        for name in (*RUNS, "text"):
            cls.call("export", name, "--format", "gguf", "--out", f"{name}.gguf")

    def test_the_model_is_the_run(self):
        for name in RUNS:
            with self.subTest(name):
                model, file = plain_readers.read_gguf((self.given / f"{name}.gguf").read_bytes())
                self.assertEqual("output.weight" in file.tensors, name == "ids")
                self.assertEqual(file.metadata["tokenizer.ggml.model"], "none")
                self.assertAlmostEqual(plain_llama.mean_loss(model, IDS[:CONTEXT + 1]), self.loss(self.given / name),
                                       delta=NEAR)
        model, _ = plain_readers.read_gguf((self.given / "text.gguf").read_bytes())
        self.assertEqual(plain_llama.greedy(model, 1, CONTEXT, (1, 2)), self.greedy(self.given / "text")["token_ids"])
        self.assert_speaks_as_it_is(self.given / "text.gguf")

    def test_the_header(self):
        content = (self.given / "text.gguf").read_bytes()
        self.assertEqual(content[:16], b"GGUF" + struct.pack("<IQ", 3, 2 + 9 * 2))
        file = plain_readers.Gguf(content)
        data = file.metadata
        self.assertEqual({key: data[f"llama.{key}"] for key in (
            "context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
            "attention.head_count_kv", "rope.dimension_count", "rope.freq_base", "vocab_size")},
            {"context_length": 64, "embedding_length": 16, "block_count": 2, "feed_forward_length": 24,
             "attention.head_count": 4, "attention.head_count_kv": 2, "rope.dimension_count": 4,
             "rope.freq_base": 10000.0, "vocab_size": 300})
        self.assertAlmostEqual(data["llama.attention.layer_norm_rms_epsilon"], 1e-5, delta=1e-11)
        self.assertEqual(file.start % 32, 0)
        tokens, kinds = data["tokenizer.ggml.tokens"], data["tokenizer.ggml.token_type"]
        self.assertEqual((len(tokens), len(data["tokenizer.ggml.scores"]), kinds[:4]), (300, 300, [2, 3, 3, 6]))
        self.assertEqual(tokens[:4] + tokens[258:259], ["<unk>", "<s>", "</s>", "<0x00>", "<0xFF>"])
        self.assertTrue(any(token.startswith("\u2581") for token in tokens[259:]))
        self.assertEqual((data["tokenizer.ggml.bos_token_id"], data["tokenizer.ggml.eos_token_id"],
                          data["tokenizer.ggml.add_bos_token"], data["tokenizer.ggml.add_space_prefix"]),
                         (1, 2, True, False))

    def test_the_way_back(self):
        for name in RUNS:
            with self.subTest(name):
                printed = self.run_program("import", self.given / f"{name}.gguf", "--out", name).stdout
                self.assertIn("GGUF version 3, llama (F32)", printed)
                self.assert_same_weights(self.given / name, self.folder / name)
                self.assertEqual(self.loss(name), self.loss(self.given / name))
        self.run_program("import", self.given / "text.gguf", "--out", "back")
        for words in (("--temperature", 0), ("--prompt", "It was for\n 日 on ", "--seed", 1)):
            found = [self.json_of("generate", run, *words) for run in (self.given / "text", "back")]
            self.assertEqual(found[0]["token_ids"], found[1]["token_ids"])
            self.assertEqual(found[0]["prompt_token_ids"], found[1]["prompt_token_ids"])

    def test_smaller_types_are_read(self):
        self.train_given("wide", "ids.h5", "model.d_model=32", "model.d_ff=64")
        self.call("export", "wide", "--format", "gguf", "--out", "wide.gguf")
        content = (self.given / "wide.gguf").read_bytes()
        for kind, encode, unpack, bound in ((1, halves, lambda b: struct.unpack(f"<{len(b) // 2}e", b), 0.01),
                                            (8, blocks, None, 0.05)):
            self.write("small.gguf", requantized(content, kind, encode))
            self.run_program("import", "small.gguf", "--out", f"small{kind}")
            model, _ = plain_readers.read_gguf(content)
            for matrix in [model["embed"]] + [layer[name] for layer in model["layers"]
                                              for name in ("wq", "wk", "wv", "wo", "w1", "w2", "w3")]:
                for at, row in enumerate(matrix):
                    packed = encode(row)
                    matrix[at] = unpack(packed) if unpack else [
                        struct.unpack_from("<e", packed, b)[0] * code for b in range(0, len(packed), 34)
                        for code in struct.unpack_from("<32b", packed, b + 2)]
            expected = plain_llama.mean_loss(model, IDS[:CONTEXT + 1])
            self.assertAlmostEqual(self.loss(f"small{kind}"), expected, delta=NEAR)
            self.assertNotEqual(self.loss(f"small{kind}"), self.loss(self.given / "wide"))
            self.assertAlmostEqual(expected, self.loss(self.given / "wide"), delta=bound)

    def test_smaller_types_are_written(self):
        """Byte for byte what rounding the float32 file by other code gives, but for the file's type."""
        self.train_given("broad", "ids.h5", "model.d_model=32", "model.d_ff=64")
        self.call("export", "broad", "--format", "gguf", "--out", "broad.gguf")
        content = (self.given / "broad.gguf").read_bytes()
        for name, kind, file_kind, encode in (("f16", 1, 1, halves), ("q8_0", 8, 7, blocks)):
            printed = self.export("broad", "gguf", f"{name}.gguf", "--weights", name)
            self.assertRegex(printed, rf"rounding the matrices to {name} moved a logit by \d.*\n")
            was, now = (entry("general.file_type", 4, "I", value) for value in (0, file_kind))
            expected = requantized(content, kind, encode).replace(was, now)
            self.assertEqual((self.folder / f"{name}.gguf").read_bytes(), expected)
        words = ["export", self.given / "ids", "--out", "x", "--format"]
        self.assertRegex(self.refused(*words, "gguf", "--weights", "q8_0"),
                         r"--weights: model\..* cannot be written as q8_0; found rows of 16 values")
        self.assertRegex(self.refused(*words, "llama2c", "--weights", "f16"),
                         r"--weights: files of llama2c are written in f32; found f16")
        self.assertRegex(self.refused(*words, "gguf", "--weights", "q4"),
                         r"--weights: unknown type q4; expected f32 or f16 or q8_0")

    def test_places_and_models_that_cannot_be_written(self):
        self.write("there.gguf", "mine")
        self.assertRegex(self.refused("export", self.given / "ids", "--format", "gguf", "--out", "there.gguf"),
                         r"there\.gguf: stands there already; an export makes a new file")
        self.assertEqual((self.folder / "there.gguf").read_text(encoding="utf-8"), "mine")
        self.assertRegex(self.refused("export", self.given / "ids", "--format", "gguf", "--out", "no/x.gguf"),
                         r"cannot be created: |cannot be created; ")
        self.assertRegex(self.refused("export", self.given / "ids", "--format", "gguf", "--out", "x.gguf", status=1,
                                      **support.limit_file_size(9000)), r"cannot be written: File too large")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["there.gguf"])
        self.run_program("train", self.given / "base.toml", "--out", "run", f"data.path={self.given / 'ids.h5'}",
                         *export_case.SETTINGS, "model.qk_norm=true", "model.bias=true", "train.steps=1")
        self.assertRegex(self.refused("export", "run", "--format", "gguf", "--out", "x.gguf"),
                         r"cannot be written as gguf; found model\.bias = true, not false; model\.qk_norm = true")

    def test_files_that_are_refused(self):
        whole = (self.given / "ids.gguf").read_bytes()
        first = whole.index(text("token_embd.weight"))
        huge = 2**40

        def imported(content, *patterns):
            return Row("import m.gguf --out run", patterns, files={"m.gguf": content})

        def changed(key, kind, pattern, old, new):
            found = entry(key, kind, pattern, old)
            self.assertEqual(whole.count(found), 1, key)
            return whole.replace(found, entry(key, kind, pattern, new))

        def at(place, pattern, value):
            packed = struct.pack("<" + pattern, value)
            return whole[:place] + packed + whole[place + len(packed):]
        rank_at = first + 8 + len("token_embd.weight")
        self.check_all([
            imported(at(4, "I", 1), r"version that is not read here; found 1; expected 2 or 3"),
            imported(at(8, "Q", huge), r"number of tensors cannot be right; found 1099511627776"),
            imported(at(8, "q", -1), r"number of tensors cannot be right; found 18446744073709551615"),
            imported(at(16, "Q", huge), r"number of metadata cannot be right"),
            imported(at(24, "Q", huge), r"a key is longer than the file; found 1099511627776 bytes"),
            imported(at(rank_at, "I", 9), r"tensor token_embd\.weight cannot be right; found rank 9"),
            imported(at(rank_at + 4, "Q", 2**62), r"tensor token_embd\.weight is larger than any file"),
            imported(at(rank_at + 12, "Q", huge), r"tensor token_embd\.weight ends beyond the file"),
            imported(at(rank_at + 20, "I", 99), r"of a type that is not read here; found ggml's type 99"),
            imported(at(rank_at + 24, "Q", 2**63), r"token_embd\.weight ends beyond the file"),
            imported(at(rank_at + 24, "Q", 64), r"two tensors overlap"),
            imported(whole[:-32], r"ends beyond the file"),
            imported(whole[:100], r"found \d+; expected at most|ends inside its header"),
            imported(whole[:-4] + b"\0\0\xc0\x7f", r"is not finite"),
            imported(changed("general.architecture", 8, None, "llama", "gemma"),
                     r"general\.architecture: models of this architecture are not imported; found gemma"),
            imported(changed("llama.block_count", 4, "I", 2, 3), r"9 missing in the file: model\.layers\.2"),
            imported(changed("llama.block_count", 4, "I", 2, 2**31), r"llama\.block_count: is no count"),
            imported(changed("llama.block_count", 4, "I", 2, 0), r"llama\.block_count: is no count; found 0"),
            imported(changed("general.alignment", 4, "I", 32, 33), r"general\.alignment cannot be right; found 33"),
            imported(changed("llama.rope.dimension_count", 4, "I", 6, 4), r"a part of each head alone"),
            imported(changed("llama.attention.head_count_kv", 4, "I", 2, 4), r"k_proj\.weight \[12, 16\]"),
            imported(whole.replace(text("llama.block_count"), text("llama.black_count")),
                     r"llama\.block_count: is missing"),
        ])


if __name__ == "__main__":
    support.main()
