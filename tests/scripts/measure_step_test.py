"""scripts/measure_step with a program that only pretends: what its tables are made of, and what it refuses."""
import importlib.machinery
import importlib.util
import io
import contextlib
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True  # scripts/ stays as it is
sys.path.insert(0, str(ROOT / "scripts"))
LOADER = importlib.machinery.SourceFileLoader("measure_step", str(ROOT / "scripts" / "measure_step"))
MEASURE = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure_step", LOADER))
LOADER.exec_module(MEASURE)

# A step takes 100 ms, on one thread 180; `train` makes one step.
MINILLM = """#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "train":
    print("step 1/1 | loss 7", file=sys.stderr)
    sys.exit(0)
one = "train.threads=1" in sys.argv
phases = ["gemm_forward", "gemm_dx", "gemm_dw", "attention", "norms", "activations", "loss", "optimizer", "other"]
print(json.dumps({"step_ms": 180 if one else 100, "tokens_per_s": 10240, "mfu": 0.5, "fma_peak_gflops": 200,
                  "flops_per_step": 1e9, "phases_ms": {phase: 10 for phase in phases}, "peak_memory_bytes": 150e6,
                  "memory_before_bytes": 30e6, "memory_formula_bytes": 100e6, "heap_allocations_per_step": 0}))
"""


class MeasureStep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "minillm"
        self.program.write_text(MINILLM)
        self.program.chmod(0o755)

    def run_script(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        command = ["measure_step", "--minillm", str(self.program), "--repeat", "1", *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = MEASURE.main()
            except SystemExit as stop:
                status = stop.code
        return status, out.getvalue(), err.getvalue()

    def test_tables(self):
        status, out, _ = self.run_script()
        self.assertEqual(status, 0)
        self.assertIn("| attention | 10.0 | 10.0 % | 10.0 | 10.0 % |", out)
        self.assertIn("| B4 T256 | 100.0 | 10,240 | 50.0 % | 150 MB | 1.20 | 0 |", out)
        self.assertIn("| B1 T4096 | 100.0 | 10,240 | 50.0 % | 1.00 | 1.00 | 1.00 | 1.000 |", out)
        self.assertIn("| 180.0 ms | 100.0 ms | 1.80 | 1.80 to 1.80 | 1.00 |", out)
        self.assertRegex(out, r"\| \d\.\d\d s \| \d\.\d\d s \| \d\.\d\d s \|")

    def test_a_disturbed_run_is_left_out(self):
        runs = [{"fma_peak_gflops": 200, "step_ms": 100}, {"fma_peak_gflops": 150, "step_ms": 300},
                {"fma_peak_gflops": 199, "step_ms": 110}]
        bench = MEASURE.Bench(mock.Mock(repeat=3, threads=2))
        with mock.patch.object(bench, "once", side_effect=runs):
            self.assertEqual(bench.median([])["step_ms"], 100)

    def test_record(self):
        (self.folder / "performance.md").write_text("a\n<!-- threads -->\nold\n<!-- /threads -->\nb\n")
        with mock.patch.object(MEASURE.page_table, "DOCS", self.folder):
            self.assertEqual(self.run_script("--only", "threads", "--record")[0], 0)
        text = (self.folder / "performance.md").read_text()
        self.assertIn("| 180.0 ms | 100.0 ms | 1.80 |", text)
        self.assertTrue(text.startswith("a\n") and text.endswith("b\n") and "old" not in text)

    def test_the_page_has_a_place_for_each_table(self):
        page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
        for name in (*MEASURE.TABLES, "compare_speed"):
            self.assertEqual(page.count(f"<!-- {name} -->\n"), 1, name)
            self.assertEqual(page.count(f"<!-- /{name} -->\n"), 1, name)

    def test_failures(self):
        self.program.write_text("#!/usr/bin/env bash\necho 'error: no' >&2\nexit 2\n")
        status, _, err = self.run_script("--only", "threads")
        self.assertEqual(status, 1)
        self.assertIn("error: no", err)
        status, _, err = self.run_script("--minillm", "/nowhere")
        self.assertEqual(status, 2)
        self.assertIn("there is no program", err)


if __name__ == "__main__":
    unittest.main()
