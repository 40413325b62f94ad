"""scripts/train_presets with a program that only pretends: its verdicts, its record, and what it refuses."""
import unittest
from unittest import mock

import script_module

TRAIN = script_module.load("train_presets")

# Ends at 5 nats where the unigram loss is 6; the 2017 preset at 6.5, and a lint says why.
MINILLM = """#!/usr/bin/python3 -S
import json, pathlib, sys
command, *words = sys.argv[1:]
old = "original_2017" in " ".join(words)
if command == "train":
    out = pathlib.Path(words[words.index("--out") + 1])
    out.mkdir(parents=True)
    loss = {"baseline": None}.get(out.name, 6.5 if old else 5)
    (out / "summary.json").write_text(json.dumps({"final_val_loss": loss, "unigram_loss": 6, "parameters": 3688704,
                                                  "steps": 200, "grad_norm_max_first_100": 1.25}))
else:
    lints = [{"id": "E12", "severity": "info"}] + ([{"id": "E06", "severity": "warning"}] if old else [])
    print(json.dumps({"lints": lints}))
"""


class TrainPresets(script_module.PretendCase):
    SCRIPT = TRAIN
    PROGRAM = MINILLM

    def run_script(self, *arguments):
        return super().run_script("--out", str(self.folder / "runs"), *arguments)

    def test_verdicts(self):
        status, out, _ = self.run_script("--only", "gpt2_2019", "--only", "original_2017")
        self.assertEqual(status, 0)
        self.assertIn("| [gpt2_2019](../configs/presets/gpt2_2019.toml) | 3,688,704 | 200 | 5.0000 | 1.25 | - | below",
                      out)
        self.assertIn("| 6.5000 | 1.25 | E06 | a lint says why |", out)
        status, out, _ = self.run_script()
        self.assertEqual(status, 1)
        self.assertIn("| [baseline](../configs/baseline.toml) | 3,688,704 | 200 | - | 1.25 | - | NOT EXPECTED |", out)

    def test_finished_runs_are_kept(self):
        self.run_script("--only", "gpt2_2019")
        self.program.write_text(MINILLM.replace('if command == "train":', 'if command == "train":\n    sys.exit(2)'))
        self.assertEqual(self.run_script("--only", "gpt2_2019")[0], 0)

    def test_record(self):
        (self.folder / "evolution.md").write_text("a\n<!-- presets -->\nold\n<!-- /presets -->\nb\n")
        with mock.patch.object(TRAIN.page_table, "DOCS", self.folder):
            for name in ("original_2017", "gpt2_2019"):  # one after the other, and they stand in the presets' order
                self.assertEqual(self.run_script("--only", name, "--record")[0], 0)
        text = (self.folder / "evolution.md").read_text()
        self.assertTrue(text.startswith("a\n") and text.endswith("b\n") and "old" not in text)
        self.assertEqual([line[3:8] for line in text.splitlines()[5:7]], ["gpt2_", "origi"])

    def test_a_failed_run(self):
        self.program.write_text("#!/usr/bin/env bash\necho 'error: no memory' >&2\nexit 2\n")
        status, _, err = self.run_script("--only", "gpt2_2019")
        self.assertEqual(status, 1)
        self.assertIn("error: no memory", err)


if __name__ == "__main__":
    unittest.main()
