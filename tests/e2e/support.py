"""What the tests of the whole program share: running it, small configs, comparing runs bit for bit.

A test file is run as  <name>_test.py PROGRAM CHECKPOINT_DIGEST [unittest's arguments]  and ends with support.main().
"""
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ""
DIGEST = ""

# More threads than free cores must not spin while they wait for each other; bits do not depend on it.
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive"}

# A step takes a fraction of a millisecond.
TINY = {
    "model.d_model": 16, "model.n_layers": 2, "model.n_heads": 2, "model.d_ff": 24,
    "data.path": "synthetic", "data.seq_len": 16,
    "optim.warmup_steps": 2, "optim.lr": 0.01,
    "train.steps": 12, "train.batch_size": 4, "train.eval_tokens": 256, "train.threads": 1,
}


def toml_value(value):
    return json.dumps(value)  # numbers, booleans and plain strings are written alike


def words(settings):
    """Settings as plain words of a command line."""
    return [f"{key}={value if isinstance(value, str) else toml_value(value)}" for key, value in settings.items()]


def last_lines(text, count=12):
    return "\n".join(text.splitlines()[-count:])


def libraries():
    """The program's shared libraries, as ldd lists them; "" where there is no ldd."""
    if shutil.which("ldd") is None:
        return ""
    return subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout


def data_of(page):
    """What a page's scripts read."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def new_folder():
    # Memory is where a hundred saves cost nothing; a disk works as well.
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return pathlib.Path(tempfile.mkdtemp(prefix="minillm-e2e-", dir=parent))


def cpu_seconds_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def limit_file_size(size):
    """Options of subprocess.run: files may grow to `size` bytes, which is what a full disk looks like without
    privileges."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}


