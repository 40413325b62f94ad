"""scripts/page_table.py: tables and rows find their place in a page."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import page_table  # noqa: E402

PAGE = "# Page\n\nBefore.\n\n<!-- rows -->\n<!-- /rows -->\n\nBehind.\n"
HEADER = ["row", "result"]


class PageTable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "page.md"
        self.page.write_text(PAGE)
        patch = mock.patch.object(page_table, "DOCS", pathlib.Path(folder.name))
        patch.start()
        self.addCleanup(patch.stop)

    def lines(self):
        text = self.page.read_text()
        self.assertTrue(text.startswith("# Page\n\nBefore.\n\n"))
        self.assertTrue(text.endswith("\n\nBehind.\n"))
        return [line for line in text.splitlines() if line.startswith("|")]

    def test_rows_come_one_by_one_in_a_given_order(self):
        order = ["first", "second", "third"]
        for name, result in [("third", 3), ("first", 1), ("other", 9), ("second", 2)]:
            page_table.put_row("page.md", "rows", HEADER, [name, result], order)
        self.assertEqual(self.lines(), ["| row | result |", "| --- | --- |", "| first | 1 |", "| second | 2 |",
                                        "| third | 3 |", "| other | 9 |"])

    def test_a_row_replaces_the_one_of_its_name(self):
        for result in ("39 of 39", "38 of 39"):
            page_table.put_row("page.md", "rows", HEADER, ["gcc", result])
        self.assertEqual(self.lines()[2:], ["| gcc | 38 of 39 |"])

    def test_a_page_without_the_place(self):
        with self.assertRaisesRegex(page_table.NoPlace, "has 0 lines <!-- other -->"):
            page_table.put_row("page.md", "other", HEADER, ["gcc", 1])
        self.assertEqual(self.page.read_text(), PAGE)


if __name__ == "__main__":
    unittest.main()
