"""The 45 numbers of the course that can be computed again, as the program says them: a row a number, with its id in the
specification. The right-hand side of a row has nothing but what the program printed; no size of a model is typed here
other than the settings that make a model from the baseline."""
import json
import pathlib
import re
import subprocess
import types

import support

BASELINE = support.ROOT / "configs" / "baseline.toml"
ABLATIONS = support.ROOT / "configs" / "ablations"
MODELS = support.ROOT / "configs" / "presets" / "models"
UNSCALED = "model.residual_out_init=plain"  # for what the lint E20 then says

# What is asked of the program, by the name that rows use.
QUESTIONS = {
    "baseline": ("ledger", BASELINE),
    "gelu": ("ledger", ABLATIONS / "gelu_1024.toml"),
    "four_d": ("ledger", BASELINE, "model.d_ff=1024"),
    "no_ffn": ("ledger", ABLATIONS / "no_ffn.toml"),
    "half_kv": ("ledger", BASELINE, "model.n_kv_heads=4"),
    "unscaled": ("check", BASELINE, UNSCALED),
    "old_plan": ("ledger", BASELINE, "model.vocab_size=8192", "model.d_model=384", "model.n_layers=6",
                 "model.n_heads=6", "model.d_ff=1024"),
    "qwen": ("ledger", MODELS / "qwen3.8-27b.toml"),
    "unscaled_qwen": ("check", MODELS / "qwen3.8-27b.toml", UNSCALED),
    "largest_qwen": ("ledger", MODELS / "qwen3.8-2.4t-a95b.toml"),
    "gpt2": ("ledger", MODELS / "gpt2.toml"),
    "deepseek": ("ledger", MODELS / "deepseek-llm-67b.toml"),
}


def percent(share, digits):
    return round(100 * share, digits)


