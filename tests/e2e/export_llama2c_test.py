"""minillm export --format llama2c and its way back: the files hold what llama2.c's run.c reads, by a reader of our own
in plain Python; versions 0, 1 and 2 are read; what cannot be right is refused."""
import struct
import sys

import export_case
import support
from cli_support import Row
from export_case import CONTEXT, IDS, NEAR, VOCABULARY

sys.path.append(str(support.ROOT / "tests" / "support"))
import plain_llama  # noqa: E402

PARTS = ("wq", "wk", "wv", "wo", "w1", "w2", "w3")


def flat(rows):
    return [value for row in rows for value in row]


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def groups_of(values, size):
    """export.py's quantize_q80: (bytes, scales)."""
    codes, scales = [], []
    for first in range(0, len(values), size):
        group = values[first:first + size]
        scale = struct.unpack("<f", struct.pack("<f", max(map(abs, group)) / 127))[0]
        scales.append(scale)
        codes += [max(-127, min(127, round(value / scale))) for value in group]
    return codes, scales


def newer_version(content, version, size=8):
    """A model.bin of version 0 as one of version 1 or 2, in the order of export.py; with what version 2 rounds to."""
    model = plain_llama.read_llama2c(content)
    numbers = list(plain_llama.llama2c_sizes(content))
    numbers[5] = abs(numbers[5])
    header = struct.pack("<Ii7iB", 0x616b3432, version, *numbers, model["config"]["tied"])
    header += struct.pack("<i", size) if version == 2 else b""
    layers = model["layers"]
    body = floats(flat([layer["attn_norm"] for layer in layers] + [layer["ffn_norm"] for layer in layers]
                       + [model["norm"]]))
    matrices = [model["embed"]] + [layer[name] for name in PARTS for layer in layers]
    if not model["config"]["tied"]:
        matrices.append(model["head"])
    for matrix in matrices:
        if version == 1:
            body += floats(flat(matrix))
            continue
        codes, scales = groups_of(flat(matrix), size)
        body += struct.pack(f"<{len(codes)}b", *codes) + floats(scales)
        width = len(matrix[0])
        rounded = [code * scales[at // size] for at, code in enumerate(codes)]
        for row in range(len(matrix)):
            matrix[row] = rounded[row * width:(row + 1) * width]
    if model["config"]["tied"]:
        model["head"] = model["embed"]
    return header.ljust(256, b"\0") + body, model


class Llama2c(export_case.ExportCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train_given("ids", "ids.h5", "model.tie_embeddings=false")
        cls.train_given("tied", "ids.h5", "train.steps=2")
        for name in ("ids", "tied", "text"):
            cls.call("export", name, "--format", "llama2c", "--out", f"{name}_l2c")
        cls.content = (cls.given / "ids_l2c" / "model.bin").read_bytes()

    def test_the_model_is_the_run(self):
        """By a decoder that turns neighbouring pairs, as run.c does: 64 losses, and 64 tokens."""
        self.assertEqual(plain_llama.llama2c_sizes(self.content), (16, 24, 2, 4, 2, -VOCABULARY, CONTEXT))
        model, loss = plain_llama.read_llama2c(self.content), self.loss(self.given / "ids")
        self.assertAlmostEqual(plain_llama.mean_loss(model, IDS[:CONTEXT + 1]), loss, delta=NEAR)
        model["config"]["pairs"] = plain_llama.HALVES
        self.assertGreater(abs(plain_llama.mean_loss(model, IDS[:CONTEXT + 1]) - loss), 10 * NEAR)
        content = (self.given / "text_l2c" / "model.bin").read_bytes()
        self.assertEqual(plain_llama.llama2c_sizes(content)[5], 300)
        self.assertEqual(plain_llama.greedy(plain_llama.read_llama2c(content), 1, CONTEXT, (1, 2)),
                         self.greedy(self.given / "text")["token_ids"])
        self.assert_speaks_as_it_is(self.given / "text_l2c")
        message = self.refused("generate", self.given / "text_l2c", "--checkpoint", "best")
        self.assertIn("--checkpoint: is for runs", message)
        message = self.refused("generate", self.given / "ids_l2c")
        self.assertIn("has no tokenizer for text", message)

    def test_the_sizes_are_those_of_the_format(self):
        """An int32 at byte 20 is negative where the head is a matrix of its own (llama.cpp's pull request 2685)."""
        d, hidden, kv, layers = 16, 24, 8, 2
        values = VOCABULARY * d + layers * (2 * d + 2 * d * d + 2 * kv * d + 3 * d * hidden) + d + CONTEXT * d // 4
        tied = (self.given / "tied_l2c" / "model.bin").read_bytes()
        self.assertEqual(len(tied), 28 + 4 * values)
        self.assertEqual(tied[20:24], struct.pack("<i", VOCABULARY))
        self.assertEqual(len(self.content), 28 + 4 * (values + VOCABULARY * d))
        self.assertEqual(self.content[20:24], struct.pack("<i", -VOCABULARY))
        angles = struct.unpack(f"<{CONTEXT * 4}f", tied[-CONTEXT * 16:])  # cosines, then sines, 2 pairs each
        self.assertAlmostEqual(angles[2 * 3 + 1], 0.9995500, places=6)  # position 3 turns pair 1 by 0.03
        self.assertAlmostEqual(angles[2 * (CONTEXT + 3) + 1], 0.0299955, places=6)

    def test_the_tokenizer_gives_the_text(self):
        content = (self.given / "text_l2c" / "tokenizer.bin").read_bytes()
        longest, pieces = plain_llama.read_llama2c_tokenizer(content, 300)
        self.assertEqual(longest, max(len(name) for _, name in pieces))
        self.assertEqual([name for _, name in pieces[:3]], [b"<unk>", b"\n<s>\n", b"\n</s>\n"])
        self.assertEqual([name for _, name in pieces[3:259]], [f"<0x{byte:02X}>".encode() for byte in range(256)])
        self.assertTrue(any(name.startswith(b" ") for _, name in pieces[259:]), "blanks are blanks")
        written = self.greedy(self.given / "text")
        text = b"".join(bytes([token - 3]) if token < 259 else pieces[token][1] for token in written["token_ids"])
        self.assertEqual(text.decode(), written["text"])

    def test_the_way_back(self):
        printed = self.run_program("import", self.given / "text_l2c", "--out", "back").stdout
        self.assertIn("llama2.c, version 0 (float32)", printed)
        self.assertIn("minillm generate back", printed)
        self.assert_same_weights(self.given / "text", self.folder / "back")
        for words in (("--temperature", 0), ("--prompt", "It was for\n 日 on ", "--seed", 1)):
            found = [self.json_of("generate", run, *words) for run in (self.given / "text", "back")]
            for key in ("text", "token_ids", "prompt_token_ids"):
                self.assertEqual(found[0][key], found[1][key])
        printed = self.run_program("import", self.given / "ids_l2c" / "model.bin", "--out", "ids").stdout
        self.assertIn("no tokenizer inside", printed)
        self.assert_same_weights(self.given / "ids", self.folder / "ids")

    def test_newer_versions_are_read(self):
        losses = []
        for name in ("ids", "tied"):
            content = (self.given / f"{name}_l2c" / "model.bin").read_bytes()
            for version in (1, 2):
                newer, model = newer_version(content, version)
                self.write(f"{name}{version}.bin", newer)
                self.run_program("import", f"{name}{version}.bin", "--out", f"{name}{version}")
                losses.append(self.loss(f"{name}{version}"))
                self.assertAlmostEqual(losses[-1], plain_llama.mean_loss(model, IDS[:CONTEXT + 1]), delta=NEAR)
        self.assertEqual(losses[0], self.loss(self.given / "ids"))
        self.assertGreater(abs(losses[0] - losses[1]), 10 * NEAR, "version 2 rounds")
        self.assertLess(abs(losses[0] - losses[1]), 0.05)

    def test_another_eps_is_told(self):
        self.train_given("eps", "ids.h5", "train.steps=2", "model.norm_eps=0.01")
        message = self.refused("export", self.given / "eps", "--format", "llama2c", "--out", "x")
        self.assertRegex(message, r"cannot be written as llama2c; found model\.norm_eps = 0\.01, not 1e-05; --allow-")
        printed = self.export("eps", "llama2c", "x", "--allow-eps")
        self.assertRegex(printed, r"differ by 0 at most\n")
        self.assertRegex(printed, r"norm_eps = 1e-05, the run's is 0\.01: logits differ by 0\.\d+ at most")

    def test_what_cannot_be_written(self):
        for settings, pattern in (
                (["model.rope_theta=500000"], r"model\.rope_theta = 500000, not 10000"),
                (["model.norm=layernorm", "model.bias=true"],
                 r"model\.bias = true, not false; model\.norm = layernorm, not rmsnorm"),
                (["model.ffn=gelu", "model.qk_norm=true"],
                 r"model\.ffn = gelu, not swiglu; model\.qk_norm = true, not false"),
                (["model.norm_position=post"], r"norm_position = post, not pre; model\.final_norm = false, not true"),
                (["model.position=learned"], r"model\.position = learned, not rope"),
                (["model.head_dim=8"], r"model\.head_dim = 8, not 4"),
                (["model.attention_gate=headwise", "model.rope_fraction=0.5"],
                 r"rope_fraction = 0\.5, not 1; model\.attention_gate = headwise, not none"),
                (["model.residual=mhc"], r"model\.residual = mhc, not plain")):
            with self.subTest(settings):
                self.new_folder()
                self.run_program("train", self.given / "base.toml", "--out", "run",
                                 f"data.path={self.given / 'ids.h5'}", *export_case.SETTINGS, *settings,
                                 "train.steps=1")
                before = self.tree(self.folder)
                message = self.refused("export", "run", "--format", "llama2c", "--out", "x", "--allow-eps")
                self.assertRegex(message, pattern)
                self.assertEqual(self.tree(self.folder), before)

    def test_places_and_words(self):
        run = self.given / "ids"
        for words, pattern in (
                (["--format", "lama2c", "--out", "x"], r"--format: unknown format lama2c; .*did you mean llama2c\?"),
                (["--format", "llama2c"], r"--out is missing"),
                (["--format", "llama2c", "--out", "no/x"], r"no/x: the folder cannot be made: No such file"),
                (["--format", "llama2c", "--out", "full"], r"full: stands there already"),
                (["--format", "llama2c", "--out", "x", "--checkpoint", "7"], r"step_0*25|7")):
            with self.subTest(words):
                self.new_folder()
                self.write("full/thesis.txt", "mine")
                before = self.tree(self.folder)
                self.assertRegex(self.refused("export", run, *words), pattern)
                self.assertEqual(self.tree(self.folder), before)
        message = self.refused("export", run, "--format", "llama2c", "--out", "y", status=1,
                               **support.limit_file_size(9000))
        self.assertRegex(message, r"cannot be written: File too large")
        self.assertFalse(list(self.folder.glob("y*")), "nothing stays of what failed")
        (self.folder / "empty").mkdir()
        self.export("ids", "llama2c", "empty/")
        self.assertEqual(sorted(path.name for path in (self.folder / "empty").iterdir()), ["model.bin"])

    def test_models_that_are_refused(self):
        whole, values = self.content, self.content[28:]
        newer = newer_version(whole, 2)[0]

        def header(**changes):
            names = ("dim", "hidden", "layers", "heads", "kv_heads", "vocab", "seq_len")
            numbers = dict(zip(names, plain_llama.llama2c_sizes(whole)))
            numbers.update(changes)
            return struct.pack("<7i", *numbers.values())

        def imported(content, *patterns):
            return Row("import m.bin --out run", patterns, files={"m.bin": content})
        self.check_all([
            imported(whole[:-1], rf"m\.bin: the file is shorter .*found {len(whole) - 1} bytes; expected {len(whole)} "
                     r"bytes for 2 layers of width 16"),
            imported(whole + b"0", r"longer than its header says"),
            imported(header(dim=65536, hidden=65536, layers=65536) + bytes(1000),  # K13
                     r"found 1028 bytes; expected \d{16} bytes for 65536 layers"),
            imported(header(dim=2**26, hidden=2**26, layers=2**26) + bytes(1000), r"expected more than any file has"),
            imported(header(vocab=VOCABULARY) + values, r"longer than its header says"),
            imported(header(heads=5) + values, r"is not a model that can be imported"),
            imported(header(heads=16, kv_heads=4) + values, r"a head has an odd width; found 1"),
            imported(header(layers=-1) + values, r"is not a model that can be imported; found unknown binary data; "
                     r"expected .* or a model of llama2\.c"),
            imported(whole[:28] + b"\0\0\xc0\x7f" + whole[32:],
                     r"model\.embed_tokens\.weight is not finite; .*found nan at element 0"),
            imported(newer[:200], r"ends inside the header of llama2\.c's models; found 200 bytes"),
            imported(newer[:4] + struct.pack("<i", 3) + newer[8:], r"found version 3; expected 0 .*, 1 .* or 2"),
            imported(newer[:37] + struct.pack("<i", 0) + newer[41:], r"the size of groups; found 0"),
            imported(newer[:37] + struct.pack("<i", 7) + newer[41:], r"groups do not divide the 592 values of "
                     r"model\.embed_tokens\.weight; found 7"),
            imported(newer[:28] + struct.pack("<i", -5) + newer[32:], r"vocab_size; found -5"),
            imported(newer[:-1], r"shorter than its header says"),
            Row("import . --out run", (r"\.: is a folder without a model that can be imported; expected a file .*"
                                       r"model\.bin \(llama2\.c\)",)),
        ])

    def test_tokenizers_that_are_refused(self):
        model = (self.given / "text_l2c" / "model.bin").read_bytes()
        whole = (self.given / "text_l2c" / "tokenizer.bin").read_bytes()

        def imported(content, *patterns):
            return Row("import m --out run", patterns, files={"m/model.bin": model, "m/tokenizer.bin": content})
        self.check_all([
            imported(whole[:-1], r"tokenizer\.bin: the file ends before the last piece; found 299 whole pieces; "
                     r"expected 300"),
            imported(whole + b"0", r"the file goes on behind the last piece; found 1 bytes more"),
            imported(b"", r"found 0 whole pieces"),
            imported(whole[:8] + struct.pack("<i", -1) + whole[12:], r"piece 0 cannot be right; found a length of -1"),
            imported(whole[:8] + struct.pack("<i", 2**31 - 1) + whole[12:], r"found a length of 2147483647"),
            imported(whole[:4] + struct.pack("<f", float("nan")) + whole[8:], r"a score of nan"),
        ])


if __name__ == "__main__":
    support.main()
