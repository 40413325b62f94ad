"""Data for tests of the report's page, made up but with the shape of real runs, and the page filled with it.

    report_sample.py small|large|plain OUT.html     writes such a page, to look at
"""
import json
import math
import pathlib
import random
import re
import sys

SUITE = pathlib.Path(__file__).resolve().parents[2] / "suite"
DYGRAPHS = pathlib.Path("/usr/share/javascript/dygraphs")
TOKENS_PER_STEP = 4096
UNIGRAM_LOSS = 6.2865
SIGMA = 0.0061

# name, difference of the last loss, parameters, tokens/s, what it changes
VARIANTS = [
    ("baseline", 0.0, 3688704, 8420, {}),
    ("layernorm", 0.004, 3691008, 8130, {"model.norm": ("rmsnorm", "layernorm")}),
    ("qk_norm", -0.031, 3688960, 7950, {"model.qk_norm": (False, True)}),
    ("gelu_1032", 0.046, 3688704, 8510, {"model.ffn": ("swiglu", "gelu"), "model.d_ff": (688, 1032)}),
    ("moe", -0.052, 3692800, 6120, {"model.ffn": ("swiglu", "moe"), "model.moe_experts": (0, 4)}),
    ("gqa_2", 0.012, 3688704, 8890, {"model.n_kv_heads": (8, 2), "model.d_ff": (688, 816)}),
    ("no_position", 0.118, 3688704, 8610, {"model.position": ("rope", "none")}),
    ("post_ln", 0.071, 3688448, 8400, {"model.norm_position": ("pre", "post")}),
    ("no_residual", None, 3688704, 8450, {"model.residual": ("add", "none")}),
    ("mla", -0.009, 3688960, 7010, {"model.attention": ("full", "mla"), "model.d_ff": (688, 800)}),
]


def rounded(values, digits):
    return [None if value is None else float(f"{value:.{digits}g}") for value in values]


