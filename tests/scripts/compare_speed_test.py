"""scripts/compare_speed with programs that only pretend: what its figures are made of, and what it refuses."""
import io
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import script_module

SPEED = script_module.load("compare_speed")

# Its step takes 100 ms; `import` makes the folder it is told to.
MINILLM = """#!/usr/bin/env bash
if [ "$1" = import ]; then mkdir -p "$4"; exit 0; fi
echo '{"step_ms": 100, "mfu": 0.5, "fma_peak_gflops": 200}'
"""
# llm.c's program: step i takes 300 + i ms, and STEPS of them are made before it ends with STATUS.
TRAIN_GPT2 = """#!/usr/bin/env bash
echo "[GPT-2]"
for ((i = 0; i < STEPS; ++i)); do
  echo "step $i: train loss 5.0 (took $((300 + i)).000000 ms)"
done
echo "last words"
exit STATUS
"""


def result(peak, mfu=0.5):
    return {"fma_peak_gflops": peak, "mfu": mfu}


class CompareSpeed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("minillm", MINILLM)
        self.write("peers/llmc_random_model.py", "")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def llmc(self, steps=41, status=0):
        self.write("llmc/train_gpt2.c", "")
        self.write("bin/make", "#!/usr/bin/env bash\n")  # not every machine has one
        self.write("llmc/train_gpt2", TRAIN_GPT2.replace("STEPS", str(steps)).replace("STATUS", str(status)))
        return ["--llmc", "llmc", "--only", "gpt2_B4T64", "--pairs", "2"]

    def run_script(self, *words):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["compare_speed", "--minillm", "./minillm", *words]), \
                mock.patch.object(SPEED, "PEERS", self.folder / "peers"), \
                mock.patch.dict(os.environ, {"PATH": f'{self.folder / "bin"}:{os.environ["PATH"]}'}), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = SPEED.main()
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def test_a_relative_program_is_found_from_any_folder(self):
        status, out, err = self.run_script(*self.llmc(), "--json")
        self.assertEqual((status, err), (0, ""))
        row = json.loads(out)["rows"][0]
        self.assertEqual((row["case"], row["against"], row["pairs"]), ("gpt2_B4T64", "llm.c", 2))
        self.assertAlmostEqual(row["minillm_ms"], 100)

    def test_steps_reach_llmc(self):
        for steps in (3, 20, 40):
            _, out, _ = self.run_script(*self.llmc(), "--json", "--steps", str(steps))
            self.assertAlmostEqual(json.loads(out)["rows"][0]["their_ms"], 300 + (1 + steps) / 2)
        status, out, err = self.run_script(*self.llmc(), "--steps", "41")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("--steps 41: llm.c's program makes 40", err)

    def test_a_peer_that_dies_is_quoted(self):
        status, _, err = self.run_script(*self.llmc(steps=4, status=3), "--steps", "10")
        self.assertEqual(status, 1)
        self.assertIn("train_gpt2: exit status 3: last words; 4 steps of 11 were made", err)

    def test_a_program_that_is_not_installed_is_named(self):
        with self.assertRaisesRegex(SPEED.RunFailed, "no-such-program: is not installed"):
            SPEED.output_of(["no-such-program", "--version"])

    def test_what_is_refused(self):
        for words, message in ((["--only", "gpt2_B4T64"], "gpt2_B4T64 is measured against llm.c"),
                               (["--only", "B4T256", "--only", "gpt2_B4T64"], "with --llmc"),
                               (["--minillm", "none"], "there is no program"), (["--pairs", "0"], "at least 1"),
                               (["--minillm", "."], "there is no program"), (["--llmc", "."], "has no train_gpt2.c")):
            status, out, err = self.run_script(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn(message, err)

    def test_a_part_of_the_table_is_not_recorded(self):
        for words in (["--only", "B4T256"], ["--against", "torch"], self.llmc()):
            status, out, err = self.run_script(*words, "--record")
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn("--record replaces the whole table", err)

    def test_a_page_without_a_place_is_told_before_anything_runs(self):
        (self.folder / "performance.md").write_text("nothing\n")
        with mock.patch.object(SPEED.page_table, "DOCS", self.folder):
            status, out, err = self.run_script("--record")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("compare_speed: docs/performance.md has 0 lines <!-- compare_speed -->, one is needed", err)

    def test_pairs_of_a_slow_machine_are_left_out_of_every_figure(self):
        case = SPEED.CASES[0]
        pairs = [(0.1, 0.2, result(200, 0.6)), (0.2, 0.2, result(100, 0.1)), (0.3, 0.2, result(189, 0.2)),
                 (0.1, 0.3, result(191, 0.5))]
        row = SPEED.summarize(case, "torch", pairs)
        self.assertEqual((row["pairs"], row["left_out"]), (2, 2))
        self.assertAlmostEqual(row["mfu"], 0.55)
        self.assertAlmostEqual(row["ratio"], 2.5)
        self.assertEqual(row["fma_peak_gflops"], 200)

    def test_a_machine_without_a_peak_leaves_nothing_out(self):
        row = SPEED.summarize(SPEED.CASES[0], "torch", [(0.1, 0.2, result(None, None)), (0.1, 0.4, result(None, None))])
        self.assertEqual((row["pairs"], row["left_out"], row["mfu"], row["fma_peak_gflops"]), (2, 0, None, None))
        self.assertRegex(SPEED.table_row(row), r" 2 \(-0\) +- +-$")


if __name__ == "__main__":
    unittest.main()
