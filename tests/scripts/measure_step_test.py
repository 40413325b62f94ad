"""scripts/measure_step with a program that only pretends: what its tables are made of, and what it refuses."""
import unittest
from unittest import mock

import script_module

MEASURE = script_module.load("measure_step")
ROOT = script_module.ROOT

# A step takes 100 ms, on one thread 180, of one ablation 150 for fewer operations; `train` makes one step.
MINILLM = """#!/usr/bin/python3 -S
import json, sys
if sys.argv[1] == "train":
    print("step 1/1 | loss 7", file=sys.stderr)
    sys.exit(0)
one = "train.threads=1" in sys.argv
slow = "gdn_hybrid" in sys.argv[2]
phases = ["gemm_forward", "gemm_dx", "gemm_dw", "attention", "norms", "activations", "loss", "optimizer", "other"]
print(json.dumps({"step_ms": 180 if one else 150 if slow else 100, "tokens_per_s": 10240, "mfu": 0.5,
                  "fma_peak_gflops": 200, "flops_per_step": 0.75e9 if slow else 1e9,
                  "phases_ms": {phase: 10 for phase in phases}, "peak_memory_bytes": 150e6,
                  "memory_before_bytes": 30e6, "memory_formula_bytes": 100e6, "heap_allocations_per_step": 0}))
"""


class MeasureStep(script_module.PretendCase):
    SCRIPT = MEASURE
    PROGRAM = MINILLM

    def run_script(self, *arguments):
        return super().run_script("--repeat", "1", *arguments)

    def test_tables(self):
        status, out, _ = self.run_script()
        self.assertEqual(status, 0)
        self.assertIn("| attention | 10.0 | 10.0 % | 10.0 | 10.0 % |", out)
        self.assertIn("| B4 T256 | 100.0 | 10,240 | 50.0 % | 150 MB | 1.20 | 0 |", out)
        self.assertIn("| B1 T4096 | 100.0 | 10,240 | 50.0 % | 1.00 | 1.00 | 1.00 | 1.000 |", out)
        plain = out.index("[layernorm](../configs/ablations/layernorm.toml) | 100.0 | 1.00 | 1.00 | 1.00 | 1.00 |")
        slow = out.index("[gdn_hybrid](../configs/ablations/gdn_hybrid.toml) | 150.0 | 0.67 | 0.75 | 2.00 | 1.00 |")
        self.assertLess(plain, slow)
        self.assertIn("| 180.0 ms | 100.0 ms | 1.80 | 1.80 to 1.80 | 1.00 |", out)
        self.assertRegex(out, r"\| \d\.\d\d s \| \d\.\d\d s \| \d\.\d\d s \|")

    def test_a_disturbed_run_is_left_out(self):
        runs = [{"fma_peak_gflops": 200, "step_ms": 100}, {"fma_peak_gflops": 150, "step_ms": 300},
                {"fma_peak_gflops": 199, "step_ms": 110}]
        bench = MEASURE.Bench(mock.Mock(repeat=3, threads=2))
        with mock.patch.object(bench, "once", side_effect=runs):
            self.assertEqual(bench.median([])["step_ms"], 100)

    def test_disturbed_pairs_of_threads_are_left_out(self):
        def runs_of(peaks, ms):
            return [{"fma_peak_gflops": peak, "step_ms": time} for peak, time in zip(peaks, ms, strict=True)]

        ones = runs_of((100, 100, 60, 99), (180, 190, 500, 170))  # of the third, the single thread was disturbed
        twos = runs_of((200, 120, 200, 198), (100, 400, 100, 100))  # of the second, the two
        bench = mock.Mock()
        bench.args.repeat = 4
        bench.once.side_effect = [run for pair in zip(ones, twos, strict=True) for run in pair]
        self.assertIn("| 175.0 ms | 100.0 ms | 1.75 | 1.70 to 1.80 | 2.00 |", MEASURE.threads(bench))
        bench.args.repeat = 2
        bench.once.side_effect = [*runs_of((100, 100), (1, 1)), *runs_of((50, 300), (1, 1))]
        self.assertRaisesRegex(MEASURE.RunFailed, "every pair", MEASURE.threads, bench)
        bench.args.repeat = 1
        bench.once.side_effect = runs_of((None, None), (180, 100))
        self.assertIn("| 180.0 ms | 100.0 ms | 1.80 |", MEASURE.threads(bench))

    def test_phases_come_as_the_program_tells_them(self):
        run = {"step_ms": 100, "mfu": 0.5, "fma_peak_gflops": 200, "phases_ms": {"later": 30, "attention": 70}}
        lines = MEASURE.phases(mock.Mock(**{"median.return_value": run})).splitlines()
        self.assertEqual([line.split("|")[1].strip() for line in lines[2:]], ["later", "attention", "step", "MFU"])
        self.assertEqual(lines[-1], "| MFU | 50.0 % | of 200 GFLOP/s | 50.0 % | of 200 GFLOP/s |")

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

    def test_a_page_without_a_place_is_told_before_anything_runs(self):
        self.program.write_text("#!/usr/bin/env bash\ntouch \"$(dirname \"$0\")/was_run\"\nexit 1\n")
        place = "<!-- start -->\n<!-- /start -->\n"
        for text, fault in (("", "docs/performance.md has 0 lines <!-- start -->, one is needed"),
                            ("<!-- start -->\n", "docs/performance.md has 0 lines <!-- /start -->, one is needed"),
                            (2 * place, "docs/performance.md has 2 lines <!-- start -->, one is needed"),
                            (place + "<!-- /start -->\n", "docs/performance.md has 2 lines <!-- /start -->, one"),
                            ("<!-- /start -->\n<!-- start -->\n", "<!-- /start --> stands before <!-- start -->"),
                            (None, "docs/performance.md: No such file or directory")):
            page = self.folder / "performance.md"
            page.unlink(missing_ok=True)
            if text is not None:
                page.write_text(text)
            with mock.patch.object(MEASURE.page_table, "DOCS", self.folder):
                status, _, err = self.run_script("--only", "start", "--record")
            self.assertEqual(status, 2, text)
            self.assertIn(fault, err)
            self.assertFalse((self.folder / "was_run").exists())
            self.assertEqual(page.read_text() if text is not None else None, text)

    def test_a_start_that_says_nothing_fails(self):
        for ending, fault in (("exit 3", "exit status 3: no output"), ("exit 0", "no line \"step 1/1\": no output"),
                              ("echo 'error: no' >&2; exit 2", "exit status 2: error: no"),
                              ("echo 'step 1/10' >&2; echo '2/10' >&2", "no line \"step 1/1\": 2/10")):
            self.program.write_text(f"#!/usr/bin/env bash\n{ending}\n")
            status, _, err = self.run_script("--only", "start")
            self.assertEqual(status, 1, ending)
            self.assertIn(fault, err)
        self.program.write_text("#!/usr/bin/env bash\nexit 3\n")
        status, _, err = self.run_script("--only", "sizes")
        self.assertEqual(status, 1)
        self.assertIn("exit status 3, no output", err)

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
