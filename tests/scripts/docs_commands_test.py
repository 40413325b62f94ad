"""What the documentation tells people to type exists: commands and options of minillm and scripts/, config keys, files.

    docs_commands_test.py PROGRAM

Command lines are those of code blocks and of `inline code`. Lines of `minillm check` without placeholders are run, and
settings for a resume of a run of configs/ are checked with that config.
Files that a page tells to write need not be there. Words in capitals (DIR, CONFIG.toml) stand for something of the
reader's; paths with "your" in them too. The files that comments of sources, scripts and configs name are there as well.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("core|autograd|nn|optim|data|formats|generate|train|experiments|cli|configs|tests|examples|scripts|docs|"
           "cmake|.ci")
PATH = re.compile(rf"(?<![\w/.<-])(?:{FOLDERS.replace('.', '[.]')})/[\w./*<>{{}},-]+")
SOURCES = {".h": "//", ".cpp": "//", ".inc": "//", ".toml": "#", ".py": "#", ".cmake": "#", ".txt": "#", ".sh": "#",
           "": "#"}
PROGRAM = None


def code_of(text):
    """(line number, line) of every line of a code block and every `inline code`; the map has a test of its own."""
    text = re.sub(r"<!-- map:.*?<!-- end of map -->", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line.strip()
        else:
            for inline in re.findall(r"`([^`]+)`", line):
                yield number, inline


def words_of(line):
    """The words of a command line, up to its comment, pipe or redirection."""
    line = re.split(r"\s+(?:#|\||>|&&|2>)", line.replace("\\|", "/"))[0]
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def is_placeholder(word):
    name = re.sub(r"[^A-Za-z]", "", word.split(".")[0].split("/")[0])
    return (name.isupper() and len(name) > 1) or "..." in word or "your" in word


class Program:
    def __init__(self, path):
        self.path = path
        self.options = {}
        overview = self.run("--help").stdout
        for command in re.findall(r"^  ([a-z][a-z-]+) {2,}", overview, re.M):
            usage = self.run(command, "--help").stdout.split("Example")[0]
            self.options[command] = set(re.findall(r"--[a-z][a-z-]*", usage))
        config = json.loads(self.run("check", "configs/baseline.toml", "--json").stdout)["config"]
        self.keys = {f"{section}.{key}" for section, values in config.items() for key in values}

    def run(self, *words):
        return subprocess.run([self.path, *words], cwd=ROOT, capture_output=True, text=True, check=False)

    def fault(self, words):
        """What is wrong with a command line, or None."""
        if not words or words[0] in ("--help", "--version", "help") or is_placeholder(words[0]):
            return None
        command, *rest = words
        if command not in self.options:
            return f"no command {command}"
        for word in rest:
            option = word.strip("[]").split("=")[0]
            if option.startswith("--") and option not in self.options[command] | {"--help"}:
                return f"{command} has no option {option}"
            if re.match(r"^\[?(model|data|optim|train|run)\.\w+=", word) and option not in self.keys:
                return f"no config key {option}"
        if command == "train" and "--resume" in rest:
            return self.fault_of_resume(rest)
        if command == "check" and rest and not any(is_placeholder(word) or word.startswith("[") for word in rest):
            done = self.run(*words)
            if done.returncode != 0:
                return f"exit status {done.returncode}: {done.stderr.strip()}"
        return None


    def fault_of_resume(self, words):
        """train --resume runs/NAME train.steps=N can only make the run longer that the config NAME describes."""
        run = next(iter(words[words.index("--resume") + 1:]), "")
        config = ROOT / "configs" / f"{pathlib.PurePath(run).name}.toml"
        if not (run.startswith("runs/") and config.is_file()):
            return None
        settings = [word for word in words if re.match(r"\w+\.\w+=", word)]
        trained, asked = (self.run("check", config, *more, "--json") for more in ([], settings))
        if asked.returncode != 0:
            return f"exit status {asked.returncode}: {asked.stderr.strip()}"
        steps, wanted = (json.loads(done.stdout)["config"]["train"]["steps"] for done in (trained, asked))
        if any(word.startswith("train.steps=") for word in settings) and wanted <= steps:
            return f"train.steps={wanted} does not make {run} longer, which has {steps} steps"
        return None


def script_fault(words):
    """The same for a script of ours: it is there, can be run, and knows each option."""
    script = ROOT / words[0]
    if not script.is_file():
        return f"no {words[0]}"
    text = script.read_text(encoding="utf-8")
    for word in words[1:]:
        option = re.match(r"\[?(--[a-z][a-z-]*)", word)
        if option and option.group(1) not in text and not re.search(r"argparse[\s\S]*f'--\{name\}'", text):
            return f"{words[0]} has no option {option.group(1)}"
    return None


def commands_of(text):
    """(line number, "minillm" or "script", words) of every command line."""
    for number, line in code_of(text):
        line = re.sub(r"^\$ ", "", line)
        found = re.match(r"^(?:[A-Z_]+=\S+ )*(?:build/\w+/)?minillm (?=[a-z-])(.*)$", line)
        if found:
            yield number, "minillm", words_of(found.group(1))
        elif re.match(r"^scripts/[\w./]+", line):
            yield number, "script", words_of(line)


def paths_of(text):
    for number, line in enumerate(text.splitlines(), 1):
        for path in PATH.findall(line):
            path = path.rstrip(".,")
            if not re.search(r"[*<>{}]|your|\.\.\.", path):
                yield number, path


def comments_of(name, text):
    """The text with everything blanked but its comments, and a Python file's docstrings; lines stay where they are."""
    mark = SOURCES[pathlib.PurePath(name).suffix]
    docstring = r'|"""(?P<kept>.*?)"""' if mark == "#" else ""
    # A string is taken whole, so that a mark inside it begins no comment. A # inside a word of a shell is no comment.
    tokens = re.compile(rf'(?P<comment>(?<!\S){mark}[^\n]*){docstring}|"(?:\\.|[^"\\\n])*"', re.S)
    kept = [" "] * len(text)
    for token in tokens.finditer(text):
        if token.lastgroup:
            kept[token.start():token.end()] = token.group()
    return "".join("\n" if old == "\n" else new for old, new in zip(text, kept))