class Case(unittest.TestCase):
    """A test with a folder of its own, which is the current folder of every program it runs."""
    cpu_seconds = None  # a bound for one run of the program in processor time, which other processes do not change

    def setUp(self):
        self.folder = new_folder()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    # --- running -----------------------------------------------------------------------------------------------------

    def run_program(self, *arguments, status=0, **options):
        """Runs the program to its end; any other exit status than `status` fails the test. None: any but a signal's."""
        before = cpu_seconds_of_children()
        given = {} if "input" in options else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([PROGRAM, *map(str, arguments)],
                              **{"cwd": self.folder, "env": ENVIRONMENT, **given, "stdout": subprocess.PIPE,
                                 "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "surrogateescape",
                                 "timeout": 600, "check": False, **options})
        cpu_seconds = cpu_seconds_of_children() - before
        words = f"minillm {' '.join(map(str, arguments))}\n{last_lines(done.stderr)}"
        if status is None:
            self.assertGreaterEqual(done.returncode, 0, words)
        else:
            self.assertEqual(done.returncode, status, words)
        if self.cpu_seconds is not None:
            self.assertLess(cpu_seconds, self.cpu_seconds, words)
        return done

    def start_program(self, *arguments):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, env=ENVIRONMENT,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_process, process)
        return process

    @staticmethod
    def end_process(process):
        process.kill()
        process.wait()
        process.stderr.close()

    def refused(self, *arguments, status=2, **options):
        """The single message of a run that must be refused, to its end; nothing is on standard output."""
        done = self.run_program(*arguments, status=status, **options)
        self.assertEqual(done.stdout, "")
        starts = [match.start() for match in re.finditer(r"^error: ", done.stderr, re.M)]
        self.assertEqual(len(starts), 1, done.stderr)
        message = done.stderr[starts[0]:].rstrip("\n")
        self.assertNotRegex(message, r"std::|terminate|HDF5-DIAG|\x1b")
        return message

    def as_somebody(self):
        """Options of subprocess.run under which permissions bind, also for root."""
        if os.geteuid() != 0:
            return {}
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            subprocess.run([PROGRAM, "--version"], capture_output=True, check=True, cwd="/", **options)
        except (OSError, subprocess.SubprocessError):
            self.skipTest("the program is in a folder that only root can enter")
        return options

    def config(self, name="run", base=None, **settings):
        """Writes <name>.toml from TINY and what differs ("model__d_ff": 8 is model.d_ff = 8); returns its name."""
        values = dict(TINY if base is None else base)
        values.update({key.replace("__", "."): value for key, value in settings.items()})
        sections = {}
        for key, value in values.items():
            section, name_in_section = key.split(".")
            sections.setdefault(section, []).append(f"{name_in_section} = {toml_value(value)}")
        text = "\n".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())
        (self.folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return f"{name}.toml"

    def train(self, out, base=None, status=0, **settings):
        """A whole run in folder `out`; returns it."""
        self.run_program("train", self.config(out, base, **settings), "--out", out, status=status)
        return out

    # --- looking -----------------------------------------------------------------------------------------------------

    def path(self, run, *parts):
        return self.folder.joinpath(run, *parts)

    def lines(self, run):
        """metrics.jsonl without what differs from run to run: the speed."""
        text = self.path(run, "metrics.jsonl").read_text(encoding="utf-8")
        self.assertTrue(text == "" or text.endswith("\n"), "the last line is not whole")
        return [re.sub(r',"tokens_per_s":[^}]*', "", line) for line in text.splitlines()]

    def metrics(self, run):
        return [json.loads(line) for line in self.lines(run)]

    def losses(self, run):
        return [line["loss"] for line in self.metrics(run) if "loss" in line]

    def evaluations(self, run):
        return [(line["step"], line["val_loss"]) for line in self.metrics(run) if "val_loss" in line]

    def checkpoints(self, run):
        """The steps of a run's checkpoints, ascending."""
        names = os.listdir(self.path(run, "checkpoints"))
        return sorted(int(name[5:-3]) for name in names if re.fullmatch(r"step_\d{6,}\.h5", name))

    def checkpoint(self, run, step=None):
        step = self.checkpoints(run)[-1] if step is None else step
        return self.path(run, "checkpoints", f"step_{step:06}.h5")

    def digest(self, run, step=None):
        """Step, hashes of weights and moments, finiteness of a checkpoint; the newest one by default."""
        return self.digest_of(self.checkpoint(run, step))

    @staticmethod
    def digest_of(path):
        done = subprocess.run([DIGEST, str(path)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def json_of(self, *arguments):
        """The one object that --json prints."""
        done = self.run_program(*arguments, "--json")
        self.assertEqual(done.stdout.count("\n"), 1, "one object and nothing else")
        return json.loads(done.stdout)

    # --- comparing ---------------------------------------------------------------------------------------------------

    def assert_same_lines(self, run, expected):
        """Names the first line that differs; unittest's own comparison of long lists takes minutes."""
        ours, theirs = self.lines(run), self.lines(expected)
        for number, (one, other) in enumerate(zip(ours, theirs), 1):
            if one != other:
                self.fail(f"{run}/metrics.jsonl:{number}: {one}\nexpected: {other}")
        self.assertEqual(len(ours), len(theirs))

    def assert_same_run(self, run, expected):
        """Metrics, weights and moments are equal bit for bit, and nothing is left over."""
        self.assert_same_lines(run, expected)
        self.assertEqual(self.digest(run), self.digest(expected))
        self.assert_clean(run)

    def assert_clean(self, run):
        left = [name for folder in (run, f"{run}/checkpoints") for name in os.listdir(self.path(folder))
                if ".tmp" in name]
        self.assertEqual(left, [])

    def assert_each_step_once(self, run):
        seen = [(line["step"], "loss" in line) for line in self.metrics(run)]
        self.assertEqual(len(seen), len(set(seen)), "metrics.jsonl holds a step twice")

    def wait_for(self, condition, process=None, seconds=120):
        """Waits until condition() or the end of the process; whether the condition came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if process is not None and process.poll() is not None:
                return condition()
            time.sleep(0.0005)
        self.fail("waited in vain")
        return False

    def metrics_size(self, run):
        try:
            return os.path.getsize(self.path(run, "metrics.jsonl"))
        except FileNotFoundError:
            return 0


def main():
    global PROGRAM, DIGEST
    PROGRAM, DIGEST = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
