"""What tests of the report's page share: a browser, a page in it, and a look at it when the test is over."""
import json
import re
import shutil
import unittest

import browser
import report_sample
import support

SETTLED = "charts.every((chart) => !chart.stale)"
ALL_DRAWN = "document.documentElement.dataset.drawnMs !== undefined"


class Case(unittest.TestCase):
    """Pages in one browser; at the end of each it is looked at for errors and requests."""
    @classmethod
    def setUpClass(cls):
        cls.folder = support.new_folder()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = browser.Browser(browser.find())
        cls.addClassCleanup(cls.browser.close)

    def show(self, data, dygraphs=True, **page):
        path = self.folder / "report.html"
        path.write_text(report_sample.fill(data, dygraphs), encoding="utf-8")
        self.open(path, **page)
        if dygraphs:
            self.browser.wait(ALL_DRAWN)
        return path

    def open(self, path, before=lambda: None, **page):
        self.finish()
        self.browser.new_page(**page)
        before()
        self.browser.open(path)

    def tearDown(self):
        self.finish()

    def finish(self):
        if self.browser.session is not None:
            try:
                self.check_quiet()
            finally:
                self.browser.close_page()

    def check_quiet(self):
        """No error since the page was opened, and nothing asked for but the page itself."""
        self.assertEqual(self.browser.errors(), [])
        self.assertIsNone(self.value("document.documentElement.dataset.error ?? null"))
        self.assertEqual([url for url in self.browser.requests() if not re.match("file:|data:", url)], [])
        self.assertEqual(self.value("performance.getEntriesByType('resource').length"), 0)

    def value(self, expression):
        return self.browser.value(expression)

    def texts(self, selector):
        nodes = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.value(f"{nodes}.map((node) => node.innerText.trim())")

    def number_of(self, selector):
        return self.value(f"document.querySelectorAll({json.dumps(selector)}).length")

    def order(self):
        return self.value("[...document.querySelectorAll('#variants-table tbody tr')].map((row) => row.dataset.name)")

    def window(self, chart="validation"):
        return self.value(f"chartCalled('{chart}').graph.xAxisRange()")

    def ink(self, chart):
        """How many pixels of a chart's canvas are not empty."""
        return self.value(f"""(() => {{ const canvas = document.querySelector('#chart-{chart} canvas');
            const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return bytes.filter((byte, i) => i % 4 === 3 && byte > 0).length; }})()""")
