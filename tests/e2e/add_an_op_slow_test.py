"""docs/add_an_op.md, followed: the page's code is put where the page says, compiled and linked, and its tests
pass. With a factor planted in the backward they do not."""
import re
import shutil
import subprocess

import page_support
import support

PAGE = support.ROOT / "docs" / "add_an_op.md"


class AddAnOp(page_support.Case):
    def apply_page(self):
        """The files of the page in a copy of the tree's folders that they belong to; returns the copy, the new
        sources."""
        copy = self.folder / "tree"
        for folder in ("core", "autograd", "tests/autograd", "tests/support"):
            shutil.copytree(support.ROOT / folder, copy / folder)
        new = []
        for paragraph, block in re.findall(r"((?:[^\n]+\n)+)\n```cpp\n(.*?)^```$", PAGE.read_text(encoding="utf-8"),
                                           re.M | re.S):
            where, line = re.search(r"[Ii]n `([\w/.]+)`(?:, behind the line `(.*)`)?:$", " ".join(paragraph.split())
                                    ).groups()
            path = copy / where
            if line is None:
                self.assertFalse(path.exists(), where)
                path.write_text(block, encoding="utf-8")
                new.append(path)
            else:
                before = path.read_text(encoding="utf-8")
                self.assertEqual(before.count(f"{line}\n"), 1, f"{where}: {line}")
                path.write_text(before.replace(f"{line}\n", f"{line}\n{block}"), encoding="utf-8")
        return copy, new

    def test_the_page(self):
        copy, new = self.apply_page()
        names = [str(path.relative_to(copy)) for path in new]
        self.assertEqual(names, ["core/kernels/softcap.h", "core/kernels/softcap_reference.cpp",
                                 "core/kernels/softcap.cpp", "autograd/ops/softcap.cpp",
                                 "tests/autograd/softcap_test.cpp"])
        like = {"core": "core/kernels/softmax.cpp", "autograd": "autograd/ops/softmax.cpp",
                "tests": "tests/autograd/tape_test.cpp"}
        objects = {}
        for path, name in zip(new[1:], names[1:]):
            # Two files are called softcap.cpp: an object is named after its source.
            source = copy / name.replace("/", "_")
            shutil.copy(path, source)
            objects[name] = self.compile(source, like[name.split("/")[0]], copy)
        objects["op_phase"] = self.compile(copy / "autograd" / "op_phase.cpp", "autograd/op_phase.cpp", copy)
        passed = self.run_tests(objects)
        self.assertRegex(passed, r"test cases: +4 \| +4 passed \| 0 failed")

        reference = copy / "core_kernels_softcap_reference.cpp"
        text = reference.read_text()
        self.assertEqual(text.count("dy[i] * slope"), 1)
        reference.write_text(text.replace("dy[i] * slope", "2 * dy[i] * slope"))
        objects["core/kernels/softcap_reference.cpp"] = self.compile(reference, like["core"], copy)
        failed = self.run_tests(objects)
        self.assertIn("result.error < 1e-6", failed)
        self.assertIn("passed | 2 failed", re.sub(" +", " ", failed))

    def run_tests(self, objects):
        """Links the objects as the tests of autograd are linked, and returns what the program says."""
        link = self.commands("tests/test_autograd")[-1]
        own = re.findall(r"tests/CMakeFiles/test_autograd\.dir/\S+\.o", link)
        link = link.replace(own[0], " ".join(map(str, objects.values())))
        for other in own[1:]:
            link = link.replace(f" {other}", "")
        program = self.folder / "test_softcap"
        self.run_shell(link.replace("-o tests/test_autograd ", f"-o {program} "))
        return subprocess.run([program], capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    support.main()
