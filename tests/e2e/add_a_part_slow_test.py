"""docs/add_a_part.md, followed: the part on the page is compiled into the program by the two lines that the page adds,
counts what its config says, passes the gradient check and learns."""
import json
import re
import shutil
import subprocess

import page_support
import support

PAGE = support.ROOT / "docs" / "add_a_part.md"


class AddAPart(page_support.Case):
    def test_the_page(self):
        part, declaration, row = page_support.blocks(PAGE, "cpp")
        name = re.search(r"named `(\w+\.cpp)`:", PAGE.read_text()).group(1)
        (self.folder / name).write_text(part)
        table = (support.ROOT / "nn" / "norm.cpp").read_text()
        start = "constexpr NormKind norm_table[] = {\n"
        self.assertEqual(table.count(f"namespace {{\n\n{start}"), 1)
        (self.folder / "norm.cpp").write_text(
            table.replace(f"namespace {{\n\n{start}", f"{declaration}\nnamespace {{\n\n{start}{row}"))
        objects = [self.compile(self.folder / file, "nn/norm.cpp") for file in (name, "norm.cpp")]
        program = self.folder / "minillm"
        link = self.commands("minillm")[-1]
        link = re.sub(r"-o minillm ", f"-o {program} {' '.join(map(str, objects))} ", link)
        self.run_shell(link)

        config = self.folder / "configs" / "ablations" / "new.toml"
        config.parent.mkdir(parents=True)
        shutil.copy(support.ROOT / "configs" / "baseline.toml", config.parent.parent)
        config.write_text(page_support.blocks(PAGE, "toml")[0])
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
