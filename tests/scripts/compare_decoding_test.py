"""scripts/compare_decoding with programs that only pretend, and scripts/peers/llama2c_random_model.py: what its figures
are made of, the files' sizes, and what is refused."""
import json
import os
import struct
import subprocess
import sys
import unittest
from unittest import mock

import script_module

DECODING = script_module.load("compare_decoding")
RANDOM_MODEL = script_module.ROOT / "scripts" / "peers" / "llama2c_random_model.py"

MINILLM = """#!/usr/bin/env bash
echo "$@" >>"$(dirname "$0")/calls"
echo '{"tokens_per_s": 3000, "prefill_tokens_per_s": 20000, "share_of_reading": 0.9}'
"""
# "Builds" a program whose rate is 1000, and 500 a thread more if it is run_omp; STATUS is its exit status.
GCC = """#!/usr/bin/env bash
for word; do out=$word; done
cat >"$out" <<'END'
#!/usr/bin/env bash
[ -f model.bin ] && [ -f model_q80.bin ] && [ -f tokenizer.bin ] || exit 9
rate=1000
[ "$(basename "$0")" = run_omp ] && rate=$((500 + 500 * OMP_NUM_THREADS))
echo "achieved tok/s: $rate.000000" >&2
exit STATUS
END
chmod +x "$out"
"""


class CompareDecoding(script_module.PretendCase):
    SCRIPT = DECODING
    PROGRAM = MINILLM

    def compare(self, *words, status=0):
        compiler = self.folder / "bin" / "gcc"
        compiler.parent.mkdir()
        compiler.write_text(GCC.replace("STATUS", str(status)))
        compiler.chmod(0o755)
        for name in ("run.c", "runq.c"):
            (self.folder / name).write_text("")
        path = f'{compiler.parent}:{os.environ["PATH"]}'
        small = [DECODING.Shape("reference", 64, 128, 1, 2, 300)]
        with mock.patch.dict(os.environ, {"PATH": path}), mock.patch.object(DECODING, "SHAPES", small):
            return self.run_script("--llama2c", str(self.folder), "--pairs", "2", *words)

    def test_rates_and_their_best_thread_count(self):
        status, out, err = self.compare("--json")
        self.assertEqual((status, err), (0, ""))
        rows = {row["kind"]: row for row in json.loads(out)["rows"]}
        self.assertEqual(rows["float32"]["ratio"], 2)  # 3000 / 1500
        self.assertEqual(rows["float32"]["their_threads"], 2)
        self.assertEqual(rows["int8"]["ratio"], 3)
        self.assertEqual(rows["int8"]["their_threads"], 1)
        self.assertAlmostEqual(rows["prompt of 128"]["ratio"], 20000 / 1500)
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertEqual(len(calls), 6)
        self.assertTrue(all("model.d_model=64" in call for call in calls))
        self.assertIn("--weights int8 --prompt-tokens 1 ", calls[2])
        self.assertIn("--weights float32 --prompt-tokens 128 ", calls[4])

    def test_a_program_that_fails_is_named(self):
        status, _, err = self.compare(status=3)
        self.assertEqual(status, 1)
        self.assertIn("run_omp: exit status 3", err)

    def test_what_is_refused(self):
        for words, message in ((["--pairs", "0"], "at least 1"), (["--minillm", "none"], "there is no program"),
                               (["--llama2c", "none"], "has no runq.c"),
                               (["--record", "--only", "reference"], "--record replaces the whole table")):
            status, out, err = self.run_script("--llama2c", str(self.folder), *words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn(message, err)


class RandomModel(script_module.PretendCase):
    SCRIPT = DECODING

    def make(self, *sizes):
        return subprocess.run([sys.executable, "-B", RANDOM_MODEL, self.folder, *map(str, sizes)], capture_output=True,
                              text=True, check=False)

    def test_files(self):
        self.assertEqual(self.make(32, 48, 2, 4, 2, 50, 16).returncode, 0)
        floats = (self.folder / "model.bin").read_bytes()
        self.assertEqual(struct.unpack("<7i", floats[:28]), (32, 48, 2, 4, 2, 50, 16))
        matrices = 50 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 48)
        norms = (2 * 2 + 1) * 32
        self.assertEqual(len(floats), 28 + 4 * (matrices + norms + 16 * 8))
        codes = (self.folder / "model_q80.bin").read_bytes()
        self.assertEqual(struct.unpack("<Ii7ibi", codes[:41]), (0x616b3432, 2, 32, 48, 2, 4, 2, 50, 16, 1, 16))
        self.assertEqual(len(codes), 256 + 4 * norms + matrices + 4 * (matrices // 16))
        pieces = (self.folder / "tokenizer.bin").read_bytes()
        self.assertEqual(len(pieces), 4 + 50 * 8 + sum(len(f"<{token:x}>") for token in range(50)))

    def test_wrong_words(self):
        for sizes, message in (((32, 48), "required"), ((32, 48, 2, 5, 1, 50, 16), "heads divide"),
                               ((0, 48, 2, 4, 2, 50, 16), "at least 1")):
            done = self.make(*sizes)
            self.assertEqual(done.returncode, 2, sizes)
            self.assertIn(message, done.stderr)
        self.assertFalse((self.folder / "model.bin").exists())


if __name__ == "__main__":
    unittest.main()
