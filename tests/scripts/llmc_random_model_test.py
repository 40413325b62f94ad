"""scripts/peers/llmc_random_model.py: a small model has the size that its header says, and wrong words end with 2."""
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "peers" / "llmc_random_model.py"


class RandomModel(unittest.TestCase):
    def run_script(self, *words):
        return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, words)], capture_output=True, text=True,
                              check=False)

    def test_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(self.run_script(folder, 2, 2, 8, 50, 16).returncode, 0)
            model = (folder / "gpt2_124M.bin").read_bytes()
            self.assertEqual(struct.unpack("<8i", model[:32]), (20240326, 3, 16, 50, 2, 2, 8, 128))
            self.assertEqual(len(model), 1024 + 4 * 8 * (128 + 16 + 2 * (12 * 8 + 13) + 2))
            tokens = (folder / "dev/data/tinyshakespeare/tiny_shakespeare_train.bin").read_bytes()
            ids = struct.unpack(f"<{len(tokens) // 2 - 512}H", tokens[1024:])
            self.assertEqual(len(ids), 300000)
            self.assertLess(max(ids), 50)

    def test_wrong_words(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_script().returncode, 2)
            for sizes, message in (("2 2", "2 sizes, expected LAYERS"), ("2 2 8 50 16 7", "6 sizes"),
                                   ("a 2 8 50 16", "invalid int"), ("2 3 8 50 16", "heads divide"),
                                   ("0 2 8 50 16", "at least 1"), ("2 2 8 70000 16", "16 bits")):
                done = self.run_script(folder, *sizes.split())
                self.assertEqual(done.returncode, 2, sizes)
                self.assertIn(message, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
