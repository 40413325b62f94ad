"""scripts/check_readme_map: what is missing, gone or without text fails; --write repairs and keeps what was written."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_readme_map"
BEGIN = "<!-- map: scripts/check_readme_map compares it with the tree -->"
END = "<!-- end of map -->"
FILES = {"core/a.h": "#pragma once\n// Adds numbers: exactly. And more.\n", "core/kernels/b.h": "// Rows\n",
         "core/a.cpp": "", "tests/core/a_test.cpp": "", "tests/core/helper.h": ""}
MAP = ["core/     values", "  a.h     adds", "  kernels/  loops", "    b.h   rows", "tests/   mirrors the tree"]


class CheckReadmeMap(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for path, text in FILES.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def run_on(self, lines, *options):
        (self.root / "README.md").write_text("\n".join(["# Title", BEGIN, "```", *lines, "```", END, "tail", ""]))
        return self.run_again(*options)

    def run_again(self, *options):
        done = subprocess.run([sys.executable, str(SCRIPT), "--root", str(self.root), *options], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout

    def test_complete(self):
        self.assertEqual(self.run_on(MAP)[0], 0)

    def test_each_missing_line_is_named(self):
        for line, path in zip(MAP[1:4:2], ("core/a.h", "core/kernels/b.h")):
            status, out = self.run_on([other for other in MAP if other != line])
            self.assertEqual(status, 1)
            self.assertIn(f"{path} is not in the map", out)
        status, out = self.run_on(MAP[:4])
        self.assertEqual(status, 1)
        self.assertIn("tests/ is not in the map", out)

    def test_what_is_gone(self):
        status, out = self.run_on(MAP[:2] + ["  gone.h   was here"] + MAP[2:])
        self.assertEqual(status, 1)
        self.assertIn("core/gone.h is in the map but not in the tree", out)

    def test_a_line_without_text(self):
        self.assertEqual(self.run_on(MAP[:1] + ["  a.h"] + MAP[2:])[0], 1)

    def test_write_adds_removes_and_keeps(self):
        self.assertEqual(self.run_on([MAP[0], "  gone.h   was here", *MAP[2:]], "--write")[0], 0)
        text = (self.root / "README.md").read_text()
        self.assertIn("Adds numbers: exactly\n", text)
        self.assertNotIn("gone.h", text)
        self.assertIn("    b.h                   rows\n", text)
        self.assertTrue(text.startswith("# Title\n") and text.endswith("tail\n"))
        self.assertEqual(self.run_again()[0], 0)

    def test_a_long_sentence_is_cut_behind_a_clause_or_a_word(self):
        words = " ".join(["number"] * 20)
        for sentence, expected in ((f"Adds: {words}", "Adds"), (f"Adds {words}", "Adds" + 12 * " number" + " ..."),
                                   (f"Adds ({words})", "Adds"), (f"Adds, and more, {words}", "Adds, and more")):
            (self.root / "core/a.h").write_text(f"// {sentence}.\n")
            self.assertEqual(self.run_on([MAP[0], *MAP[2:]], "--write")[0], 0)
            line = re.search(r"^  a\.h .*$", (self.root / "README.md").read_text(), re.M).group()
            self.assertEqual(line, f"  a.h{21 * ' '}{expected}")
            self.assertLessEqual(len(line), 120)


if __name__ == "__main__":
    unittest.main()
