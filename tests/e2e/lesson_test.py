"""minillm lesson: every lesson in both languages, whose numbers agree with each other and with the course's."""
import collections
import concurrent.futures
import re
import unicodedata

import support

# What must be printed, as it is printed; tests/experiments has the rest of each lesson's numbers.
EXPECTED = {
    "linear-fails": ["0.500"] * 12 + ["0.2500", "0.6931"],
    "two-neurons": ["1.000", "0.000", "0.000", "1.000"],
    "linear-collapse": ["2,097,152", "262,144"],
    "vanishing-gradient": ["2.0e-10", "4.9e+09"],
    "tokens-alike": ["1.0000"],
    "residual-on": ["10.0"],
    "residual-gradient": ["1.4889", "0.0000", "0.0000", "0.0000"],
    "stream-growth": ["3.00", "5.00", "11.36"],
    "stream-sum": ["8"],
    "batchnorm-zeros": ["0.0000"] * 6,
    "batchnorm-neighbours": ["0.0000"] * 4,
    "norm-invariance": ["-1.3416", "-0.4472", "0.3651", "1.4606", "0.8765", "1.1155"],
    "norm-scale": ["1.0000"] * 6 + ["0.3333"],
    "norm-per-layer": ["0.9986", "0.9987"],
    "zero-mean": ["0.0312"],
    "gain-decay": ["0.3679", "1.0000"],
    "gate-plane": ["99.995", "-0.2689"],
    "silu-gate": ["-0.2785", "-1.2785", "3.9281"],
    "overflow": ["99.995", "65504", "448", "0.5", "99.933"],
    "ffn-width": ["688", "22016", "21845.33", "17408", "3.4", "13653.33", "13824"],
    "per-token": ["0"] * 6,
    "ffn-neurons": ["96"],
    "ladder": ["4.0254"],
    "temperature": ["0.8668", "0.1173", "0.0159", "0.6652", "0.2447", "0.0900", "0.5065", "0.3072", "0.1863"],
}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# Train models, or read large ones: lesson_slow_test.py has them.
LONG = {"ladder", "silu-gate", "zero-mean", "norm-per-layer", "ffn-neurons", "stream-sum", "stream-growth"}
COLUMNS = 120  # of a terminal on which a lesson is read


def numbers_of(text):
    """Every number with how often it stands there; order may differ between languages."""
    return collections.Counter(number.rstrip(",") for number in NUMBER.findall(text))


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Lesson(support.Case):
    def listed(self):
        names = re.findall(r"^([a-z]+(?:-[a-z]+)*) +[A-Z]\d\d ", self.run_program("lesson").stdout, re.M)
        self.assertEqual(names, re.findall(r"^([a-z]+(?:-[a-z]+)*) +[A-Z]\d\d ",
                                           self.run_program("lesson", "--lang", "zh").stdout, re.M))
        return names

    def texts_of(self, name):
        return [self.run_program("lesson", name, "--lang", language, cwd=support.ROOT).stdout
                for language in ("en", "zh")]

    def test_lessons_in_both_languages(self):
        self.assertEqual(set(self.listed()), set(EXPECTED))
        self.check(sorted(set(EXPECTED) - LONG))

    def check(self, names):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            texts = dict(zip(names, pool.map(self.texts_of, names)))
        for name, (english, chinese) in texts.items():
            with self.subTest(name):
                self.assertNotEqual(english, chinese)
                self.assertRegex(english, "^Question: ")
                self.assertRegex(chinese, "^问题：")
                self.assertEqual(numbers_of(english) - numbers_of(chinese), {})
                self.assertEqual(numbers_of(chinese) - numbers_of(english), {})
                self.assertEqual(collections.Counter(EXPECTED[name]) - numbers_of(english), {})
                self.assertEqual(re.findall("nan|inf", english), [])
                for line in (english + chinese).splitlines():
                    self.assertLessEqual(width_of(line), COLUMNS, line)
                self.check_pointers(english, chinese)

    def check_pointers(self, english, chinese):
        """Where a lesson leads: to lessons there are, the same ones in both languages."""
        pointed = [set(re.findall(r"[a-z]+-[a-z]+(?:-[a-z]+)*", text)) & set(EXPECTED) for text in (english, chinese)]
        self.assertEqual(*pointed)
        for text in (english, chinese):
            for name in re.findall(r"(?:See|见) ([a-z][a-z-]+[a-z])", text):
                self.assertIn(name, EXPECTED)

    def test_the_page_has_every_lesson(self):
        page = (support.ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| ([a-z-]+) \| [A-Z]\d\d \|", page, re.M), self.listed())

    def test_picture(self):
        self.run_program("lesson", "gate-plane", "--svg", "plane.svg")
        drawn = self.path("plane.svg").read_text(encoding="utf-8")
        self.assertTrue(drawn.startswith("<svg ") and drawn.endswith("</svg>\n"))
        self.run_program("lesson", "d10", "--svg", "plane.svg", "--lang", "zh")
        self.assertEqual(self.path("plane.svg").read_text(encoding="utf-8"), drawn)

    def test_a_run_of_ones_own(self):
        run = self.train("run")
        for name in ("silu-gate", "norm-per-layer", "zero-mean", "ffn-neurons"):
            with self.subTest(name):
                self.assertIn("run/checkpoints/step_000012.h5, after 12 steps",
                              self.run_program("lesson", name, "--run", run).stdout)
        plain = self.train("plain", model__ffn="gelu", model__norm="none")
        for name, what in (("silu-gate", "no SiLU gate"), ("norm-per-layer", "no norm"), ("zero-mean", "no norm")):
            message = self.run_program("lesson", name, "--run", plain, status=2).stderr
            self.assertIn(what, message)
        mixture = self.train("mixture", model__ffn="moe")
        self.assertIn("no experts", self.run_program("lesson", "ffn-neurons", "--run", mixture, status=2).stderr)

    def test_wrong_words(self):
        for words, pattern in (
                (["gate-plan"], "did you mean gate-plane"),
                (["nothing-like-it"], "minillm lesson lists them"),
                (["gate-plane", "--lang", "fr"], "--lang.*en or zh"),
                (["temperature", "--svg", "t.svg"], "draws nothing.*gate-plane"),
                (["temperature", "--run", "runs/x"], "no trained model.*ffn-neurons"),
                (["--svg", "t.svg"], "lesson's name"),
                (["gate-plane", "--svg", "."], "folder|directory"),
                (["ffn-neurons", "--run", "nowhere"], "nowhere")):
            with self.subTest(words):
                done = self.run_program("lesson", *words, status=2)
                self.assertRegex(done.stderr, pattern)
                self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    support.main()
