"""What a build for this machine alone (-DMINILLM_NATIVE=ON) says on a processor that lacks something (B04).

valgrind is that processor: it does not offer AVX-512 and ends the program at the first such instruction.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import support


def cache_entry(name):
    """The value of a variable of the build the program comes from; "" where there is none."""
    cache = pathlib.Path(support.PROGRAM).parent / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.exists() else ""
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.M)
    return found.group(1) if found else ""


def cpu_flags():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    found = re.search(r"^flags\s*:(.*)$", text, re.M)
    return found.group(1).split() if found else []


class NativeBuild(unittest.TestCase):
    def setUp(self):
        if cache_entry("MINILLM_NATIVE") != "ON" or cache_entry("MINILLM_SANITIZE"):
            self.skipTest("not a native build without sanitizers")

    def test_it_runs_where_it_was_built(self):
        done = subprocess.run([support.PROGRAM, "--version"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("valgrind") and shutil.which("strip"), "valgrind or strip is not there")
    @unittest.skipUnless("avx512f" in cpu_flags(), "this processor has no AVX-512, so valgrind lacks nothing")
    def test_a_processor_without_avx512_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "minillm")
            # Without debug information: valgrind 3.19 gives up on what Clang 14 writes.
            subprocess.run(["strip", "-g", "-o", program, support.PROGRAM], check=True)
            done = subprocess.run(["valgrind", "--quiet", "--tool=none", program, "--version"], capture_output=True,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aerror: start: this program was built for another processor; found a CPU "
                                      r"without avx512f, [a-z0-9, ]*; build it on this machine, or with the release "
                                      r"preset\n\Z")


if __name__ == "__main__":
    support.main()
