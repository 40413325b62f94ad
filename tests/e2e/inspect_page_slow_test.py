"""The page of `minillm inspect` in headless Chromium: what it draws, how it is worked, light and dark.

    inspect_page_slow_test.py PROGRAM CHECKPOINT_DIGEST

Exit status 77: there is no Chromium.
"""
import sys

import browser
import report_case
import support

TEXT = "Two cats see the ball. The big red dog sees </script><b>"
SETTINGS = {"train.steps": 60, "optim.lr": 0.02, "model.n_layers": 3}


class InspectPage(report_case.Case, support.Case):
    def setUp(self):
        support.Case.setUp(self)

    def show_text(self, text=TEXT, page=None, **settings):
        self.train("run", **{key.replace(".", "__"): value for key, value in {**SETTINGS, **settings}.items()})
        self.run_program("inspect", "run", "--text", text, "--html", "inspect.html")
        self.open(self.path("inspect.html"), **(page or {}))
        return self.json_of("inspect", "run", "--text", text)

    def pixels(self, selector):
        """Of a canvas, row after row: the sum of red, green and blue."""
        return self.value(f"""(() => {{ const canvas = document.querySelector('{selector}');
            const copy = new OffscreenCanvas(canvas.width, canvas.height)
                .getContext('2d', {{willReadFrequently: true}});
            copy.drawImage(canvas, 0, 0);
            const bytes = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            return [...Array(bytes.length / 4).keys()].map((i) =>
                bytes[4 * i] + bytes[4 * i + 1] + bytes[4 * i + 2]); }})()""")

    def test_every_part(self):
        said = self.show_text()
        size = len(said["tokens"])
        self.assertEqual(self.texts("#tokens li"), said["tokens"])
        self.assertIn(f"{size} tokens · loss {said['loss']:.4f} nats", self.texts("#facts")[0])
        self.assertIn("differs from the last stream by at most", self.texts("#sum")[0])
        self.assertEqual(self.texts("#layers-table tbody th"), ["embedding", "0", "1", "2"])
        shown = self.texts("#layers-table tbody tr:nth-child(2) td")
        self.assertIn(f"{said['layers'][0]['stream_rms']:.4g}", [cell.rstrip("0") for cell in shown] + shown)
        self.assertEqual(self.number_of("#charts figure"), 10)
        self.assertEqual(self.number_of("#charts figure:first-child circle"), 6)
        self.assertEqual(self.number_of("#heads button"), 2)
        self.assertIn(f"entropy {said['layers'][0]['heads'][1]['entropy']:.2f}", self.texts("#heads button")[1])
        self.assertEqual(self.number_of(".labels.keys span"), size)
        self.assertIsNone(self.value("document.querySelector('#tokens b')"))

    def test_the_map_shows_the_weights(self):
        said = self.show_text()
        size = len(said["tokens"])
        pixels = self.pixels("#map")
        self.assertEqual(len(pixels), size * size)
        seen = {pixels[query * size + key] for query in range(size) for key in range(query + 1)}
        hidden = {pixels[query * size + key] for query in range(size) for key in range(query + 1, size)}
        self.assertEqual(len(hidden), 1)
        self.assertGreater(len(seen), size)
        self.assertEqual(min(seen), pixels[0], "query 0 gives everything to itself: the darkest cell of a light page")
        sums = self.value(f"Array.from({{length: {size}}}, (_, query) => "
                          f"shown.weights.slice(query * {size}, (query + 1) * {size}).reduce((a, b) => a + b))")
        for total in sums:
            self.assertAlmostEqual(total, 1, 2)
        before = pixels
        self.browser.click("#heads button:nth-child(2)")
        self.assertEqual(self.texts("#map-title"), ["Layer 0, head 1"])
        self.assertNotEqual(self.pixels("#map"), before)
        self.assertEqual(self.pixels("#map"), self.pixels("#heads button:nth-child(2) canvas"))
        self.value("(() => { const s = document.getElementById('layer'); s.value = '2'; "
                   "s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(self.texts("#map-title"), ["Layer 2, head 1"])

    def test_pointing_and_keys(self):
        said = self.show_text()
        size = len(said["tokens"])
        x, y, width, height = self.browser.place("#plot")
        self.browser.move(x + width * 1.5 / size, y + height * 3.5 / size)
        weight = self.value(f"shown.weights[3 * {size} + 1]")
        query, key = said["tokens"][3], said["tokens"][1]
        self.assertEqual(self.texts("#readout"), [f"query 3 {query} → key 1 {key}: {weight:.3f}"])
        self.assertEqual(self.texts(".labels .chosen"), [key, query])
        self.browser.move(x + width * 4.5 / size, y + height * 3.5 / size)
        self.assertIn("hidden by the mask", self.texts("#readout")[0])
        self.browser.move(1, 1)
        self.assertIn("Point at a cell", self.texts("#readout")[0])
        self.value("document.getElementById('plot').focus()")
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
            self.browser.press(key)
        self.assertIn("query 1 Two → key 0 <s>", self.texts("#readout")[0])
        self.browser.press("Escape")
        self.assertIn("Point at a cell", self.texts("#readout")[0])

    def test_light_and_dark(self):
        for scheme, is_dark in (("light", False), ("dark", True)):
            self.show_text(page={"scheme": scheme})
            ground = self.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
            self.assertEqual(sum(ground) / 3 < 128, is_dark)
            pixels = self.pixels("#map")
            self.assertEqual(pixels[0] > pixels[-1], is_dark, "a whole weight stands out from a small one")
            contrast = """((a, b) => { const light = (name) => colour(name).match(/[\\d.]+/g).slice(0, 3)
                .map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
                .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0.05);
                const [x, y] = [light(a), light(b)]; return Math.max(x, y) / Math.min(x, y); })"""
            self.assertGreater(self.value(f"{contrast}('--map-full', '--map-ground')"), 7)
            self.finish()
            self.folder = support.new_folder()
            self.addCleanup(support.shutil.rmtree, self.folder, ignore_errors=True)

    def test_phone_and_long_texts(self):
        text = "Two cats see the ball. " * 60
        self.show_text(text, page={"width": 375, "height": 812, "touch": True}, **{"data.seq_len": 512})
        self.assertEqual(self.value("document.documentElement.scrollWidth"), 375)
        self.assertIn("the first 256 of 421 tokens", self.texts("#attention-note")[0])
        self.assertEqual(len(self.pixels("#map")), 256 * 256)

    def test_models_without_some_of_it(self):
        self.show_text(**{"model.attention": "gdn", "model.residual": "mhc"})
        self.assertIn("No layer of this model has attention weights", self.texts("#attention-note")[0])
        self.assertIn("The last stream is no sum of writes", self.texts("#sum")[0])
        self.finish()
        self.folder = support.new_folder()
        self.addCleanup(support.shutil.rmtree, self.folder, ignore_errors=True)
        self.show_text("", **{"model.attention": "hybrid", "model.full_attention_every": 2})
        self.assertIn("a single token has no next one", self.texts("#no-loss")[0])
        self.assertEqual(self.texts("#layer option"), ["layer 1"])
        self.assertEqual(self.texts("#map-title"), ["Layer 1, head 0"])


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: chromium not installed")
        sys.exit(77)
    support.main()
