"""scripts/decisions.py: what docs/decisions.md says of each question, from made-up reports of recorded suites."""
import unittest

import script_module

script_module.load("write_verdicts")
import claims  # noqa: E402  beside the script that was loaded
import decisions  # noqa: E402


CLEAR = "worse than baseline by 0.1000 nats, 5.0 sigma"
UNCLEAR = "no conclusion: 0.0010 nats worse is below 3 sigma, 0.0600"


def variant(name, **changes):
    return {"name": name, "val_loss": 4.0, "sentence": "what others are compared with", "runs": [0, 1], "ended": 2,
            "stalled": 0, "diverged": 0, "grad_norm_max_first_100": 1.5, "tokens_per_s": 2000.0,
            "speed_measurements": 3, "parameters": 3688704, "parameter_difference_percent": 0.0, **changes}


def ablations(sentence, **changes):
    """The baseline, and four variants of which `sentence` was found."""
    changed = {"val_loss": 4.1, "sentence": sentence, "tokens_per_s": 1500.0, "grad_norm_max_first_100": 2.25,
               **changes}
    names = ("layernorm", "gelu_1024", "gelu_1032", "residual_out_init")
    return {"ablations": {"variants": [variant("baseline"), *[variant(name, **changed) for name in names]]}}


def grid(changed=(), **changes):
    """Every cell of post_ln_warmup trains but those (placement, lr, warm-up) of `changed`."""
    cells = [(placement, lr, warmup) for placement in ("pre", "post") for lr in claims.LRS for warmup in (0, 100)]
    rows = [variant("{}-lr={}-warmup_steps={}".format(*cell), **(changes if cell in changed else {})) for cell in cells]
    return {"post_ln_warmup": {"variants": rows, "unigram_loss": 6.0}}


def answer(name, reports):
    return decisions.answer(decisions.DECISIONS[name], reports)


class Decisions(unittest.TestCase):
    def test_every_decision_is_asked_here(self):
        self.assertEqual(list(decisions.DECISIONS), ["norm_position", "norm", "activation", "output_init"])

    def test_without_records(self):
        for name, experiment in [("norm_position", "post_ln_warmup"), ("norm", "ablations"),
                                 ("activation", "ablations"), ("output_init", "ablations")]:
            self.assertEqual(answer(name, {}), f"Not answered yet: `experiments/{experiment}` has no records.")

    def test_records_of_a_part_of_a_suite(self):
        only_baseline = {"ablations": {"variants": [variant("baseline")]}}
        self.assertEqual(answer("norm", only_baseline), "Not answered yet: layernorm was not run.")
        self.assertEqual(answer("activation", only_baseline), "Not answered yet: gelu_1024 was not run.")
        self.assertEqual(answer("output_init", only_baseline), "Not answered yet: residual_out_init was not run.")
        some = grid()
        del some["post_ln_warmup"]["variants"][-1]
        self.assertEqual(answer("norm_position", some),
                         "Not answered yet: post-lr=0.01-warmup_steps=100 was not run.")

    def test_which_norm(self):
        speeds = "Speed alone, median of 3: RMSNorm 2,000 tokens/s, LayerNorm 1,500, 0.750 times."
        for sentence in (CLEAR, UNCLEAR):
            self.assertEqual(answer("norm", ablations(sentence)),
                             f"LayerNorm 4.1000 against 4.0000, {sentence}. {speeds}")
        self.assertEqual(answer("norm", ablations(UNCLEAR, tokens_per_s=None)),
                         f"LayerNorm 4.1000 against 4.0000, {UNCLEAR}. Their speeds are not known.")

    def test_which_activation(self):
        size = {"parameters": 3672320, "parameter_difference_percent": -0.444}
        for sentence in (CLEAR, UNCLEAR):
            self.assertEqual(answer("activation", ablations(sentence, **size)).splitlines(), [
                f"- gelu_1024 (3,672,320 parameters, -0.444 %): 4.1000 against 4.0000, {sentence}.",
                f"- gelu_1032 (3,672,320 parameters, -0.444 %): 4.1000 against 4.0000, {sentence}."])

    def test_how_outputs_start(self):
        for sentence in (CLEAR, UNCLEAR):
            self.assertEqual(answer("output_init", ablations(sentence)),
                             f"Started at 0.02: 4.1000 against 4.0000, {sentence}. "
                             "Largest gradient of the first 100 steps 2.25 instead of 1.50.")

    def test_runs_that_failed_have_no_loss(self):
        failed = ablations("1 of 2 runs failed where baseline trains", val_loss=None, grad_norm_max_first_100=None)
        self.assertEqual(answer("output_init", failed),
                         "Started at 0.02: none against 4.0000, 1 of 2 runs failed where baseline trains. "
                         "Largest gradient of the first 100 steps none instead of 1.50.")


class WhereTheNormStands(unittest.TestCase):
    def closing(self, reports):
        """Of the text, what stands below the table."""
        return answer("norm_position", reports).split("\n\n")[1].replace("\n", " ")

    def test_a_clear_difference(self):
        post = [("post", lr, warmup) for lr in claims.LRS for warmup in (0, 100)]
        reports = grid(post[:3], stalled=2, val_loss=6.01, grad_norm_max_first_100=9.0)
        rows = answer("norm_position", reports).splitlines()
        self.assertEqual(rows[2], "| 0.001 | 0 | 4.00 | 6.01 (2 of 2 stalled) | 1.50 | 9.00 |")
        self.assertEqual(rows[7], "| 0.01 | 100 | 4.00 | 4.00 | 1.50 | 1.50 |")
        self.assertEqual(self.closing(reports), "At 1e-2 without warm-up pre-norm trains: 4.00. "
                                                "In 3 of the six cells pre-norm trains and post-norm does not.")

    def test_no_difference(self):
        self.assertEqual(self.closing(grid()), "At 1e-2 without warm-up pre-norm trains: 4.00. "
                                               "In 0 of the six cells pre-norm trains and post-norm does not.")

    def test_how_the_hardest_cell_ends(self):
        hard = [("pre", "0.01", 0)]
        for changes, expected in [({"stalled": 2, "val_loss": 6.0}, "stalls: 6.00 (2 of 2 stalled)."),
                                  ({"diverged": 1, "val_loss": None}, "diverges: no loss (1 of 2 diverged)."),
                                  ({"val_loss": 5.8}, "does not get half a nat below the unigram loss: 5.80."),
                                  ({"ended": 1, "val_loss": None}, "goes on: no loss.")]:
            self.assertTrue(self.closing(grid(hard, **changes)).startswith(
                f"At 1e-2 without warm-up pre-norm {expected}"), self.closing(grid(hard, **changes)))


if __name__ == "__main__":
    unittest.main()
