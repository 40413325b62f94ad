"""What a build must not be: without the checks for NaN (B05), or with two OpenMP runtimes in one process (B03)."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import support


class Build(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cmake"), "cmake is not there")
    def test_fast_math_is_refused(self):
        for flags in ("-ffast-math", "-O2 -Ofast", "-ffinite-math-only"):
            with self.subTest(flags), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(["cmake", "--preset", "release", "-B", folder, f"-DCMAKE_CXX_FLAGS={flags}"],
                                      cwd=support.ROOT, env={**os.environ, "CXXFLAGS": ""}, capture_output=True,
                                      text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{flags.split()[-1]}: -ffast-math and its parts remove the checks for NaN", done.stderr)

    @unittest.skipUnless(shutil.which("ldd"), "ldd is not there")
    def test_one_openmp_runtime(self):
        runtimes = [name for name in ("libgomp", "libomp", "libiomp5") if name + ".so" in support.libraries()]
        self.assertLessEqual(len(runtimes), 1)

    def test_a_second_openmp_runtime_is_refused(self):
        libraries = support.libraries()
        if "libomp" not in libraries and "libgomp" not in libraries:
            self.skipTest("built without OpenMP: any runtime would be the only one")
        others = [] if "libomp" in libraries else glob.glob("/usr/lib/*/libomp.so.5")
        others += [] if "libgomp" in libraries else glob.glob("/usr/lib/*/libgomp.so.1")
        if not others or "libasan" in libraries:
            self.skipTest("no other OpenMP runtime is installed, or the sanitizer must be loaded first")
        done = subprocess.run([support.PROGRAM, "--version"], env={**os.environ, "LD_PRELOAD": others[0]},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("two OpenMP runtimes", done.stderr)
        self.assertIn(os.path.basename(others[0]), done.stderr)


if __name__ == "__main__":
    support.main()
