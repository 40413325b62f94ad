"""The page of `minillm train --dump-tape` in headless Chromium: rows, lanes, colours, light and dark.

    tape_page_slow_test.py PROGRAM CHECKPOINT_DIGEST

Exit status 77: there is no Chromium.
"""
import sys

import browser
import report_case
import support


class TapePage(report_case.Case, support.Case):
    def setUp(self):
        support.Case.setUp(self)

    def show_step(self, page=None, **settings):
        config = self.config("run", **settings)
        self.run_program("train", config, "--out", "run", "--force", "--dump-tape", "step.html")
        path = self.path("step.html")
        self.open(path, **(page or {}))
        return support.data_of(path.read_text(encoding="utf-8"))["nodes"]

    def shown_rows(self):
        return self.value("[...document.querySelectorAll('#tape-table tr[id]')].filter((row) => !row.hidden).length")

    def heats(self):
        return self.texts("#tape-table td.heat")

    def test_every_part(self):
        nodes = self.show_step()
        inner = [node for node in nodes if node["operands"]]
        self.assertEqual(self.number_of("#tape-table tr[id]"), len(nodes))
        self.assertEqual(self.shown_rows(), len(inner))
        self.assertEqual(self.number_of("#tape-table circle"), len(inner))
        self.assertEqual(self.texts("#tape-table tr.module th:nth-child(3)")[1:4],
                         ["model.layers.0.input_layernorm", "model.layers.0.self_attn",
                          "model.layers.0.attention_residual"])
        self.assertIn("model.layers.1", self.texts("#modules tbody th"))
        self.assertNotIn("model.layers", self.texts("#modules tbody th"))
        shares = {name: share for name, share in zip(self.texts("#modules tbody th"),
                                                     self.texts("#modules tbody td:nth-child(5)"))}
        self.assertEqual(shares["model"][-1], "%")
        self.browser.click("#leaves")
        self.assertEqual(self.shown_rows(), len(nodes))

    def test_lanes_join_from_row_to_row(self):
        self.show_step()
        # Every value that leaves a row comes into the next one, and is read where its lane ends.
        self.assertTrue(self.value("""nodes.every((node, id) => id === 0 ||
            JSON.stringify(node.above) === JSON.stringify(nodes[id - 1].below))"""))
        self.assertEqual(self.value("nodes[nodes.length - 1].below.length"), 0)
        height = "document.querySelector('#node-1%s').getBoundingClientRect().height"
        self.assertEqual(self.value(height % " svg"), self.value(height % ""), "rows leave no gap in a lane")

    def test_colours(self):
        nodes = self.show_step()
        times = self.heats()
        self.assertTrue(any(text.endswith(" ms") for text in times))
        self.browser.click("input[value=bytes]")
        largest = max(range(len(nodes)), key=lambda i: nodes[i]["bytes"])
        self.assertNotEqual(self.heats(), times)
        self.assertRegex(self.heats()[largest], r"^\d+(\.\d+)? kB$")
        fill = "getComputedStyle(document.querySelector('#node-%d circle')).fill"
        none = next(i for i, node in enumerate(nodes) if node["operands"] and node["bytes"] == 0)
        self.assertNotEqual(self.value(fill % largest), self.value(fill % none))

    def test_pointing(self):
        nodes = self.show_step()
        add = next(i for i, node in enumerate(nodes) if node["op"] == "add")
        x, y, width, height = self.browser.place(f"#node-{add}")
        self.browser.move(x + 200, y + height / 2)
        marked = self.value("[...document.querySelectorAll('#tape-table tr.operand')].map((row) => row.id)")
        self.assertEqual(marked, [f"node-{i}" for i in sorted(nodes[add]["operands"])])
        self.assertEqual(self.value("document.querySelectorAll('#tape-table tr.reader').length"), 2)
        self.assertEqual(self.value("document.querySelector('#tape-table tr.chosen').id"), f"node-{add}")

    def test_dark_and_phone(self):
        self.show_step(page={"scheme": "dark", "width": 375, "height": 812, "touch": True}, model__n_layers=6)
        ground = self.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        self.assertLess(sum(ground) / 3, 128)
        self.assertEqual(self.value("document.documentElement.scrollWidth"), 375)


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: chromium not installed")
        sys.exit(77)
    support.main()
