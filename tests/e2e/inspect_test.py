"""minillm inspect: the numbers of a text layer by layer, as a table, as JSON and as a page that needs nothing else."""
import itertools
import math
import re

import support

TEXT = "Two cats see the ball"
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
OF_A_LAYER = {"layer", "stream_mean", "stream_std", "stream_rms", "norm_output", "token_cosine", "first_token_share",
              "ffn_dead", "ffn_gate_mean", "mixer_gate_mean", "stream_gradient", "parameter_gradient", "heads",
              "mixer_write_rms", "ffn_write_rms", "mixer_write_logit", "ffn_write_logit"}


def rows_of(maps, layer, head):
    """The rows of a head's map, each query's weights."""
    size, digits = maps["tokens"], maps["layers"][layer]
    lengths = [query + 1 if maps["causal"] else size for query in range(size)]
    values = [64 * DIGITS.index(high) + DIGITS.index(low) for high, low in zip(digits[::2], digits[1::2])]
    weights = iter([value / 4095 for value in values[head * sum(lengths):]])
    return [list(itertools.islice(weights, length)) for length in lengths]


class Inspect(support.Case):
    def inspect(self, *words, run="run", text=TEXT):
        return self.json_of("inspect", run, "--text", text, *words)

    def test_json(self):
        self.train("run", train__steps=60, optim__lr=0.02)
        found = self.inspect()
        self.assertEqual(found["model"], "run")
        self.assertEqual(found["checkpoint"], "run/checkpoints/step_000060.h5")
        self.assertEqual(found["token_ids"],
                         self.json_of("generate", "run", "--prompt", TEXT, "--max-tokens", 0)["prompt_token_ids"])
        self.assertEqual(found["tokens"], ["<s>", "Two", "▁cats", "▁see", "▁the", "▁ball"])
        self.assertTrue(0 < found["loss"] < math.log(64), found["loss"])
        self.assertIsNone(found["no_loss"])
        self.assertEqual([layer["layer"] for layer in found["layers"]], [0, 1])
        for layer in found["layers"]:
            self.assertLessEqual(OF_A_LAYER, set(layer))
            self.assertEqual(len(layer["heads"]), 2)
            self.assertIsNone(layer["mixer_gate_mean"], "this attention has no gate")
            for key in OF_A_LAYER - {"heads", "mixer_gate_mean"}:
                self.assertTrue(math.isfinite(layer[key]), key)
            for head in layer["heads"]:
                self.assertTrue(0 <= head["entropy"] <= found["largest_entropy"] + 1e-6, head)
            share = sum(head["first_token_share"] for head in layer["heads"]) / 2
            self.assertAlmostEqual(layer["first_token_share"], share, 6)
        self.assertAlmostEqual(found["largest_entropy"], math.log(math.factorial(6)) / 6)
        self.assertLess(found["residual_sum"]["relative"], 1e-5)
        writes = [layer[key] for layer in found["layers"] for key in ("mixer_write_logit", "ffn_write_logit")]
        self.assertAlmostEqual(found["embedding"]["write_logit"] + sum(writes), found["next_token_logit"], 5)
        squares = sum(layer["parameter_gradient"] ** 2 for layer in found["layers"])
        self.assertLess(squares, found["gradient_norm"] ** 2)
        self.assertNotEqual(self.inspect("--checkpoint", "best")["loss"], None)
        self.assertEqual(self.inspect(), found, "the same bits again")

    def test_table(self):
        self.train("run", model__attention_gate="headwise")
        text = self.run_program("inspect", "run", "--text", TEXT).stdout
        self.assertRegex(text, r"^run/checkpoints/step_000012\.h5: 6 tokens, loss \d\.\d{4} nats a token, gradient ")
        for columns in (("layer", "mean", "std", "RMS", "norms' RMS", "token cosine", "entropy", "to first token",
                         "dead units"),
                        ("layer", "d stream", "d parameters", "mixer writes", "FFN writes", "mixer, logit",
                         "FFN, logit")):
            self.assertRegex(text, "\n" + "  +".join(columns) + "\n")
        self.assertRegex(text, r"embedding \+ all writes differs from the last stream by at most \S+e-0[6-9], \S+e-0")
        self.assertRegex(text, r"entropy of attention in nats, 1\.097 where it is even\nlayer +head 0 +head 1\n")
        self.assertRegex(text, r"share of attention that the first token gets\nlayer +head 0 +head 1\n")
        self.assertRegex(text, r"layer +gate of +mean +below 0 +above 1\n.*\n? *0 +mixer ")

    def test_what_is_not_there_is_told(self):
        self.train("post", model__norm_position="post", train__steps=2)
        text = self.run_program("inspect", "post", "--text", TEXT).stdout
        self.assertIn('sum of writes: -, the last stream is none: model.norm_position = "post": a norm stands', text)
        self.train("linear", model__attention="gdn", model__residual="mhc", train__steps=2)
        found = self.inspect(run="linear")
        self.assertEqual([layer["heads"] for layer in found["layers"]], [[], []])
        self.assertIn('model.residual = "mhc"', found["residual_sum"]["reason"])
        self.assertIsNone(found["residual_sum"]["difference"])
        self.assertGreater(found["layers"][0]["stream_gradient"], 0)
        self.train("encoder", model__causal=False, data__objective="masked", train__steps=2)
        found = self.inspect("--html", "encoder.html", run="encoder")
        self.assertIn("model.causal = false", found["no_loss"])
        self.assertIsNone(found["loss"])
        self.assertEqual(len(found["layers"][0]["heads"]), 2)
        for row in rows_of(support.data_of(self.path("encoder.html").read_text(encoding="utf-8"))["maps"], 1, 1):
            self.assertAlmostEqual(sum(row), 1, 2)

    def test_page(self):
        self.train("run", train__steps=60, optim__lr=0.02)
        done = self.run_program("inspect", "run", "--text", TEXT, "--html", "pages/inspect.html")
        self.assertIn("sum of writes", done.stdout)
        self.assertIn("wrote pages/inspect.html", done.stderr)
        page = self.path("pages", "inspect.html").read_text(encoding="utf-8")
        for never in (r"(?i)\b(src|href|action)\s*=\s*[\"']?\s*(https?:)?//", r"(?i)@import", r"\{\{[\w.]+\}\}",
                      r"(?i)url\(\s*[\"']?(https?:)?//", r"\bfetch\(|XMLHttpRequest|WebSocket"):
            self.assertNotRegex(page, never)
        data = support.data_of(page)
        maps = data.pop("maps")
        self.assertEqual(data, self.inspect())
        self.assertEqual((maps["tokens"], maps["causal"]), (6, True))
        for layer, head in itertools.product(range(2), repeat=2):
            rows = rows_of(maps, layer, head)
            entropy = 0
            for row in rows:
                self.assertAlmostEqual(sum(row), 1, 2)
                entropy -= sum(p * math.log(p) for p in row if p > 0) / len(rows)
            said = data["layers"][layer]["heads"][head]
            self.assertAlmostEqual(entropy, said["entropy"], 2)
            self.assertAlmostEqual(sum(row[0] for row in rows[1:]) / 5, said["first_token_share"], 3)
        before = page
        self.run_program("inspect", "run", "--text", "The dog", "--html", "pages/inspect.html")
        self.assertNotEqual(self.path("pages", "inspect.html").read_text(encoding="utf-8"), before, "replaces its own")

    def test_odd_texts(self):
        self.train("run", train__steps=2)
        empty = self.inspect(text="")
        self.assertEqual(empty["tokens"], ["<s>"])
        self.assertIn("single token", empty["no_loss"])
        self.assertIsNone(empty["layers"][0]["stream_gradient"])
        self.assertEqual(empty["layers"][0]["heads"][0], {"entropy": 0, "first_token_share": None})
        self.run_program("inspect", "run", "--text", "", "--html", "empty.html")
        text = "</script><script>alert(1)</script>\u2028 \x1b[2J 😀 \udcff\udcfe & Two cats"
        found = self.inspect("--html", "odd.html", text=text)
        page = self.path("odd.html").read_text(encoding="utf-8")
        self.assertNotIn("<script>alert", page)
        self.assertEqual(support.data_of(page)["tokens"], found["tokens"])
        self.assertNotRegex("".join(found["tokens"]), r"[\x00-\x1f\x7f]")

    def test_bytes_of_a_trained_tokenizer(self):
        lines = "Two cats see the ball and the big red dog.\n" * 400
        (self.folder / "text.txt").write_text("naïve 雪 😀\n" * 40 + lines, encoding="utf-8")
        self.run_program("prepare", "text.txt", "--vocab", 310, "--out", "text.h5")
        self.train("run", data__path="text.h5", train__steps=2, data__seq_len=32, train__eval_every=0)
        tokens = self.inspect(text="Two\t\udcff 雪\n☃")["tokens"]
        self.assertEqual(tokens[0], "<s>")
        joined = "".join(tokens[1:])
        self.assertEqual(joined, "Two<0x09><0xFF>▁雪<0x0A><0xE2><0x98><0x83>")

    def test_wrong_input(self):
        self.train("run", train__steps=2)
        refused = self.refused
        self.assertIn("--text", refused("inspect", "run"))
        self.refused("inspect", "--text", "Two")
        self.refused("inspect", "no-such-run", "--text", "Two")
        self.assertIn("--checkpoint", refused("inspect", "run", "--text", "Two", "--checkpoint", "newest"))
        for more in ([], ["--json"], ["--html", "long.html"]):
            message = refused("inspect", "run", "--text", "Two cats" + " see the ball" * 6, *more)
            self.assertRegex(message, r"--text: does not fit the model's context; found 21 tokens, <s> among them; "
                                      r"expected 1 to 16 \(model\.max_seq_len\); a shorter text")
        (self.folder / "mine.html").write_text("<p>my own page</p>")
        (self.folder / "folder.html").mkdir()
        for name, pattern in (("page.htm", r"--html: .*page\.htm.*ending in \.html"),
                              ("mine.html", r"mine\.html: .*no inspection wrote it"), ("folder.html", "a folder")):
            self.assertRegex(refused("inspect", "run", "--text", "Two", "--html", name), pattern)
        self.assertEqual((self.folder / "mine.html").read_text(), "<p>my own page</p>")
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.htm*")), ["folder.html", "mine.html"])

    def test_a_disk_that_fills(self):
        self.train("run", train__steps=2)
        message = self.refused("inspect", "run", "--text", TEXT, "--html", "page.html", status=1,
                               **support.limit_file_size(5000))
        self.assertIn("page.html", message)
        self.assertEqual(list(self.folder.glob("page.html*")), [])

    def test_a_text_that_no_memory_holds(self):
        self.train("run", train__steps=2, model__max_seq_len=200000, data__seq_len=16)
        message = self.refused("inspect", "run", "--text", "the " * 30000)
        self.assertRegex(message, r"--text: every value of a pass over 3\d{4} tokens does not fit this machine's "
                                  r"memory; found [\d.]+ [GT]B; expected at most .*; a shorter text needs less")


if __name__ == "__main__":
    support.main()