def number(text, pattern):
    """The number in the pattern's group."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"no {pattern} in {text!r}")
    return float(found[1])


# (id, expected, how it comes from the answers)
ROWS = [
    # minillm at the reference size
    ("B1", 524288, lambda a: a.baseline.embed_tokens.parameters),
    ("B2", 262144, lambda a: a.baseline.full_attention.per_unit),
    ("B3", 528384, lambda a: a.baseline.ffn.per_unit),
    ("B4", 512, lambda a: a.baseline.norms.per_unit),
    ("B5", 256, lambda a: a.baseline.norms.parameters - a.baseline.norms.units * a.baseline.norms.per_unit),
    ("B6", 3688704, lambda a: a.baseline.parameters),
    ("B7", 57.3, lambda a: percent(a.baseline.ffn.share, 1)),
    ("B8", 524288, lambda a: a.gelu.ffn.per_unit),
    ("B9", 688, lambda a: a.baseline.ffn_width.rounded_16),
    ("B11", 0.5, lambda a: a.four_d.ffn.per_unit / a.gelu.ffn.per_unit - 1),
    ("B12", 0.00707, lambda a: number(a.unscaled.lint.E20, r"o_proj and down_proj at ([\d.]+)")),
    ("B13", 0.781, lambda a: percent(a.baseline.ffn.per_unit / a.gelu.ffn.per_unit - 1, 3)),
    ("B14", -0.416, lambda a: percent(a.no_ffn.parameters / a.baseline.parameters - 1, 3)),
    # Qwen3.8-27B
    ("B20", 267386880, lambda a: a.qwen.ffn.per_unit),
    ("B21", 2.55, lambda a: round(a.qwen.ffn.per_unit / a.qwen.full_attention.per_unit, 2)),
    ("B22", 61.598, lambda a: percent(a.qwen.ffn.share, 3)),
    ("B23", 63.626, lambda a: percent(a.qwen.ffn.text_share, 3)),
    ("B24", 3.4, lambda a: a.qwen.ffn_width.of_d),
    ("B25", 10.2, lambda a: round(a.qwen.ffn.per_unit / a.qwen.config.model.d_model**2, 12)),
    ("B26", 12288, lambda a: a.qwen.attention_gate.q_proj_rows),
    ("B27", 6144, lambda a: number(a.qwen.full_attention.derivation, r"\*(\d+) \+ \d+\*\d+$")),  # o_proj, then gains
    ("B28", 1024, lambda a: number(a.qwen.full_attention.derivation, r"\+ 2\*(\d+)\*")),  # two alike: k and v
    ("B29", 1271398400, lambda a: a.qwen.lm_head.parameters),
    ("B30", 21404057600, lambda a: a.qwen.classic_estimate),
    ("B31", 22.96, lambda a: percent(a.qwen.gap / a.qwen.parameters, 2)),
    ("B32", 27781427952, lambda a: a.qwen.parameters),
    ("B33", 11017952, lambda a: a.qwen.linear_attention.per_unit - a.qwen.full_attention.per_unit),
    ("B34", 128, lambda a: number(a.unscaled_qwen.lint.E20, r"(\d+) writes")),
    ("B35", 87040, lambda a: a.qwen.crossover_context),
    ("B36", 3.0118, lambda a: round(a.qwen.scores_to_ffn, 4)),
    ("B37", 11.36, lambda a: number(a.unscaled_qwen.lint.E20, r"grow to ([\d.]+) times")),
    # GPT-2
    ("B40", 124439808, lambda a: a.gpt2.parameters),
    ("B41", 12582912, lambda a: a.gpt2.buffers),
    ("B42", 137022720, lambda a: a.gpt2.file_elements),
    ("B43", 45.5, lambda a: percent(a.gpt2.ffn.share, 1)),
    ("B44", 31.65, lambda a: percent(a.gpt2.embed_tokens.share + a.gpt2.embed_positions.share, 2)),
    ("B45", 9.15, lambda a: percent(a.qwen.embed_tokens.share + a.qwen.lm_head.share, 2)),
    ("B46", 3072, lambda a: number(a.gpt2.ffn.derivation, r"^2\*\d+\*(\d+) ")),
    # others
    ("B47", 22016, lambda a: a.deepseek.ffn_width.rounded_256),
    ("B48", 10616832, lambda a: a.old_plan.classic_estimate - a.old_plan.embed_tokens.parameters),
    ("B49", 3145728, lambda a: a.old_plan.embed_tokens.parameters),
    ("B50", 13762560, lambda a: a.old_plan.classic_estimate),
    ("B51", 97.11, lambda a: percent(a.largest_qwen.ffn.share, 2)),
    ("B52", 0.5, lambda a: a.half_kv.kv_bytes_per_token / a.baseline.kv_bytes_per_token),
]

# (id, expected, the C++ test that holds it, its case): no command evaluates an activation.
UNIT_TESTED = ("B38", "99.995", "autograd", "SwiGLU has no bound: 99.995 at gate = up = 10")


class Answers:
    """The program's JSON as attributes, asked for once; groups by their name, the text of lints by their id."""

    def __init__(self, ask):
        self.ask = ask

    def __getattr__(self, name):
        answer = self.ask(*QUESTIONS[name])
        answer.update({group["name"]: group for group in answer["groups"]})
        answer["lint"] = {lint["id"]: f"{lint['message']}; {lint['advice']}" for lint in answer["lints"]}
        found = json.loads(json.dumps(answer), object_hook=lambda entries: types.SimpleNamespace(**entries))
        setattr(self, name, found)
        return found


class Recomputed(support.Case):
    def test_numbers(self):
        self.assertEqual(len(ROWS) + 1, 45)
        self.assertEqual(len({row_id for row_id, _, _ in ROWS}), 44)
        answers = Answers(self.json_of)
        for row_id, expected, formula in ROWS:
            with self.subTest(row_id):
                try:
                    found = formula(answers)
                except (AttributeError, ValueError) as error:
                    found = f"nothing: {error}"
                if found != expected:
                    self.fail(f"{row_id}: expected {expected}, found {found}")

    def test_the_activation_is_tested(self):
        row_id, expected, folder, case = UNIT_TESTED
        tests = pathlib.Path(support.PROGRAM).parent / "tests" / f"test_{folder}"
        done = subprocess.run([tests, f"--test-case={case}"], capture_output=True, text=True, check=False)
        self.assertIn("1 passed", done.stdout, f"{row_id}: expected {expected} of the case \"{case}\"")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    support.main()
