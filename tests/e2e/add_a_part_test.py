"""docs/add_a_part.md, followed: the part on the page is compiled into the program by the two lines that the page adds,
counts what its config says, passes the gradient check and learns."""
import json
import pathlib
import re
import shutil
import subprocess

import support

PAGE = support.ROOT / "docs" / "add_a_part.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


class AddAPart(support.Case):
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

    def compile(self, source):
        """Compiles a file as nn/norm.cpp is compiled, and in its place where it has that name; returns the object."""
        original = support.ROOT / "nn" / "norm.cpp"
        unit, command = self.unit_of(original)
        if source.name == original.name and unit != original:
            text = unit.read_text().replace(str(original), str(source))
            source = self.folder / unit.name
            source.write_text(text)
        compiled = self.folder / (source.stem + ".o")
        command = re.sub(r"-o \S+ -c \S+", f"-o {compiled} -c {source}", command)
        command = re.sub(r" -O[\dg]| -g\d", " -O0", command)  # a whole folder in a unity build, to run for seconds
        subprocess.run(command, shell=True, check=True, cwd=self.build, capture_output=True)
        return compiled

    def setUp(self):
        super().setUp()
        self.build = pathlib.Path(support.PROGRAM).parent
        if shutil.which("ninja") is None or not (self.build / "build.ninja").exists():
            self.skipTest("the build is not Ninja's")

    def test_the_page(self):
        part, declaration, row = blocks("cpp")
        name = re.search(r"named `(\w+\.cpp)`:", PAGE.read_text()).group(1)
        (self.folder / name).write_text(part)
        table = (support.ROOT / "nn" / "norm.cpp").read_text()
        start = "constexpr NormKind norm_table[] = {\n"
        self.assertEqual(table.count(f"namespace {{\n\n{start}"), 1)
        (self.folder / "norm.cpp").write_text(
            table.replace(f"namespace {{\n\n{start}", f"{declaration}\nnamespace {{\n\n{start}{row}"))
        objects = [self.compile(self.folder / file) for file in (name, "norm.cpp")]
        program = self.folder / "minillm"
        link = self.commands("minillm")[-1]
        link = re.sub(r"-o minillm ", f"-o {program} {' '.join(map(str, objects))} ", link)
        subprocess.run(link, shell=True, check=True, cwd=self.build, capture_output=True)

        config = self.folder / "configs" / "ablations" / "new.toml"
        config.parent.mkdir(parents=True)
        shutil.copy(support.ROOT / "configs" / "baseline.toml", config.parent.parent)
        config.write_text(blocks("toml")[0])
        counted = subprocess.run([program, "check", config, "--json"], capture_output=True, text=True, check=True)
        stated = int(re.search(r"([\d,]+) parameters", config.read_text()).group(1).replace(",", ""))
        self.assertEqual(json.loads(counted.stdout)["parameters"], stated)
        checked = subprocess.run([program, "gradcheck", config], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        small = self.config("run", train__steps=40, train__eval_every=0)
        subprocess.run([program, "train", small, "--out", "run", "model.norm=mean_abs_norm"], check=True,
                       cwd=self.folder, env=support.ENVIRONMENT, capture_output=True)
        losses = self.losses("run")
        self.assertLess(losses[-1], losses[0] - 0.3)


if __name__ == "__main__":
    support.main()
