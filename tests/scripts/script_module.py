"""Loads a script that has no .py behind its name as a module, as tests of its parts need it, and runs it with a program
that only pretends."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    sys.dont_write_bytecode = True  # scripts/ stays as it is
    sys.path.insert(0, str(ROOT / "scripts"))
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


class PretendCase(unittest.TestCase):
    """A test of a script that runs minillm: SCRIPT is its module, PROGRAM the text of a program in minillm's place,
    which lies in a folder of the test's own."""
    SCRIPT = None
    PROGRAM = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "minillm"
        self.program.write_text(self.PROGRAM)
        self.program.chmod(0o755)

    def run_script(self, *arguments):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        command = [self.SCRIPT.__name__, "--minillm", str(self.program), *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = self.SCRIPT.main()
            except SystemExit as stop:
                status = stop.code
        return status, out.getvalue(), err.getvalue()
