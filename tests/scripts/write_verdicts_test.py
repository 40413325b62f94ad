"""scripts/write_verdicts: pages that say what the records say, and records that are gone."""
import json
import shutil
import unittest
from unittest import mock

import script_module

WRITE = script_module.load("write_verdicts")

# Reports what a folder's runs are, as minillm report does.
PRETEND = """#!/usr/bin/python3 -S
import json, pathlib, sys
records = pathlib.Path(sys.argv[2])
runs = sorted(path.parent.name for path in records.glob("*/metrics.jsonl"))
page = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
page.with_name("report.md").write_text("mark\\n# title\\n\\n" + ", ".join(runs) + "\\n")
print(json.dumps({"unigram_loss": 6.0, "variants": [], "runs": [], "environment": []}))
"""


class WriteVerdicts(script_module.PretendCase):
    SCRIPT = WRITE
    PROGRAM = PRETEND

    def setUp(self):
        super().setUp()
        self.docs = self.folder / "docs"
        self.docs.mkdir()
        decided = WRITE.decisions.DECISIONS
        (self.docs / "decisions.md").write_text("".join(
            f"<!-- {name} -->\n{WRITE.decisions.answer(decide, {})}\n<!-- /{name} -->\n"
            for name, decide in decided.items()))
        for module, name, value in [(WRITE, "ROOT", self.folder), (WRITE.page_table, "DOCS", self.docs)]:
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.readme("later", WRITE.NOT_RUN)
        self.readme("tried", WRITE.NOT_RUN)
        self.records = self.folder / "experiments" / "tried" / "records"
        for run in ("a-seed1", "a-seed2", "b-seed1"):
            (self.records / run).mkdir(parents=True)
            for name in WRITE.OF_A_RUN:
                (self.records / run / name).write_text("{}\n")
        (self.records / "speed.jsonl").write_text("{}\n")
        self.plan(runs=["a-seed1", "a-seed2", "b-seed1"])
        self.assertEqual(self.run_script()[0], 0)

    def readme(self, experiment, text):
        page = self.folder / "experiments" / experiment / "README.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<!-- verdicts -->\n{text}\n<!-- /verdicts -->\n")
        return page

    def plan(self, **more):
        (self.records / "suite.json").write_text(json.dumps({"variants": [{"name": "a"}, {"name": "b"}], **more}))

    def refused(self, *words):
        """What both ways say, in one line; neither changes the page."""
        page = self.folder / "experiments" / "tried" / "README.md"
        before = page.read_text()
        status, _, said = self.run_script("--check")
        self.assertEqual((status, said.count("\n")), (2, 1), said)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(self.run_script()[0], 2)
        self.assertEqual(page.read_text(), before)

    def test_a_page_says_what_the_records_say(self):
        self.assertEqual(self.run_script("--check"), (0, "", ""))
        self.assertIn("a-seed1, a-seed2, b-seed1", (self.folder / "experiments/tried/README.md").read_text())
        page = self.readme("tried", "another number")
        status, out, _ = self.run_script("--check")
        self.assertEqual(status, 1)
        self.assertIn("experiments/tried/README.md, verdicts: differs", out)
        self.assertIn("another number", page.read_text())

    def test_a_folder_of_records_that_is_gone(self):
        shutil.rmtree(self.records)
        self.refused("experiments/tried/records: there is no such folder", "experiments/tried/README.md", "git restore")
        self.readme("tried", WRITE.NOT_RUN)
        self.assertEqual(self.run_script("--check"), (0, "", ""))

    def test_a_run_that_is_gone(self):
        shutil.rmtree(self.records / "a-seed2")
        self.refused("experiments/tried/records: a-seed2 missing", "git restore")

    def test_files_that_are_gone(self):
        (self.records / "b-seed1" / "summary.json").unlink()
        (self.records / "speed.jsonl").unlink()
        self.refused("speed.jsonl, b-seed1/summary.json missing")
        (self.records / "suite.json").unlink()
        self.refused("suite.json, speed.jsonl missing")

    def test_a_plan_that_names_no_runs(self):
        self.plan()
        self.assertEqual(self.run_script("--check"), (0, "", ""))
        shutil.rmtree(self.records / "b-seed1")
        self.refused("b-seed* missing")

    def test_records_without_a_place(self):
        (self.folder / "experiments/tried/README.md").write_text("nothing\n")
        status, _, said = self.run_script("--check")
        self.assertEqual((status, said.count("\n")), (2, 1))
        self.assertIn("0 lines <!-- verdicts -->", said)


if __name__ == "__main__":
    unittest.main()
