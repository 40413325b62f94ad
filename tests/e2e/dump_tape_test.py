"""minillm train --dump-tape: the tape of the first step as a table, a graph and a page; and training goes on as if
nobody had looked."""
import re
import shutil
import subprocess

import support


class DumpTape(support.Case):
    def dump(self, name, *words, **settings):
        config = self.config("run", **settings)
        done = self.run_program("train", config, "--out", "run", "--force", "--dump-tape", name, *words)
        self.assertIn(f"the tape of step 0 is in {name}: ", done.stderr)
        return self.path(name).read_text(encoding="utf-8")

    def test_table(self):
        text = self.dump("looks/step.txt")
        head, columns, *rows = text.splitlines()
        self.assertRegex(head, r"^Tape of step 0 of run, 4 x 16 tokens, \d+ nodes: forward \S+ ms, backward \S+ ms, ")
        self.assertTrue(columns.startswith("   id "))
        self.assertEqual([int(row[:5]) for row in rows], list(range(len(rows))))
        self.assertRegex(text, r"\n +\d+  ●─┘ .* add +model\.layers\.0\.mlp_residual ")
        self.assertRegex(text, r"\n +\d+  ├─● .* rmsnorm +model\.layers\.0\.input_layernorm .* #\d+ #\d+ +"
                               r"nn/\w+\.cpp:\d+\n")

    def test_nothing_that_trains_changes(self):
        for norm in ("rmsnorm", "batchnorm"):  # the latter keeps statistics of the passes that it sees
            settings = {"model.norm": norm, "model.dropout": 0.1, "train.micro_batch_size": 2}
            self.train(f"plain_{norm}", **settings)
            config = self.config("looked", **settings)
            self.run_program("train", config, "--out", f"looked_{norm}", "--dump-tape", f"{norm}.txt")
            self.assert_same_run(f"looked_{norm}", f"plain_{norm}")
        self.run_program("train", "--resume", "looked_rmsnorm", "train.steps=14", "--dump-tape", "behind.txt")
        self.assertTrue(self.path("behind.txt").read_text().startswith("Tape of step 12 of "))

    def test_graph(self):
        text = self.dump("step.dot")
        self.assertIn('subgraph "cluster_model.layers.1.mlp"', text)
        if shutil.which("dot"):
            done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(re.findall("^node ", done.stdout, re.M)), text.count("fillcolor"))

    def test_page(self):
        page = self.dump("step.html", run__name="<b>&")
        self.assertIn("<title>Tape of step 0 of &lt;b&gt;&amp;</title>", page)
        self.assertNotRegex(page, r"https?://(?!www\.w3\.org)")
        nodes = support.data_of(page)["nodes"]
        by_scope = {node["scope"]: node for node in nodes if node["operands"]}
        self.assertEqual(by_scope["model.layers.0.input_layernorm"]["lane"], 1)
        post = support.data_of(self.dump("step.html", model__norm_position="post"))["nodes"]
        by_scope = {node["scope"]: node for node in post if node["operands"]}
        self.assertEqual(by_scope["model.layers.0.input_layernorm"]["lane"], 0)

    def test_what_the_documents_draw(self):
        text = (support.ROOT / "docs" / "draw_a_step.md").read_text(encoding="utf-8")
        drawn = [block for block in re.findall("^```\n(.*?)^```$", text, re.M | re.S) if "●" in block]
        self.assertEqual(len(drawn), 2)
        readme = (support.ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual([row for row in readme.splitlines() if "●" in row], drawn[0].splitlines()[:6])
        for position, block in zip(("pre", "post"), drawn):
            self.run_program("train", support.ROOT / "configs" / "tiny.toml", "train.steps=20", "--out", "run",
                             "--force", "--dump-tape", "step.txt", f"model.norm_position={position}")
            rows = [row for row in self.path("step.txt").read_text(encoding="utf-8").splitlines()
                    if " model.layers.1." in row and " parameter " not in row]
            self.assertEqual(len(rows), block.count("\n"))
            for row, expected in zip(rows, block.splitlines()):
                self.assertTrue(" ".join(row.split()).startswith(" ".join(expected.split())), f"{row}\n{expected}")
                self.assertTrue(row.startswith(expected[:expected.index("model.")]), f"{row}\n{expected}")

    def test_wrong_files(self):
        config = self.config("run")
        self.path("mine.txt").write_text("something of mine")
        self.path("folder.txt").mkdir()
        for name, message in (("step.png", "expected a name ending in .txt (a table), .dot (Graphviz) or .html (a p"),
                              ("mine.txt", "mine.txt: stands where the tape belongs, and no tape wrote it"),
                              ("folder.txt", "folder.txt: cannot be replaced by a file")):
            self.assertIn(message, self.refused("train", config, "--out", "run", "--dump-tape", name))
            self.assertFalse(self.path("run").exists())
        self.assertEqual(self.path("mine.txt").read_text(), "something of mine")

    def test_what_cannot_be_drawn_does_not_stop_the_training(self):
        self.train("plain")
        self.path("mine").write_text("no folder")
        config = self.config("run")
        done = self.run_program("train", config, "--out", "run", "--dump-tape", "mine/step.txt")
        self.assertIn("warning: the tape is not recorded: ", done.stderr)
        self.assert_same_run("run", "plain")
        done = self.run_program("train", config, "--out", "none", "train.steps=0", "optim.warmup_steps=0",
                                "--dump-tape", "step.txt")
        self.assertIn("warning: no step is left whose tape could be recorded", done.stderr)
        self.assertFalse(self.path("step.txt").exists())


if __name__ == "__main__":
    support.main()
