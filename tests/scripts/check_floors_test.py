"""scripts/check_floors finds each planted fault, at its line, and nothing in a clean tree."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_floors"
sys.dont_write_bytecode = True  # scripts/ stays as it is
LOADER = importlib.machinery.SourceFileLoader("check_floors", str(SCRIPT))
CHECK_FLOORS = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_floors", LOADER))
LOADER.exec_module(CHECK_FLOORS)

HEADER = "#pragma once\n"


def run(files):
    """(exit status, standard output) of check_floors on a tree made of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["check_floors", "--root", folder]):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                status = CHECK_FLOORS.main()
        return status, out.getvalue()


class CheckFloors(unittest.TestCase):
    def assert_finds(self, path, text, place, words):
        status, out = run({path: text})
        self.assertEqual(status, 1, out)
        self.assertIn(f"{path}:{place}:", out)
        self.assertIn(words, out)

    def assert_clean(self, path, text):
        status, out = run({path: text})
        self.assertEqual(status, 0, out)

    def test_include_that_climbs(self):
        self.assert_finds("core/a.cpp", '#include "core/b.h"\n#include "autograd/tape.h"\n', 2, "climbs")
        self.assert_finds("core/kernels/a.cpp", '#include "autograd/ops.h"\n', 1, "climbs")
        self.assert_finds("autograd/ops/a.cpp", '#  include "nn/module.h"\n', 1, "climbs")
        self.assert_finds("tests/core/a_test.cpp", '#include "autograd/tape.h"\n', 1, "climbs")

    def test_siblings(self):
        self.assert_finds("nn/a.h", HEADER + '#include "optim/adamw.h"\n', 2, "siblings")
        self.assert_finds("data/a.h", HEADER + '#include "nn/module.h"\n', 2, "siblings")

    def test_floors_with_a_narrow_view(self):
        self.assert_finds("optim/a.cpp", '#include "autograd/tape.h"\n', 1, "optim sees only")
        self.assert_finds("data/a.cpp", '#include "autograd/parameter.h"\n', 1, "data sees only")
        self.assert_clean("optim/a.cpp", '#include "autograd/parameter.h"\n#include "core/tensor.h"\n')

    def test_form_of_includes(self):
        self.assert_finds("core/a.cpp", '#include "../autograd/tape.h"\n', 1, "relative")
        self.assert_finds("core/a.cpp", '#include "tensor.h"\n', 1, "does not begin with a floor")
        self.assert_finds("core/a.cpp", "#include <core/tensor.h>\n", 1, "with quotes")
        self.assert_finds("core/a.cpp", '#include "core/b.cpp"\n', 1, ".cpp")

    def test_intrinsics(self):
        self.assert_finds("core/kernels/a.cpp", "#include <immintrin.h>\n", 1, "intrinsics")
        self.assert_finds("core/kernels/a.cpp", "\n__m256 x = _mm256_setzero_ps();\n", 2, "intrinsics")
        self.assert_finds("core/a.cpp", '__attribute__((target_clones("avx2"))) void f();\n', 1, "target_clones")
        self.assert_finds("core/parallel.cpp", "__m128 x;\n", 1, "intrinsics")
        self.assert_clean("core/kernels/vectors.h", HEADER + "#include <immintrin.h>\n__m256 x;\n")
        self.assert_finds("core/kernels/simd.h", HEADER + "__m256 x;\n", 2, "intrinsics")
        self.assert_clean("core/kernels/simd.h", HEADER + '__attribute__((target_clones("avx2"))) void f();\n')
        self.assert_clean("core/parallel.cpp", "#include <xmmintrin.h>\nint x = _mm_getcsr();\n")

    def test_heavy_headers(self):
        self.assert_finds("formats/a.h", HEADER + "#include <nlohmann/json.hpp>\n", 2, "heavy")
        self.assert_finds("train/a.h", HEADER + "#include <toml++/toml.h>\n", 2, "heavy")
        self.assert_finds("nn/a.cpp", "#include <hdf5.h>\n", 1, "belongs to")
        self.assert_clean("formats/a.cpp", "#include <nlohmann/json.hpp>\n")

    def test_private_headers(self):
        self.assert_finds("nn/a.cpp", '#include "autograd/op_support.h"\n', 1, "private")
        self.assert_finds("data/a.cpp", '#include "data/h5_support.h"\n', 1, "private")
        self.assert_clean("autograd/ops/a.cpp", '#include "autograd/op_support.h"\n')
        self.assert_clean("data/h5_support.h", HEADER + "#include <hdf5.h>\n")
        self.assert_clean("tests/data/a_test.cpp", '#include "data/h5_support.h"\n#include "support.h"\n')

    def test_rules_of_the_source(self):
        self.assert_finds("core/a.cpp", "void f() { assert(true); }\n", 1, "assert")
        self.assert_finds("core/a.cpp", "#pragma omp parallel for reduction(+ : s)\n", 1, "reduction")
        self.assert_finds("core/a.cpp", "#pragma omp atomic\n", 1, "atomic")
        self.assert_finds("core/a.h", HEADER + "using namespace std;\n", 2, "using namespace")
        self.assert_finds("core/a.h", "int x;\n", 1, "#pragma once")
        self.assert_clean("core/a.cpp", "static_assert(true);\n")

    def test_length(self):
        self.assert_clean("core/a.cpp", "int x;\n" * 450)
        self.assert_finds("core/a.cpp", "int x;\n" * 451, 451, "lines")
        for script in ("scripts/a", "tests/e2e/a_test.py", ".ci/run", "cmake/a.cmake", "CMakeLists.txt"):
            self.assert_clean(script, "x\n" * 450)
            self.assert_finds(script, "x\n" * 451, 451, "lines")
            self.assert_clean(script, "é" * 120)
            self.assert_finds(script, "\n" + "x" * 121, 2, "columns")

    def test_pages(self):
        long_line = "x" * 121
        for page in ("README.md", "docs/a.md", "tests/golden/README.md"):
            self.assert_finds_in_page(page, f"\n{long_line}\n", 2)
            self.assert_finds_in_page(page, f"```\na\n```\n{long_line}\n", 4)
            for text in ("x" * 120, f"| {long_line} |", f"```\n{long_line}\n```\n"):
                self.assertEqual(run({page: text, "core/a.cpp": ""})[0], 0, text)

    def assert_finds_in_page(self, page, text, line):
        status, out = run({page: text, "core/a.cpp": ""})
        self.assertEqual(status, 1, out)
        self.assertIn(f"{page}:{line}: 121 columns", out)

    def test_comments_and_strings_are_not_code(self):
        self.assert_clean("core/a.cpp", '// #include "autograd/tape.h"\n/* assert(x)\n _mm_add_ps */\n'
                                        'const char* s = "assert(x) // _mm_add_ps"; int n = 1\'000\'000;\n')

    def test_an_empty_tree_is_an_error(self):
        status, _ = run({"README.md": ""})
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
