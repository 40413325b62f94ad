"""scripts/compare_with_torch: what each bar catches, and that the page tells the bars and what a column holds."""
import contextlib
import io
import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import script_module

COMPARE = script_module.load("compare_with_torch")
ROOT = script_module.ROOT


def row_of(name, loss=0.0, norm=0.0, val=0.0):
    """The row of a mode whose two sides differ by so much at step 2 and in the validation loss."""
    mode = COMPARE.MODES[name]
    theirs = {"params": 10, "loss": [5.0] * 4, "grad_norm": [2.0] * 4, "val_loss": 4.0, "val_windows": 3}
    ours = {"params": 10, "loss": [5.0, 5.0, 5.0 + loss, 5.0], "grad_norm": [2.0, 2.0, 2.0 * (1 + norm), 2.0],
            "val_loss": 4.0 + val, "val_tokens": 3 * mode.seq_len}
    return COMPARE.compare(mode, ours, theirs)


class CompareWithTorch(unittest.TestCase):
    def test_bars(self):
        for name, what, met, missed in (("double", "loss", 9e-8, 2e-7), ("double", "norm", 3e-6, 5e-6),
                                        ("single", "loss", 9e-6, 2e-5), ("full", "loss", 9e-4, 2e-3),
                                        ("full", "val", 9e-4, 2e-3)):
            for sign in (1, -1):
                self.assertEqual(row_of(name, **{what: sign * met})["faults"], [], (name, what))
                self.assertEqual(len(row_of(name, **{what: sign * missed})["faults"]), 1, (name, what))
            self.assertEqual(len(row_of(name, **{what: math.nan})["faults"]), 1, (name, what))

    def test_the_page_tells_the_bars(self):
        page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
        for mode in COMPARE.MODES.values():
            lines = [line for line in page.splitlines() if f"--{mode.name}`" in line and "every loss" in line]
            self.assertEqual(len(lines), 2, mode.name)
            for line in lines:
                for bar in {mode.loss_bar, mode.norm_bar, mode.val_bar} - {None}:
                    self.assertIn(f"{bar:.0e}".replace("e-0", "e-"), line)

    def test_a_recorded_difference_is_told_as_one(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "docs").mkdir()
            page = pathlib.Path(folder) / "docs" / "comparison.md"
            page.write_text("before\n<!-- full -->\nold\n<!-- /full -->\nbehind\n")
            with mock.patch.object(COMPARE.page_table, "DOCS", pathlib.Path(folder) / "docs"):
                COMPARE.record(COMPARE.MODES["full"], {"baseline": row_of("full", val=2.5e-5)})
            text = page.read_text()
        heading = next(line for line in text.splitlines() if line.startswith("| variant"))
        self.assertIn(heading, (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8"))
        self.assertIn("| validation loss difference |", heading)
        self.assertIn("| 2.5e-05 | met |", text)
        self.assertTrue(text.startswith("before\n") and text.endswith("behind\n") and "old" not in text)

    def test_a_page_without_a_place_is_told_before_anything_runs(self):
        err = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(err), \
                mock.patch.object(COMPARE.page_table, "DOCS", pathlib.Path(folder)), \
                mock.patch.object(sys, "argv", ["compare_with_torch", "--full", "--record"]):
            (pathlib.Path(folder) / "comparison.md").write_text("<!-- full -->\n<!-- full -->\n<!-- /full -->\n")
            with self.assertRaises(SystemExit) as stop:
                COMPARE.parse_args()
        self.assertEqual(stop.exception.code, 2)
        self.assertIn("docs/comparison.md has 2 lines <!-- full -->, one is needed", err.getvalue())


if __name__ == "__main__":
    unittest.main()
