"""What tests of pages about adding something share: a page's blocks, and single files compiled as the build does."""
import json
import pathlib
import re
import shutil
import subprocess

import support


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


class Case(support.Case):
    def setUp(self):
        super().setUp()
        self.build = pathlib.Path(support.PROGRAM).parent
        if shutil.which("ninja") is None or not (self.build / "build.ninja").exists():
            self.skipTest("the build is not Ninja's")

    def commands(self, target):
        """The commands that make a target of the build that is tested."""
        done = subprocess.run(["ninja", "-C", self.build, "-t", "commands", target], capture_output=True, text=True,
                              check=True)
        return done.stdout.splitlines()

    def unit_of(self, path):
        """What compiles a source: the file itself, or in a unity build the one that includes it; and the command."""
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            unit = pathlib.Path(entry["file"])
            if unit == path or ("Unity" in unit.parts and f'"{path}"' in unit.read_text()):
                return unit, entry["command"]
        raise AssertionError(f"nothing compiles {path}")

    def compile(self, source, like, headers=None):
        """Compiles a file as the tree's file `like` is compiled, and in its place where it has that name; returns the
        object. `headers`: a folder whose headers go before the tree's."""
        original = support.ROOT / like
        unit, command = self.unit_of(original)
        if source.name == original.name and unit != original:
            text = unit.read_text().replace(str(original), str(source))
            source = self.folder / unit.name
            source.write_text(text)
        compiled = self.folder / (source.stem + ".o")
        command = re.sub(r"-o \S+ -c \S+", f"-o {compiled} -c {source}", command)
        command = re.sub(r" -O[\dg]| -g\d", " -O0", command)  # a whole folder in a unity build, to run for seconds
        if headers:
            command = command.replace(" -I", f" -I{headers} -I", 1)
        self.run_shell(command)
        return compiled

    def run_shell(self, command):
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