def missing_in_comments(name, text):
    return [f"{name}:{number}: no {path}" for number, path in paths_of(comments_of(name, text))
            if not (ROOT / path).exists()]


def places_of(text):
    """(line number, source, its line, pattern) of every place that the recorded session shows: the line where it
    stopped, the call of the frame above in a backtrace, the op that a node of the tape was made for."""
    ops = set(re.findall(r"^Var (\w+)\(", (ROOT / "autograd" / "ops.h").read_text(encoding="utf-8"), re.M))
    called = stopped_in = None
    for number, line in enumerate(text.splitlines(), 1):
        frame = re.match(r"(?:Breakpoint, |#(\d+) +)?([^`(]\S*.*?)(?:<.*>)? [.]{3} at (\S+):(\d+)$", line)
        shown = re.match(r"(\d+) {2,}(\S.*)$", line)
        node = re.match(r" *#\d+  (\w+) .* (\S+):(\d+)$", line)
        if frame:
            depth, name, path, at = frame.groups()
            stopped_in = path, at
            if depth not in (None, "0"):
                yield number, path, int(at), rf"\b{called}(?:<\w+>)?\("
            called = re.search(r"[\w~]+$", re.sub(r"<[^<>]*>", "", name)).group()
        elif shown and stopped_in:
            yield number, stopped_in[0], int(shown.group(1)), rf"^\s*{re.escape(shown.group(2))}$"
        elif node and node.group(1) in ops:
            yield number, node.group(2), int(node.group(3)), rf"\b{node.group(1)}(?:<\w+>)?\("


def stale_places(page, text):
    found = []
    for number, path, at, pattern in places_of(text):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        if not (at <= len(lines) and re.search(pattern, lines[at - 1])):
            found.append(f"{page}:{number}: {path}:{at} is not {pattern}; scripts/gdb/tour.py --write records it again")
    return found


def made_by(text):
    """Files that a page tells to write: "In `PATH`:" in front of a block."""
    return set(re.findall(r"\bIn `([\w./]+)`:\n\n```", text))


class DocsCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = Program(PROGRAM)

    def faults(self, page, text):
        found = []
        for number, kind, words in commands_of(text):
            fault = self.program.fault(words) if kind == "minillm" else script_fault(words)
            if fault:
                found.append(f"{page}:{number}: {fault}")
        made = made_by(text)
        for number, path in paths_of(text):
            if path not in made and not (ROOT / path).exists():
                found.append(f"{page}:{number}: no {path}")
        prose = re.sub("^```.*?^```$", lambda block: "\n" * block.group().count("\n"), text, flags=re.M | re.S)
        for number, line in enumerate(prose.splitlines(), 1):
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", line):
                if not ((ROOT / page).parent / target).exists():
                    found.append(f"{page}:{number}: no {target}")
        return found

    def test_pages(self):
        counted = 0
        for path in PAGES:
            text = path.read_text(encoding="utf-8")
            counted += len(list(commands_of(text)))
            self.assertEqual(self.faults(str(path.relative_to(ROOT)), text), [])
        self.assertGreater(counted, 40, "command lines found in all pages")

    def test_states_of_a_checkpoint(self):
        """Each /state/NAME of the page is one that a source of train/ writes or reads."""
        page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
        names = set(re.findall(r"`/state/(\w+)`", page))
        self.assertGreater(len(names), 8)
        sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "train").glob("*.cpp"))
        self.assertEqual([name for name in sorted(names) if f'"{name}"' not in sources], [])

    def test_every_command_has_an_example_in_each_readme(self):
        for name in ("README.md", "README.zh.md"):
            text = (ROOT / name).read_text(encoding="utf-8")
            told = {words[0] for _, kind, words in commands_of(text) if kind == "minillm" and words}
            self.assertEqual(set(self.program.options) - told, set(), name)

    def test_lines_of_a_recorded_session(self):
        text = (ROOT / "docs" / "step_through.md").read_text(encoding="utf-8")
        places = list(places_of(text))
        stops = re.findall(r"^\(gdb\) tbreak ([\w/.]+):(\d+)", text, re.M)
        self.assertGreaterEqual(len(stops), 10)
        self.assertLessEqual({(path, int(at)) for path, at in stops}, {place[1:3] for place in places})
        self.assertEqual(stale_places("docs/step_through.md", text), [])
        for _, path, at, pattern in places:
            is_shown = pattern.startswith("^")
            old = rf"(?m)^{at}( +\S)" if is_shown else rf"({re.escape(path)}):{at}\b"
            moved = [re.sub(old, rf"{line}\1" if is_shown else rf"\1:{line}", text) for line in (at - 1, at + 1)]
            self.assertTrue(any(stale_places("page", page) for page in moved), f"{path}:{at}")

    def test_pages_show_the_same_session(self):
        pages = [(ROOT / "docs" / name).read_text(encoding="utf-8")
                 for name in ("step_through.md", "step_through.zh.md")]
        fenced = [re.findall(r"^```.*?^```$", text, re.M | re.S) for text in pages]
        self.assertGreater(len(fenced[0]), 10)
        self.assertEqual(fenced[0], fenced[1])

    def test_launch_files(self):
        starts, tasks = (json.loads((ROOT / ".vscode" / name).read_text(encoding="utf-8"))
                         for name in ("launch.json", "tasks.json"))
        self.assertEqual([start["name"] for start in starts["configurations"]], ["tiny", "a test", "attach"])
        labels = {task["label"] for task in tasks["tasks"]}
        for start in starts["configurations"]:
            self.assertIn(start.get("preLaunchTask", "build step"), labels)
            for path in re.findall(r"\$\{workspaceFolder\}/(scripts[^\"\\\\]*)", json.dumps(start)):
                self.assertTrue((ROOT / path).is_file(), path)
        command, *words = starts["configurations"][0]["args"]
        self.assertIsNone(self.program.fault([command, *words]))
        self.assertIsNone(self.program.fault(["check", *(word for word in words if "=" in word or ".toml" in word)]))
        floors = {choice["id"]: choice["options"] for choice in starts["inputs"] if "options" in choice}["floor"]
        self.assertEqual([floor for floor in floors if not list((ROOT / "tests" / floor).glob("*_test.cpp"))], [])

    def test_files_named_in_comments(self):
        counted = 0
        for folder in FOLDERS.split("|"):
            for path in sorted((ROOT / folder).rglob("*")):
                name = str(path.relative_to(ROOT))
                if not path.is_file() or path.suffix not in SOURCES or "__pycache__" in name:
                    continue
                text = path.read_text(encoding="utf-8")
                counted += len(list(paths_of(comments_of(name, text))))
                self.assertEqual(missing_in_comments(name, text), [])
        self.assertGreater(counted, 50, "files named in all comments")

    def test_faults_in_comments_are_found(self):
        quotes = '"' * 3
        for name, text in (("a.h", "int a;  // see docs/nothing.md"), ("a.cpp", "/// core/nothing.h:\n"),
                           ("a.toml", "a = 1  # as in configs/nothing.toml"), ("scripts/a", "run  # docs/nothing.md"),
                           ("a.py", quotes + "Of scripts/nothing." + quotes)):
            self.assertEqual(len(missing_in_comments(name, text)), 1, text)
        for name, text in (("a.cpp", 'f("docs/nothing.md // docs/nothing.md");  // docs/formats.md'),
                           ("a.py", "f('docs/nothing.md')"), ("a.sh", "${a#docs/nothing.md}")):
            self.assertEqual(missing_in_comments(name, text), [], text)

    def test_faults_are_found(self):
        for line in ("minillm trian configs/tiny.toml", "minillm train --resum DIR", "minillm eval RUN --nothing",
                     "minillm train CONFIG.toml optim.learning=1",
                     "minillm train --resume runs/quickstart train.steps=500",
                     "minillm train --resume runs/quickstart optim.lr=-1",
                     "minillm check configs/baseline.toml model.n_heads=7", "scripts/test.sh --nothing",
                     "scripts/nothing", "configs/nothing.toml", "docs/nothing.md"):
            self.assertGreaterEqual(len(self.faults("page", f"`{line}`")), 1, line)
            self.assertGreaterEqual(len(self.faults("page", f"```\n$ {line}\n```")), 1, line)
        self.assertEqual(len(self.faults("page", "[x](nothing.md)")), 1)
        good = "minillm train CONFIG.toml [section.key=value]... [--out DIR]   # a comment --nothing"
        self.assertEqual(self.faults("page", f"```\n{good}\n```"), [])
        for good in ("train --resume runs/quickstart train.steps=721", "train --resume runs/mine train.steps=1"):
            self.assertEqual(self.faults("page", f"`minillm {good}`"), [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
