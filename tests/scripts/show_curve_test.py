"""scripts/show_curve: the curve stands where the numbers say, and what cannot be drawn is an error."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "show_curve"


class ShowCurve(unittest.TestCase):
    def draw(self, text):
        with tempfile.TemporaryDirectory() as folder:
            if text is not None:
                (pathlib.Path(folder) / "metrics.jsonl").write_text(text)
            done = subprocess.run([sys.executable, str(SCRIPT), folder, "--width", "10", "--height", "3"],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.splitlines()

    def test_falling_loss_with_an_unfinished_last_line(self):
        status, lines = self.draw('{"step":0,"loss":6}\n{"step":5,"loss":4}\n{"step":9,"loss":2}\n'
                                  '{"step":9,"val_loss":4}\n{"step":10,"lo')
        self.assertEqual(status, 0)
        self.assertEqual(lines[0], "   6.000 | *")
        self.assertEqual(lines[1], "   4.000 |      *   o")
        self.assertEqual(lines[2], "   2.000 |          *")
        self.assertIn("from 6.000 to 2.000", lines[5])
        self.assertIn("4.000 after 9 updates", lines[6])

    def test_null_losses_are_left_out(self):
        status, lines = self.draw('{"step":0,"loss":1}\n{"step":1,"loss":null}\n')
        self.assertEqual(status, 0)
        self.assertIn("from 1.000 to 1.000", lines[-1])

    def test_nothing_to_draw(self):
        self.assertEqual(self.draw(None)[0], 2)
        self.assertEqual(self.draw("")[0], 2)


if __name__ == "__main__":
    unittest.main()
