"""scripts/record_suite and scripts/claims.py: what a record keeps; claims that hold, fail and stay open."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import script_module

RECORD = script_module.load("record_suite")
import claims  # noqa: E402  beside the script that was loaded


FLOOR = {"range": 0.02, "sigma": 0.01, "threshold_run": 0.03, "runs": 5, "same_seed_difference": 0.0}


def variant(name, verdict="no_conclusion", loss=4.0, stalled=0, diverged=0, surge=1.0, speed=100.0):
    return {"name": name, "verdict": verdict, "val_loss": loss, "delta": 0.1, "delta_sigmas": 2.0, "ended": 2,
            "runs": [0, 1], "stalled": stalled, "diverged": diverged, "grad_norm_max_first_100": surge,
            "tokens_per_s": speed}


def report(*variants, noise=None):
    return {"variants": list(variants), "noise": noise, "unigram_loss": 6.0}


def verdicts(experiment, given):
    return {row[0]: row[2].strip("*") for row in claims.table(experiment, given)}


def grid(**changes):
    """Every cell of post_ln_warmup trains; `changes` of those whose name begins with post."""
    cells = []
    for placement in ("pre", "post", "sublayer_output"):
        for lr in claims.LRS:
            for warmup in (0, 100):
                given = changes if placement == "post" else {}
                cells.append(variant(f"{placement}-lr={lr}-warmup_steps={warmup}", **given))
    return report(*cells)


class Claims(unittest.TestCase):
    def test_ablations(self):
        def of(verdict):
            names = ("no_residual", "no_ffn", "layernorm", "gelu_1024", "gelu_1032", "residual_out_init")
            return verdicts("ablations", report(variant("baseline"), *[variant(name, verdict) for name in names],
                                                noise=FLOOR))
        self.assertEqual(of("worse"), {"C11": "holds", "C12": "holds", "C13": "does not hold", "C14": "holds",
                                       "C19": "holds"})
        self.assertEqual(of("better"), dict.fromkeys(("C11", "C12", "C13", "C14", "C19"), "does not hold"))
        self.assertEqual(of("no_conclusion"), {"C11": "no conclusion", "C12": "no conclusion", "C13": "holds",
                                               "C14": "no conclusion", "C19": "no conclusion"})
        self.assertEqual(set(verdicts("ablations", report()).values()), {"no conclusion"})

    def test_the_two_widths_of_gelu_must_agree(self):
        mixed = report(variant("gelu_1024", "worse"), variant("gelu_1032", "no_conclusion"))
        self.assertEqual(verdicts("ablations", mixed)["C14"], "no conclusion")

    def test_noise(self):
        self.assertEqual(verdicts("noise_floor", report(noise=FLOOR)), {"C34": "holds"})
        for difference, expected in [(1e-9, "does not hold"), (None, "no conclusion")]:
            floor = {**FLOOR, "same_seed_difference": difference}
            self.assertEqual(verdicts("noise_floor", report(noise=floor)), {"C34": expected})

    def test_nothing_holds_by_what_is_not_known(self):
        few = {**FLOOR, "runs": 2}
        for noise in (None, few):
            same = report(variant("baseline"), variant("layernorm"), noise=noise)
            self.assertEqual(verdicts("ablations", same)["C13"], "no conclusion")
        failed = variant("no_residual", "worse", loss=None)
        failed["delta"] = failed["delta_sigmas"] = None
        self.assertEqual(verdicts("ablations", report(failed))["C11"], "holds")
        going_on = grid(stalled=0, loss=6.01)
        for row in going_on["variants"]:
            row["ended"] = 0
        self.assertEqual(verdicts("post_ln_warmup", going_on)["C01"], "no conclusion")

    def test_post_norm(self):
        stuck = verdicts("post_ln_warmup", grid(stalled=2, loss=6.01, surge=3.0))
        self.assertEqual(stuck, {"C01": "holds", "C02": "holds", "C03": "holds", "C04": "does not hold", "C05": "holds",
                                 "C07": "holds", "C30": "holds"})
        trains = verdicts("post_ln_warmup", grid())
        self.assertEqual(trains, {"C01": "does not hold", "C02": "does not hold", "C03": "does not hold",
                                  "C04": "holds", "C05": "holds", "C07": "does not hold", "C30": "holds"})
        self.assertEqual(verdicts("post_ln_warmup", grid(stalled=2, diverged=1))["C01"], "does not hold")
        self.assertEqual(verdicts("post_ln_warmup", grid(stalled=1))["C03"], "does not hold")


    def test_a_model_that_never_got_down_does_not_train(self):
        found = verdicts("post_ln_warmup", grid(loss=5.8))
        self.assertEqual((found["C04"], found["C05"]), ("does not hold", "holds"))
        stuck_high = report(*[{**row, "val_loss": 9.0} for row in grid()["variants"]])
        self.assertEqual(verdicts("post_ln_warmup", stuck_high)["C05"], "does not hold")

    def test_depth(self):
        def of(failing=(), plain=4.0, pre=4.0, ratio=2.0, wide=(("post", 48), ("post", 100))):
            cells, runs = [], []
            for placement in ("pre", "post", "plain"):
                for depth in claims.DEPTHS:
                    is_deep = depth == 48
                    row = variant(f"{placement}-n_layers={depth}", stalled=int((placement, depth) in failing),
                                  surge=ratio if is_deep else 1.0)
                    row["runs"] = [len(runs)]
                    row["loss_oscillation"] = 0.3 if (placement, depth) in wide else 0.1
                    runs.append({"layers": None, "loss": [7.0] * 9 + [{"plain": plain, "pre": pre}.get(placement, 4.0)
                                                      if is_deep else 4.0]})
                    cells.append(row)
            given = {**report(*cells, noise=FLOOR), "runs": runs, "lints": []}
            return [row[2].strip("*") for row in claims.table("depth", given) if row[0] != "C18"]
        self.assertEqual(of({("post", 24)}, plain=4.5), ["holds"] * 4)
        self.assertEqual(of({("post", 100), ("pre", 12)}, wide=()), ["does not hold"] * 4)
        self.assertEqual(of(plain=4.5, pre=4.4)[3], "does not hold")
        self.assertEqual(of(plain=4.5, ratio=50.0)[3], "does not hold")
        deep = [("post", 48), ("post", 100)]
        self.assertEqual(of(wide=[("post", 24), *deep])[2], "holds")  # between the two depths the essay names
        self.assertEqual(of(wide=[("post", 12), *deep])[2], "does not hold")
        self.assertEqual(of(wide=deep[:1])[2], "does not hold")
        self.assertEqual(of(wide=[*deep, ("pre", 100)])[2], "does not hold")

    def test_a_growing_stream(self):
        def of(writes):
            """Streams of an embedding of 0.02 and layers that add writes(l), l from 1."""
            rows, runs = [], []
            for name, factor in (("start", 1), ("pre_unscaled", 3)):
                for depth in claims.DEPTHS:
                    squares = [0.02 ** 2 + sum(writes(layer) ** 2 for layer in range(1, behind + 1))
                               for behind in range(1, depth + 1)]
                    rows.append({**variant(f"{name}-n_layers={depth}"), "runs": [len(runs)]})
                    runs.append({"layers": [{"stream_rms": factor * square ** 0.5} for square in squares]})
            return claims.stream_grows({**report(*rows), "runs": runs})
        verdict, numbers = of(lambda layer: 0.02 * 2 ** 0.5)  # two writes as large as the embedding
        self.assertEqual(verdict, "holds")
        self.assertIn("4 layers: 3.00 times the embedding where sqrt(1 + 2 l) is 3.00; at most 0.0 % off", numbers)
        self.assertIn("from the first layer to the last 1.73 times, trained 1.73, model 1.73", numbers)
        self.assertEqual(of(lambda layer: 0.05 if layer < 4 else 0.08)[0], "does not hold")
        self.assertEqual(of(lambda layer: 0.05 if layer < 4 else 0.052)[0], "holds")
        self.assertRaises(claims.Open, claims.stream_grows, report())

    def test_a_swing_that_is_not_known(self):
        rows = [{**variant(f"{placement}-n_layers={depth}"), "loss_oscillation": None}
                for placement in ("pre", "post") for depth in claims.DEPTHS]
        with self.assertRaisesRegex(claims.Open, "not known"):
            claims.post_oscillates(report(*rows))


class SmallClaims(unittest.TestCase):
    """Claims of the suites of small models, which read layers too."""
    def of(self, experiment, losses, layers=None, deltas=None, verdict="no_conclusion"):
        """Verdicts where variants have these losses, layers of these statistics, and differences to the reference."""
        rows, runs = [], []
        for index, (name, loss) in enumerate(losses.items()):
            row = variant(name, verdict, loss)
            row["runs"] = [index]
            row["delta"] = (deltas or {}).get(name, 0.0)
            rows.append(row)
            runs.append({"layers": [(layers or {}).get(name, {})], "state": "unfinished"})
        given = {"variants": rows, "runs": runs, "noise": FLOOR, "lints": [], "unigram_loss": 6.0}
        return {row[0]: row[2].strip("*") for row in claims.table(experiment, given)}

    def test_ladder(self):
        names = {"plus_ffn": 5, "plus_residual": 4, "plus_norm": 3}
        self.assertEqual(self.of("ladder", names, deltas=dict.fromkeys(names, -0.1)), {"C39": "holds"})
        self.assertEqual(self.of("ladder", names, deltas={"plus_ffn": -0.1, "plus_residual": -0.1, "plus_norm": -0.02}),
                         {"C39": "no conclusion"})
        self.assertEqual(self.of("ladder", names, deltas={"plus_ffn": -0.1, "plus_residual": -0.1, "plus_norm": 0.1}),
                         {"C39": "does not hold"})

    def test_ffn(self):
        losses = {"swiglu_128": 4.2, "swiglu_256": 4.1, "baseline": 4.05, "swiglu_512": 3.9, "swiglu_1024": 3.8,
                  "gelu_512": 4.0, "gelu": 4.06, "relu": 4.1, "swiglu_clamp": 4.05, "swiglu_oai": 4.05,
                  "situ_glu": 4.05}
        layers = {"relu": {"ffn_dead": 0.1}, "gelu": {"ffn_dead": 0}, "baseline": {"ffn_largest": 50},
                  **{name: {"ffn_largest": 9} for name in ("swiglu_clamp", "swiglu_oai", "situ_glu")}}
        found = self.of("ffn", losses, layers, verdict="worse")
        self.assertEqual(found, dict.fromkeys(("C14", "C15", "C17", "C21", "C29"), "holds"))
        losses.update(swiglu_512=4.2, swiglu_1024=4.3)
        layers["relu"] = {"ffn_dead": 0}
        layers["situ_glu"] = {"ffn_largest": 60}
        found = self.of("ffn", losses, layers, verdict="better")
        self.assertEqual(found, dict.fromkeys(("C14", "C15", "C17", "C21", "C29"), "does not hold"))

    def test_norms(self):
        gains = {"baseline": 1.2, "undecayed": 1.2, "decayed": 1.1, "strong": 1.2, "strong_decayed": 0.5,
                 "zero_centered": 1.2, "undecayed_zero_centered": 1.2, "decayed_zero_centered": 1.1,
                 "strong_zero_centered": 1.2, "strong_decayed_zero_centered": 1.01}
        losses = dict.fromkeys(("layernorm", *gains), 4)
        layers = {name: {"norm_gain": gain, "norm_output": 2 * gain} for name, gain in gains.items()}
        layers["layernorm"] = {"mean_share": 0.01}
        untold = {"C16": "no conclusion"}  # its test stands by itself
        self.assertEqual(self.of("norms", losses, layers), {**dict.fromkeys(("C13", "C20", "C25"), "holds"), **untold})
        layers["strong_decayed"]["norm_gain"] = 1.15  # above that of less decay
        layers["layernorm"] = {"mean_share": 0.2}
        self.assertEqual(self.of("norms", losses, layers, verdict="worse"),
                         {**dict.fromkeys(("C13", "C20", "C25"), "does not hold"), **untold})
        layers["strong_decayed"]["norm_gain"] = 0.5
        layers["strong_decayed_zero_centered"]["norm_gain"] = 0.7
        self.assertEqual(self.of("norms", losses, layers)["C20"], "does not hold")
        del layers["undecayed"]["norm_output"]
        self.assertEqual(self.of("norms", losses, layers)["C20"], "no conclusion")

    def test_batchnorm_is_two_functions(self):
        def of(batchnorm, layernorm, noise=FLOOR, seeds=(1, 2), state="finished"):
            rows, runs = [], []
            for name, val_loss in (("baseline", 4.1), ("batchnorm", batchnorm), ("layernorm", layernorm)):
                own = (1, 2, 3) if name == "baseline" else seeds
                rows.append({**variant(name), "runs": list(range(len(runs), len(runs) + len(own)))})
                for seed in own:  # a seed of its own data, and late losses that count
                    lost = 5.0 if seed == 3 else 0
                    runs.append({"state": state, "seed": seed, "loss": [7.0] * 18 + [4.0, 4.1],
                                 "val_loss": [6.0, val_loss + lost]})
            return claims.two_functions({**report(*rows, noise=noise), "runs": runs})
        self.assertEqual(of(4.2, 4.11)[0], "holds")
        self.assertIn("batchnorm +0.1000 nats, layernorm +0.0100 nats; 3 sigma 0.0300", of(4.2, 4.11)[1])
        self.assertEqual(of(4.12, 4.11)[0], "does not hold")
        self.assertEqual(of(4.2, 4.0)[0], "does not hold")
        for given in ({"noise": None}, {"seeds": (7,)}, {"state": "failed"}):
            self.assertRaises(claims.Open, of, 4.2, 4.11, **given)

    def test_gates(self):
        losses = {"baseline": 4, "elementwise": 3.9, "gate_q": 4, "gate_k": 4, "gate_v": 4, "gate_output": 4,
                  "fast": 4, "fast_qk_norm": 4}
        layers = {"baseline": {"first_token_share": 0.3}, "elementwise": {"first_token_share": 0.1},
                  "fast": {"largest_score": 90}, "fast_qk_norm": {"largest_score": 5}}
        self.assertEqual(self.of("gates", losses, layers), dict.fromkeys(("C26", "C27", "C28"), "holds"))
        losses["gate_v"] = 3.8
        layers["elementwise"], layers["fast_qk_norm"] = {"first_token_share": 0.4}, {"largest_score": 99}
        self.assertEqual(self.of("gates", losses, layers), dict.fromkeys(("C26", "C27", "C28"), "does not hold"))
        losses["gate_v"] = 3.89
        self.assertEqual(self.of("gates", losses, layers)["C28"], "no conclusion")

    def test_verdicts_alone(self):
        init = {"plain-n_layers=4": 4, "plain-n_layers=24": 4}
        streams = {f"{name}-n_layers=16": 4 for name in ("mhc", "gated", "attnres")}
        for verdict, expected in [("worse", "holds"), ("better", "does not hold"), ("no_conclusion", "no conclusion")]:
            self.assertEqual(self.of("residual_init", init, verdict=verdict), {"C19": expected})
        for verdict, expected in [("better", "holds"), ("worse", "does not hold")]:
            self.assertEqual(self.of("residual_streams", streams, verdict=verdict), {"C31": expected})
        for verdict, expected in [("no_conclusion", "holds"), ("worse", "does not hold")]:
            self.assertEqual(self.of("hybrid_attention", {"hybrid": 4}, verdict=verdict), {"C32": expected})

    def test_moe(self):
        def of(*losses):
            return self.of("moe", dict(zip(("baseline", "experts_4", "experts_8", "experts_16"), losses)))["C33"]
        self.assertEqual(of(4.2, 4.1, 4.0, 3.9), "holds")
        self.assertEqual(of(4.2, 4.1, 4.0, 4.1), "does not hold")
        self.assertEqual(of(4.2, 4.1, 4.0, 4.01), "no conclusion")


class RecordSuite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run = self.folder / "runs" / "a-seed1"
        self.run.mkdir(parents=True)
        (self.run / "config.toml").write_text("[run]\n")
        (self.run / "summary.json").write_text('{"end": "finished"}')
        lines = [json.dumps({"step": step, "loss": 1}) for step in range(43)]
        lines.insert(33, json.dumps({"step": 33, "val_loss": 2}))
        (self.run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        (self.run / "checkpoints").mkdir()
        (self.run / "checkpoints" / "best.h5").write_bytes(b"large")
        (self.folder / "runs" / "suite.json").write_text('{"name": "s", "noise_floor": "../noise/records"}')
        (self.folder / "runs" / "speed.jsonl").write_text("{}\n")
        self.experiment = self.folder / "experiments" / "s"
        self.experiment.mkdir(parents=True)
        (self.experiment / "suite.toml").write_text("")

    def record(self, *words):
        command = ["record_suite", str(self.folder / "runs"), str(self.experiment), *words]
        err = io.StringIO()
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(err):
            try:
                return RECORD.main(), err.getvalue()
            except SystemExit as stop:
                return stop.code, err.getvalue()

    def test_what_is_kept(self):
        self.assertEqual(self.record()[0], 0)
        records = self.experiment / "records"
        self.assertEqual(sorted(str(path.relative_to(records)) for path in records.rglob("*") if path.is_file()),
                         ["a-seed1/config.toml", "a-seed1/metrics.jsonl", "a-seed1/summary.json", "speed.jsonl",
                          "suite.json"])
        lines = [json.loads(line) for line in (records / "a-seed1" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines if "loss" in line], [*range(20), 20, 25, 30, 35, 40, 42])
        self.assertEqual([line["step"] for line in lines if "val_loss" in line], [33])
        self.assertEqual(json.loads((records / "suite.json").read_text())["noise_floor"], "../../../noise/records")
        self.assertEqual(self.record("--as", "records_other")[0], 0)
        self.assertTrue((self.experiment / "records_other" / "suite.json").exists())

    def test_what_is_refused(self):
        (self.run / "summary.json").write_text('{"end": "stopped"}')
        status, said = self.record()
        self.assertEqual(status, 2)
        self.assertIn("is not over", said)
        self.assertFalse((self.experiment / "records").exists())
        (self.folder / "runs" / "suite.json").unlink()
        self.assertIn("no suite's folder", self.record()[1])


if __name__ == "__main__":
    unittest.main()
