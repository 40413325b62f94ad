"""minillm bench: a table for people, one object with --json, on random tokens and on data, and what is refused."""
import json
import re

import cli_support
from cli_support import SMALL

PHASES = ["gemm_forward", "gemm_dx", "gemm_dw", "attention", "norms", "activations", "loss", "optimizer", "other"]
KEYS = {"tokens_per_s", "step_ms", "phases_ms", "mfu", "fma_peak_gflops", "fma_peak_change", "flops_per_step",
        "tokens_per_step", "parameters", "threads", "loss", "peak_memory_bytes", "memory_before_bytes",
        "memory_formula_bytes", "arena_bytes", "heap_allocations_per_step"}


class Bench(cli_support.InputCase):
    cpu_seconds = 30

    def test_table(self):
        self.write("a.toml", SMALL)
        out = self.run_program("bench", "a.toml", "--steps", "3").stdout
        rows = re.findall(r"^(\w+) +([\d.]+) +([\d.]+) %", out, re.M)
        self.assertEqual([name for name, _, _ in rows], [*PHASES, "step"])
        times = {name: float(milliseconds) for name, milliseconds, _ in rows}
        self.assertAlmostEqual(sum(times[name] for name in PHASES), times["step"], delta=0.1)
        self.assertIn("128 tokens a step, 1 threads\n", out)
        self.assertNotRegex(out, r"\b(inf|nan)\b")
        self.assertRegex(out, r"peak memory .* before the model; the difference is [\d.]+ of the formula's [\d.]+ .B\n")

    def test_json(self):
        self.write("a.toml", SMALL)
        result = self.json_of("bench", "a.toml", "--steps", "3")
        self.assertEqual(set(result), KEYS)
        self.assertEqual(list(result["phases_ms"]), PHASES)
        self.assertAlmostEqual(sum(result["phases_ms"].values()), result["step_ms"], delta=1e-6 * result["step_ms"])
        self.assertEqual(result["tokens_per_step"], 128)
        self.assertAlmostEqual(result["tokens_per_s"], 128e3 / result["step_ms"], delta=1e-6 * result["tokens_per_s"])
        self.assertEqual(result["threads"], 1)
        check = json.loads(self.run_program("check", "a.toml", "--json").stdout)
        self.assertEqual(result["parameters"], check["parameters"])
        self.assertAlmostEqual(result["loss"], 5.7, delta=0.2)  # ln 300
        self.assertIn(result["heap_allocations_per_step"], (0, None))
        if result["fma_peak_gflops"] is None:
            self.assertIsNone(result["mfu"])
        else:
            expected = result["flops_per_step"] / (result["step_ms"] / 1e3) / 1e9 / result["fma_peak_gflops"]
            self.assertAlmostEqual(result["mfu"], expected, delta=1e-9)

    def test_decoding(self):
        self.write("c.toml", "[model]\nvocab_size = 320\nd_model = 64\nn_layers = 2\nn_heads = 4\nd_ff = 64\n"
                             "[data]\nseq_len = 64\n")
        words = ["bench", "c.toml", "--decode", "--prompt-tokens", 20, "--steps", 7]
        whole = self.json_of(*words)
        self.assertEqual((whole["prompt_tokens"], whole["tokens"]), (20, 7))
        self.assertIn(whole["heap_allocations_per_token"], (0, None))
        matrices, gains = 320 * 64 + 2 * 7 * 64 * 64, 5 * 64
        self.assertEqual(whole["weight_bytes"], 4 * (matrices + gains))
        for key in ("tokens_per_s", "prefill_tokens_per_s", "read_gigabytes_per_s", "share_of_reading"):
            self.assertGreater(whole[key], 0)
        self.assertEqual(self.json_of(*words, "--weights", "bf16")["weight_bytes"], 2 * matrices + 4 * gains)
        self.assertEqual(self.json_of(*words, "--weights", "int8")["weight_bytes"], matrices * 17 / 16 + 4 * gains)
        self.assertEqual(self.json_of(*words[:-4], "--prompt-tokens", 1000)["prompt_tokens"], 58)
        self.assertRegex(self.run_program(*words).stdout, r"\n7 tokens behind it, one by one: \d+ tokens/s")

    def test_state_that_check_tells(self):
        """Weights, gradients and two moments, as a whole number however large the model is."""
        self.write("a.toml", SMALL)
        for words, bytes_each in (([], 16), (["model.vocab_size=2147483647", "model.d_model=200002",
                                              "model.n_heads=100001", "train.dtype=float64"], 32)):
            done = self.run_program("check", "a.toml", "--json", *words)
            told = json.loads(done.stdout)
            self.assertIn(f'"training_bytes":{bytes_each * told["parameters"]},', done.stdout)
            self.assertGreater(told["memory_bytes"], told["training_bytes"])  # with what backward needs

    def test_vocabulary(self):
        """Without data it is 2,048, as --help says; with data it is the data's."""
        self.write("a.toml", SMALL.replace("vocab_size = 300\n", ""))
        self.assertIn("of a vocabulary of 2048 where the config has none", self.run_program("bench", "--help").stdout)
        random = self.json_of("bench", "a.toml", "--steps", "1")
        self.assertAlmostEqual(random["loss"], 7.6, delta=0.2)  # ln 2048
        text = self.run_program("bench", "a.toml", "data.path=synthetic", "--steps", "1").stdout
        self.assertIn("128 tokens a step", text)

    def test_what_is_refused(self):
        files = {"a.toml": SMALL}
        self.check_all([
            cli_support.Row("bench a.toml --steps 0", (r"--steps.*found 0; expected from 1",), files=files),
            cli_support.Row("bench a.toml model.n_heads=3", (r"n_heads",), files=files),
            cli_support.Row("bench a.toml data.path=none.h5", (r"data\.path: there is no such file",), files=files),
            cli_support.Row("bench a.toml model.vocab_size=2147483647 model.d_model=100000 model.n_heads=50000",
                            (r"\[model\]: weights, .* do not fit this machine's memory; found [\d.]+ PB",),
                            files=files),
            cli_support.Row("bench a.toml data.seq_len=2000000000 model.position=none train.batch_size=1",
                            (r"data\.seq_len: .* do not fit .*found [\d.]+ TB",), files=files),
            cli_support.Row("bench .", (r"^error: \.: a folder, not a config file$",)),
            cli_support.Row("bench none.toml", (r"none\.toml",))])

    def test_composed_ops(self):
        """Their primitives stand in several phases, so those are not told."""
        self.write("a.toml", SMALL)
        phases = self.json_of("bench", "a.toml", "train.ops=composed", "--steps", "1")["phases_ms"]
        self.assertEqual([name for name in PHASES if phases[name] is not None], ["optimizer", "other"])
        self.assertRegex(self.run_program("bench", "a.toml", "train.ops=composed", "--steps", "1").stdout,
                         r"(?m)^norms *$")


if __name__ == "__main__":
    cli_support.support.main()
