"""minillm experiment and report: verdicts, pages, errors."""
import json
import re
import signal
import time

import support

HEAD = """
base = "run.toml"
seeds = [1, 2]
steps = 60
set = ["train.eval_every=20", "train.checkpoint_every=7", "train.keep_checkpoints=1"]

[[run]]
name = "baseline"
"""

SUITE = HEAD + """seeds = [1, 2, 3, 4, 5]

[[run]]
name = "layernorm"
set = ["model.norm=layernorm"]

[[run]]
name = "gelu"
set = ["model.ffn=gelu"]
match = "baseline"

[[run]]
name = "wide"
set = ["model.d_ff=64"]

[[run]]
name = "blown"
set = ["optim.lr=1e30", "optim.grad_clip=0.0", "optim.warmup_steps=0"]
seeds = [1]
"""


class Experiment(support.Case):
    def suite(self, text=SUITE, **settings):
        self.config("run", **settings)
        (self.folder / "small.toml").write_text(text, encoding="utf-8")
        return "small.toml"

    def report(self, *words):
        return json.loads(self.run_program("report", *words, "--json").stdout)

    @staticmethod
    def results(report):
        """What a table shows, without what differs from time to time."""
        times = ("tokens_per_s", "speed_measurements")
        return [{key: value for key, value in variant.items() if key not in times} for variant in report["variants"]]

    def test_a_suite_from_start_to_report(self):
        done = self.run_program("experiment", self.suite())
        out = self.path("runs", "small")
        self.assertEqual(sorted(path.name for path in out.iterdir() if path.is_dir()),
                         sorted([f"baseline-seed{n}" for n in range(1, 6)] + ["layernorm-seed1", "layernorm-seed2",
                                "gelu-seed1", "gelu-seed2", "wide-seed1", "wide-seed2", "blown-seed1"]))
        self.assertRegex(done.stderr, r"run 1 of 12, baseline-seed1; - left")
        self.assertRegex(done.stderr, r"run 12 of 12, baseline-seed5; [\d:]+ left")
        report = self.report("runs/small")
        variants = {variant["name"]: variant for variant in report["variants"]}
        self.assertEqual(list(variants), ["baseline", "layernorm", "gelu", "wide", "blown"])
        self.assertEqual(report["noise"]["of"], "baseline")
        self.assertEqual(report["noise"]["runs"], 5)
        losses = [json.loads((out / f"baseline-seed{n}" / "summary.json").read_text())["final_val_loss"]
                  for n in range(1, 6)]
        mean = sum(losses) / 5
        sigma = (sum((loss - mean) ** 2 for loss in losses) / 4) ** 0.5
        self.assertAlmostEqual(variants["baseline"]["val_loss"], mean, places=12)
        self.assertAlmostEqual(report["noise"]["sigma"], sigma, places=12)
        self.assertEqual(variants["baseline"]["verdict"], "reference")
        self.assertEqual(variants["wide"]["verdict"], "refused")
        self.assertLess(abs(variants["gelu"]["parameter_difference_percent"]), 1)
        self.assertEqual(variants["gelu"]["changes"][0]["key"], "model.d_ff")
        blown = variants["blown"]
        self.assertEqual((blown["diverged"], blown["ended"], blown["verdict"]), (1, 1, "worse"))
        self.assertEqual(json.loads((out / "blown-seed1" / "summary.json").read_text())["end"], "failed")
        for variant in report["variants"]:
            self.assertEqual(variant["speed_measurements"], 3, variant["name"])
        layers = json.loads((out / "gelu-seed2" / "layers.json").read_text())["layers"]
        self.assertEqual([layer["layer"] for layer in layers], [0, 1])
        self.assertIn("| gelu | 2 |", (out / "report.md").read_text())
        page = (out / "report.html").read_text()
        self.assertEqual(re.findall(r"\{\{[\w.]+\}\}", page), [])
        self.assertEqual(json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page, re.S)[1])["title"], "small")
        again = self.run_program("experiment", "small.toml")
        self.assertNotIn("==> run", again.stderr)
        self.assertEqual(self.results(self.report("runs/small")), self.results(report))

    def test_every_suite_of_the_tree_can_be_planned(self):
        (self.folder / "corpora").mkdir()
        for suite in sorted(support.ROOT.glob("experiments/*/suite.toml")):
            for words in ((), ("--quick",)):
                plan = self.run_program("experiment", suite, "--plan", *words).stdout
                self.assertRegex(plan, r"\n\d+ runs, [\d.]+ PFLOP\n$", suite)
                self.assertIn(" to run\n", plan, suite)
            self.assertIn(f"| [{suite.parent.name}]({suite.parent.name}/README.md) |",
                          (support.ROOT / "experiments" / "README.md").read_text())
        self.assertFalse(self.path("runs").exists())

    def test_only_and_quick(self):
        self.run_program("experiment", self.suite(), "--only", "layernorm", "--quick")
        runs = sorted(path.name for path in self.path("runs", "small-quick").iterdir() if path.is_dir())
        self.assertEqual(runs, ["layernorm-seed1", "layernorm-seed2"])
        self.assertEqual(len(self.losses("runs/small-quick/layernorm-seed1")), 15)
        self.assertIn("--only: no run of the suite has this name; found layrnorm; did you mean layernorm?",
                      self.refused("experiment", "small.toml", "--only", "layrnorm"))

    def test_bad_suites(self):
        self.suite()
        self.run_program("experiment", "small.toml", "--only", "gelu", "--quick", "--out", "there")
        self.assertRegex(self.refused("experiment", "small.toml", "--quick", "--out", "there", "optim.lr=0.5"),
                         r"there/gelu-seed1: holds a run of other settings: optim\.lr; found 0\.01; expected 0\.5; "
                         r"another --out")
        self.assertEqual(self.results(self.report("there"))[0]["ended"], 2)
        cases = [
            (SUITE.replace("model.ffn=gelu", "model.ffn=gelo"), r"run gelu: command line: model\.ffn: unknown word"),
            (SUITE.replace("match = \"baseline\"", "match = \"wider\""), r"small\.toml:15: no run has this name"),
            (SUITE.replace('"run.toml"', '"nowhere.toml"'), r"nowhere\.toml: cannot read the config"),
        ]
        for text, message in cases:
            (self.folder / "small.toml").write_text(text, encoding="utf-8")
            self.assertRegex(self.refused("experiment", "small.toml", "--out", "new"), message)
            self.assertFalse(self.path("new").exists())
        self.assertIn("no such folder", self.refused("report", "nowhere"))
        self.path("empty").mkdir()
        self.assertIn("holds no run", self.refused("report", "empty"))
        self.assertIn("a name ending in .html", self.refused("report", "there", "--out", "report.txt"))
        self.assertIn("no group of runs has this name", self.refused("report", "there", "--reference", "x"))

    def test_report_of_any_runs(self):
        self.train("one", train__seed=1, train__steps=60)
        self.train("two", train__seed=2, train__steps=60)
        self.train("other", model__norm="layernorm", train__steps=60)
        self.path("broken").mkdir()
        (self.path("broken") / "config.toml").write_bytes(self.path("one", "config.toml").read_bytes())
        (self.path("broken") / "metrics.jsonl").write_text('{"step":0,"loss":4.1,"grad_norm":1,"lr":0.1,"tokens":64,'
                                                           '"tokens_per_s":9}\n{"step":1,"lo')
        report = self.report("one", "two", "other", "broken", "--reference", "one")
        self.assertEqual([variant["name"] for variant in report["variants"]], ["one", "other"])
        self.assertEqual([run["state"] for run in report["runs"]], ["finished", "finished", "finished", "unfinished"])
        self.assertEqual(report["runs"][3]["loss"], [4.1])
        self.assertEqual(report["noise"]["runs"], 2)
        self.assertIn("E17", {lint["id"] for lint in report["lints"]})

    def test_watch(self):
        run = self.train("run")
        done = self.run_program("report", run, "--watch", "--out", "page.html")
        self.assertIn('"watch_seconds":0', self.path("page.html").read_text())  # nothing goes on any more
        self.assertEqual(done.stdout, "")
        self.path("run", "summary.json").unlink()
        process = self.start_program("report", run, "--watch", "--out", "going.html")
        deadline = time.monotonic() + 20
        while not self.path("going.html").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assertIn('"watch_seconds":5', self.path("going.html").read_text())


if __name__ == "__main__":
    support.main()