def make_run(variant, seed, steps, every, diverges=False, state="finished"):
    name, delta, _, speed, changes = variant
    draw = random.Random(f"{name} {seed}")
    last = steps if state == "finished" else steps * 2 // 3
    end = draw.gauss(delta if delta is not None else 0, SIGMA)

    def loss(step):
        if delta is None:  # learns frequencies and nothing else
            return UNIGRAM_LOSS + (7.62 - UNIGRAM_LOSS) * math.exp(-step / 25)
        sunk = [(1 + at / 45) ** -0.55 - (1 + steps / 45) ** -0.55 for at in (step, 0)]
        return 4.21 + end + (7.62 - 4.21) * sunk[0] / sunk[1] + (3 * end * (1 - step / steps) if delta > 0.02 else 0)

    logged = list(range(0, last, every))
    losses, norms = [], []
    for step in logged:
        broken = diverges and step > last * 0.7
        losses.append(None if broken and step % 7 == 0 else
                      loss(step) + draw.gauss(0, 0.045) + (3.2 * (step / last - 0.7) * 10 if broken else 0))
        norms.append(math.exp(draw.gauss(0, 0.16)) * (0.42 + 5 * math.exp(-step / 30)) * (9 if broken else 1))
    warmup = steps // 20
    rates = [1e-3 * (min(1, (step + 1) / warmup) if step < warmup else
                     0.55 + 0.45 * math.cos(math.pi * (step - warmup) / (steps - warmup))) for step in logged]
    evaluations = [step for step in range(0, last + 1, max(1, steps // 20))]
    validation = [None if diverges and step > last * 0.9 else loss(step) + draw.gauss(0, 0.0015) +
                  (2.5 * (step / last - 0.7) * 3 if diverges and step > last * 0.7 else 0) for step in evaluations]
    config = {"model.norm": "rmsnorm", "model.ffn": "swiglu", "model.d_ff": 688, "run.seed": seed, "optim.lr": 0.001}
    config.update({key: after for key, (_, after) in changes.items()})
    return {
        "name": f"{name}-seed{seed}", "variant": name, "seed": seed, "folder": f"runs/ablations/{name}-seed{seed}",
        "state": state, "seconds": round(last * TOKENS_PER_STEP / speed, 1), "steps": logged,
        "loss": rounded(losses, 6), "grad_norm": rounded(norms, 4), "lr": rounded(rates, 4),
        "tokens_per_s": rounded([draw.gauss(speed, speed * 0.015) for _ in logged], 5), "eval_steps": evaluations,
        "val_loss": rounded(validation, 6), "val_bits_per_byte": rounded(
            [None if value is None else value / math.log(2) / 3.42 for value in validation], 6), "config": config,
    }


def verdict_of(name, runs, delta):
    if name == "baseline":
        return "reference", "The others are compared with it."
    if any(run["state"] != "finished" for run in runs):
        return "unfinished", "One seed is still running."
    if delta is None:
        return "refused", "A run diverged, so there is no mean to compare."
    sigmas = abs(delta) / SIGMA
    if sigmas < 3:
        return "no_conclusion", f"The difference of {delta:+.4f} is within 3 σ of the noise."
    word = "worse" if delta > 0 else "better"
    return word, f"{word.capitalize()} by {abs(delta):.4f}, which is {sigmas:.1f} σ: more than chance."


def sample(variants=VARIANTS, seeds=(1, 2, 3), steps=2000, points=1000, watch_seconds=0, figures=False):
    runs, rows, means = [], [], {}
    for variant in variants:
        name, _, parameters, speed, changes = variant
        own = []
        for seed in seeds:
            state = "running" if name == "mla" and seed == seeds[-1] else "finished"
            own.append(make_run(variant, seed, steps, max(1, steps // points), name == "post_ln" and seed == 2, state))
        ends = [run["val_loss"][-1] for run in own]
        mean = None if None in ends else sum(ends) / len(ends)
        means[name] = mean
        spread = None if mean is None or len(ends) < 2 else math.sqrt(
            sum((end - mean) ** 2 for end in ends) / (len(ends) - 1))
        delta = None if mean is None else mean - means["baseline"]
        verdict, sentence = verdict_of(name, own, delta)
        rows.append({
            "name": name, "reference": "baseline", "runs": list(range(len(runs), len(runs) + len(own))),
            "parameters": parameters, "parameter_difference_percent": (parameters / 3688704 - 1) * 100,
            "val_loss": mean, "val_sd": spread, "delta": delta,
            "delta_sigmas": None if delta is None else delta / SIGMA, "tokens_per_s": speed,
            "grad_norm_max_first_100": max(own[0]["grad_norm"][:50]),
            "loss_oscillation": None if name == "post_ln" else 0.05 + 0.01 * len(rows),
            "stalled": len(own) if name == "no_residual" else 0, "diverged": 1 if name == "post_ln" else 0,
            "verdict": verdict, "sentence": sentence,
            "changes": [{"key": key, "before": json.dumps(before), "after": json.dumps(after)}
                        for key, (before, after) in changes.items()],
        })
        runs += own
    return {
        "title": "ablations", "made": "2026-11-30 10:20", "watch_seconds": watch_seconds,
        "tokens_per_step": TOKENS_PER_STEP,
        "noise": {"sigma": SIGMA, "range": 0.016, "runs": 5, "of": "baseline", "threshold_run": 3 * SIGMA,
                  "threshold_difference": 3 * math.sqrt(2) * SIGMA},
        "reference": "baseline", "unigram_loss": UNIGRAM_LOSS, "variants": rows, "runs": runs,
        "lints": [
            {"id": "E16", "severity": "warning", "where": "moe", "what": "It trains 27 % slower than its reference.",
             "advice": "Compare at equal time as well: --match seconds."},
            {"id": "E09", "severity": "error", "where": "post_ln-seed2", "what": "The loss rose 1.4 above its start.",
             "advice": "Lower optim.lr or lengthen optim.warmup_steps."},
            {"id": "E31", "severity": "info", "where": "baseline", "what": "One table serves input and output.",
             "advice": "</script><script>window.injected = 1</script><!-- <script> {{TITLE}}"},
        ],
        "environment": [{"numerics": "f32, AVX-512, fixed sums", "version": "0.1.0", "commit": "8486836",
                         "cpu": "Xeon Platinum", "threads": 2, "runs": len(runs)}],
        "figures": [{"title": "Validation loss", "svg": "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 80 40'>"
                     "<path d='M5 5C20 30 40 35 75 36' fill='none' stroke='#174aaf'/></svg>"}] if figures else [],
    }


def small(**settings):
    return sample(VARIANTS[:3], seeds=(1,), steps=200, points=200, **settings)


def fill(data, dygraphs=True):
    """The page as the program fills it: every placeholder once, in one pass, so that no text put in is looked at."""
    def text_of(match):
        name = match[1] or match[2]
        if name == "TITLE":
            return data["title"].replace("&", "&amp;").replace("<", "&lt;")
        if name == "DATA":
            return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        if name in ("DYGRAPHS", "DYGRAPHS_CSS"):
            file = DYGRAPHS / ("dygraph.min.js" if name == "DYGRAPHS" else "dygraph.min.css")
            return re.sub(r"\n?/[/*]# sourceMappingURL.*", "", file.read_text()) if dygraphs else ""
        return (SUITE / name).read_text()
    return re.sub(r"/\*\{\{(\S+?)\}\}\*/|\{\{(\S+?)\}\}", text_of, (SUITE / "report_page.html").read_text())


def main():
    kind, out = sys.argv[1:]
    data = {"small": small, "large": sample, "plain": lambda: small(figures=True)}[kind]()
    pathlib.Path(out).write_text(fill(data, dygraphs=kind != "plain"), encoding="utf-8")


if __name__ == "__main__":
    main()
