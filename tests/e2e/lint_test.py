"""minillm lint: configs and runs, what train says of them, and the page that lists every lint."""
import json
import re

import support


class Lint(support.Case):
    def lints(self, *words, status=0):
        found = json.loads(self.run_program("lint", *words, "--json", status=status).stdout)["lints"]
        return {lint["id"]: lint for lint in found}

    def test_config(self):
        config = self.config(model__norm_position="post", optim__lr=0.004)
        lints = self.lints(config)
        self.assertEqual(set(lints), {"E06", "E12"})
        self.assertEqual(lints["E06"]["severity"], "warning")
        self.assertEqual(lints["E06"]["path"], config)
        self.assertIn("0.004", lints["E06"]["message"])
        text = self.run_program("lint", config).stdout
        self.assertIn(f"{config}: warning E06, post-norm without warm-up or at a high rate: optim.lr is 0.004", text)
        self.assertEqual(self.lints(config, "run.silence=E06 E12"), {})
        self.assertIn("nothing found", self.run_program("lint", config, "run.silence=E06 E12").stdout)
        checked = json.loads(self.run_program("check", config, "--json", "model.vocab_size=30").stdout)["lints"]
        self.assertEqual([lint["id"] for lint in checked], ["E06", "E12"])

    def test_train_tells_them_at_the_start_and_the_end(self):
        config = self.config(model__residual="none", optim__lr=0.5, optim__grad_clip=0, train__steps=40,
                             train__eval_every=10)
        said = self.run_program("train", config, "--out", "run").stderr
        start, _, end = said.partition("all steps done")
        self.assertIn("warning: E01", start)
        summary = json.loads(self.path("run", "summary.json").read_text())
        self.assertEqual("error E09" in end, summary["diverged"])
        self.assertEqual("warning: E07" in end, summary["stalled"])
        quiet = self.run_program("train", config, "--out", "quiet", "run.silence=E01, E12").stderr
        self.assertNotIn("E01", quiet)

    def test_run(self):
        run = self.train("good")
        self.assertIn("E15", self.lints(run))
        self.assertLessEqual(set(self.lints(run)), {"E07", "E12", "E15", "E21", "E23"})
        bad = self.train("bad", model__norm_position="post", optim__lr=0.004, model__bias=True, model__ffn="relu")
        self.assertIn("E06", self.lints(bad))
        self.assertEqual({lint["path"] for lint in self.lints(run, bad).values()}, {run, bad})

    def test_what_was_looked_at(self):
        run = self.train("mixture", model__ffn="moe", model__moe_experts=4, model__d_ff=16)
        layers = json.loads(self.run_program("lint", run, "--json").stdout)["layers"]
        self.assertEqual([layer["layer"] for layer in layers], list(range(len(layers))))
        for layer in layers:
            self.assertEqual(layer["path"], run)
            self.assertAlmostEqual(sum(layer["expert_shares"]), 1)
            for key in ("stream_rms", "mean_share", "token_cosine", "first_token_share", "largest_score", "ffn_largest",
                        "ffn_dead", "norm_gain", "norm_output", "ffn_gate_mean", "ffn_gate_below_0",
                        "ffn_gate_above_1"):
                self.assertIsInstance(layer[key], (int, float), key)
            self.assertIsNone(layer["mixer_gate_mean"])
        text = self.run_program("lint", run).stdout
        self.assertRegex(text, r"layer +stream RMS")
        self.assertRegex(text, r"layer +gate of +mean +below 0 +above 1\n.*\n? *0 +FFN ")
        self.assertEqual(json.loads(self.run_program("lint", self.config(), "--json").stdout)["layers"], [])

    def test_a_silence_may_change_at_resume(self):
        run = self.train("run", model__residual="none", train__steps=6)
        said = self.run_program("train", "--resume", run, "train.steps=8", "run.silence=E01, E12").stderr
        self.assertIn("changed at resume: run.silence", said)
        self.assertEqual(len(self.losses(run)), 8)

    def test_a_diverged_run_is_an_error(self):
        run = self.train("run", train__steps=20)
        metrics = self.path(run, "metrics.jsonl")
        lines = metrics.read_text().splitlines()
        lines[5] = re.sub(r'"loss":[^,]*', '"loss":50', lines[5])
        metrics.write_text("\n".join(lines) + "\n")
        self.assertEqual(self.lints(run, status=1)["E09"]["severity"], "error")

    def test_a_run_without_its_data_is_looked_at_as_far_as_possible(self):
        run = self.train("run", model__residual="none")
        config = self.path(run, "config.toml")
        lines = self.path(run, "metrics.jsonl").read_text().splitlines()
        lines[5] = re.sub(r'"loss":[^,]*', '"loss":50', lines[5])
        self.path(run, "metrics.jsonl").write_text("\n".join(lines) + "\n")
        for checkpoint in self.path(run, "checkpoints").iterdir():
            checkpoint.unlink()
        done = self.run_program("lint", run, status=1)
        self.assertIn("E01", done.stdout)
        self.assertIn("error E09", done.stdout)
        self.assertIn("the weights of run are not looked at", done.stderr)
        self.assertTrue(config.exists())

    def test_wrong_input(self):
        config = self.config()
        self.assertIn("a config or a run is missing", self.refused("lint"))
        self.assertIn("E99, which no lint has", self.refused("lint", config, "run.silence=E99"))
        self.assertIn("E09, which is an error", self.refused("lint", config, "run.silence=E09"))
        self.refused("lint", "no-such-file.toml")
        (self.folder / "empty").mkdir()
        self.refused("lint", "empty")
        self.refused("lint", "--list", "--json")
        self.assertIn("a run keeps its settings", self.refused("lint", self.train("run"), "model.d_ff=3"))

    def test_the_page_lists_every_lint(self):
        page = (support.ROOT / "docs" / "lints.md").read_text()
        told = re.findall(r"^\| (E\d\d) \| (\w+) \| ([^|]*) \|", page, re.M)
        listed = re.findall(r"^(E\d\d)\s+(\w+)\s+(.*?)\s{2,}\S.*$", self.run_program("lint", "--list").stdout, re.M)
        self.assertGreater(len(listed), 25)
        self.assertEqual(told, listed)


if __name__ == "__main__":
    support.main()
