"""The claims that experiments test: what each says, and whether a report's numbers bear it out.

A claim is a function of the report (the object of `minillm report --json`) that returns (verdict, numbers): "holds",
"does not hold" or "no conclusion", and the numbers it rests on, in words. Criteria are fixed here, before anything is
run; docs/numbers.md defines stalled, diverged and the noise floor.
"""
import math

from claim_numbers import (FAILS, HOLDS, OPEN, Open, evaluation_gaps, floor, has_ended, late_loss, losses, lowers, mean,
                           nats, number, of_layers, of_runs, state, states, steps_down, stream_of, trains, variant)

LRS = ("0.001", "0.003", "0.01")


def worse(report, name):
    """Worse than its reference, beyond the noise floor."""
    row = variant(report, name)
    verdict = {"worse": HOLDS, "better": FAILS}.get(row["verdict"], OPEN)
    return verdict, nats(row)


def no_residual(report):
    return worse(report, "no_residual")


def no_ffn(report):
    return worse(report, "no_ffn")


def same_norm(report):
    """No difference beyond the noise was found; the speeds are only reported."""
    row, base = variant(report, "layernorm"), variant(report, "baseline")
    floor(report)
    verdict = {"no_conclusion": HOLDS, "better": FAILS, "worse": FAILS}.get(row["verdict"], OPEN)
    return verdict, f"{nats(row)}; {row['tokens_per_s'] / base['tokens_per_s']:.3f} times the speed"


def gelu(report):
    """Both widths are worse than SwiGLU."""
    verdicts = [worse(report, name) for name in ("gelu_1024", "gelu_1032")]
    words = {verdict for verdict, _ in verdicts}
    return (words.pop() if len(words) == 1 else OPEN), "; ".join(numbers for _, numbers in verdicts)


def scaled_init(report):
    """Without the smaller start it is worse; at four layers a difference may be below the noise."""
    return worse(report, "residual_out_init")


def noise(report):
    """The same seed gives the same loss to the last bit; how large sigma is, is only reported."""
    floor = report["noise"]
    if floor is None or floor["same_seed_difference"] is None:
        return OPEN, "no seed was run twice"
    numbers = (f"range {floor['range']:.4f}, sigma {floor['sigma']:.4f}, 3 sigma {floor['threshold_run']:.4f} over "
               f"{floor['runs']} seeds; the same seed again differs by {floor['same_seed_difference']:g}")
    return (HOLDS if floor["same_seed_difference"] == 0 else FAILS), numbers


def cell(report, placement, lr, warmup):
    return variant(report, f"{placement}-lr={lr}-warmup_steps={warmup}")


def post_stalls(lrs, warmup):
    def claim(report):
        rows = {lr: cell(report, "post", lr, warmup) for lr in lrs}
        stalled = [row["stalled"] == row["ended"] and row["diverged"] == 0 for row in rows.values()]
        verdict = HOLDS if all(stalled) else FAILS
        return (verdict if all(map(has_ended, rows.values())) else OPEN), states(rows)
    return claim


def post_trains(report):
    row = cell(report, "post", "0.001", 100)
    unigram = report["unigram_loss"]
    return (HOLDS if trains(row, unigram) else FAILS), f"{state(row)}, unigram loss {unigram:.2f}"


def trains_without_warmup(placement):
    def claim(report):
        rows = {lr: cell(report, placement, lr, 0) for lr in LRS}
        train = [trains(row, report["unigram_loss"]) for row in rows.values()]
        return (HOLDS if all(train) else FAILS), states(rows)
    return claim


def surge(report):
    """Without warm-up post-norm's largest early gradient is above pre-norm's at every learning rate."""
    ratios = {}
    for lr in LRS:
        post, pre = (cell(report, placement, lr, 0)["grad_norm_max_first_100"] for placement in ("post", "pre"))
        ratios[lr] = math.nan if post is None or pre is None else post / pre
    numbers = "; ".join(f"lr {lr}: {ratio:.2f} times" for lr, ratio in ratios.items())
    return (HOLDS if all(ratio > 1 for ratio in ratios.values()) else FAILS), numbers


DEPTHS = (4, 12, 24, 48, 100)


def at_depths(report, placement):
    return {depth: variant(report, f"{placement}-n_layers={depth}") for depth in DEPTHS}


def pre_trains_deep(report):
    rows = at_depths(report, "pre")
    return (HOLDS if all(trains(row, report["unigram_loss"]) for row in rows.values()) else FAILS), states(rows)


def post_fails_deep(report):
    """It stalls or diverges at some depth up to 48; which one is reported, not assumed."""
    rows = at_depths(report, "post")
    failing = [depth for depth, row in rows.items() if row["stalled"] > 0 or row["diverged"] > 0]
    first = f"fails from {failing[0]} layers on" if failing else "fails at no depth"
    return (HOLDS if failing and failing[0] <= 48 else FAILS), f"{first}; {states(rows)}"


def post_oscillates(report):
    """Up to 12 layers post-norm's loss swings less than twice as wide as pre-norm's, from 48 on more than that, and
    pre-norm's at 100 layers less than twice as wide as at 4."""
    widths = {placement: {depth: row["loss_oscillation"] for depth, row in at_depths(report, placement).items()}
              for placement in ("pre", "post")}
    if any(width is None for rows in widths.values() for width in rows.values()):
        raise Open("how far some loss swings is not known")
    ratios = {depth: widths["post"][depth] / widths["pre"][depth] for depth in DEPTHS}
    deepest = widths["pre"][DEPTHS[-1]] / widths["pre"][DEPTHS[0]]
    holds = (all((ratio > 2) == (depth > 24) for depth, ratio in ratios.items() if depth != 24) and deepest < 2)
    return (HOLDS if holds else FAILS), (
        "post-norm's loss swings as wide as pre-norm's times " +
        ", ".join(f"{ratio:.2f} at {depth} layers" for depth, ratio in ratios.items()) +
        f"; pre-norm's at {DEPTHS[-1]} layers as at {DEPTHS[0]} times {deepest:.2f}")


EMBEDDING_STD = 0.02  # at the start: init_std of nn/init.h


def stream_grows(report):
    """Before training, with unscaled output matrices, the stream is within 10 % of the sum of an embedding and writes
    that are independent and all as large as the first layer's: after l layers the square of its RMS is
    e^2 + l (s_1^2 - e^2), which is e^2 (1 + 2 l) where each of the two writes a layer is as large as e. How far trained
    streams are from it, beginning at their own first layer, is only reported."""
    numbers, worst = [], 0
    for depth in DEPTHS:
        start, trained = (stream_of(report, f"{name}-n_layers={depth}") for name in ("start", "pre_unscaled"))
        square = EMBEDDING_STD ** 2
        model = [math.sqrt(square + layers * (start[0] ** 2 - square)) for layers in range(1, depth + 1)]
        off = max(abs(found / expected - 1) for found, expected in zip(start, model))
        worst = max(worst, off)
        numbers.append(f"{depth} layers: {start[-1] / EMBEDDING_STD:.2f} times the embedding where sqrt(1 + 2 l) is "
                       f"{math.sqrt(1 + 2 * depth):.2f}; at most {100 * off:.1f} % off the model; from the first layer "
                       f"to the last {start[-1] / start[0]:.2f} times, trained {trained[-1] / trained[0]:.2f}, model "
                       f"{model[-1] / model[0]:.2f}")
    return (HOLDS if worst <= 0.1 else FAILS), "; ".join(numbers)


def plain_degrades(report):
    """Some deeper plain network trains worse than the shallowest by more than 3 sigma while its largest early gradients
    are within a factor of ten, and with a residual stream the same depth does not."""
    margin = floor(report)
    shallow = variant(report, f"plain-n_layers={DEPTHS[0]}")
    found = []
    for depth in DEPTHS[1:]:
        deep = variant(report, f"plain-n_layers={depth}")
        ratio = (deep["grad_norm_max_first_100"] or math.nan) / (shallow["grad_norm_max_first_100"] or math.nan)
        plain, pre = (late_loss(report, f"{kind}-n_layers={depth}") - late_loss(report, f"{kind}-n_layers={DEPTHS[0]}")
                      for kind in ("plain", "pre"))
        if plain > margin and 0.1 < ratio < 10 and pre < margin:
            found.append(f"{depth} layers: {plain:+.4f} nats of training loss, gradients {ratio:.2g} times, "
                         f"with a stream {pre:+.4f}")
    return (HOLDS if found else FAILS), ("; ".join(found) if found else "no such depth")


def each_part_helps(report):
    rows = [variant(report, name) for name in ("plus_ffn", "plus_residual", "plus_norm")]
    losses(*rows)
    return steps_down(report, [row["delta"] for row in rows]), "; ".join(nats(row) for row in rows)


def unfair_width(report):
    """SwiGLU at 4d beside GELU at 4d has half as much again; the gap is larger than that of matched widths."""
    losses(*(variant(report, name) for name in ("swiglu_512", "gelu_512", "baseline", "gelu")))
    unfair = variant(report, "swiglu_512")["val_loss"] - variant(report, "gelu_512")["val_loss"]
    fair = variant(report, "baseline")["val_loss"] - variant(report, "gelu")["val_loss"]
    verdict = OPEN if abs(unfair - fair) < floor(report) else HOLDS if unfair < fair else FAILS
    return verdict, f"SwiGLU less GELU: {unfair:+.4f} nats at 4d each, {fair:+.4f} matched"


def wider_is_better(report):
    rows = [variant(report, name) for name in ("swiglu_128", "swiglu_256", "baseline", "swiglu_512", "swiglu_1024")]
    numbers = losses(*rows)
    steps = [right["val_loss"] - left["val_loss"] for left, right in zip(rows, rows[1:])]
    falls = all(step < floor(report) for step in steps) and rows[-1]["val_loss"] < rows[0]["val_loss"] - floor(report)
    return (HOLDS if falls else FAILS), numbers


def dead_units(report):
    relu, gelu = of_layers(report, "relu", "ffn_dead"), of_layers(report, "gelu", "ffn_dead")
    numbers = f"share of dead units: ReLU {mean(relu):.4f}, GELU {mean(gelu):.4f}; {nats(variant(report, 'relu'))}"
    return (HOLDS if mean(relu) > 0 and mean(gelu) == 0 else FAILS), numbers


def bounded_units(report):
    free = max(of_layers(report, "baseline", "ffn_largest"))
    rows = {name: max(of_layers(report, name, "ffn_largest")) for name in ("swiglu_clamp", "swiglu_oai", "situ_glu")}
    losses(*(variant(report, name) for name in rows))
    harmless = [variant(report, name)["delta"] < floor(report) for name in rows]
    numbers = f"largest value: SwiGLU {free:.3g}, " + ", ".join(f"{name} {most:.3g}" for name, most in rows.items())
    return (HOLDS if all(most < free for most in rows.values()) and all(harmless) else FAILS), numbers


DECAYS = {"0": "undecayed", "0.1": "decayed", "1": "strong_decayed"}  # weight decay, with the norms in it
FREE = {"0": "undecayed", "0.1": "baseline", "1": "strong"}            # and without


def gain_decays(report):
    """The more weight decay, the smaller a standard gain that it reaches; a zero-centered one stays nearer to 1, and at
    the strongest decay nearer than without any."""
    gains = {name: mean(of_layers(report, name, "norm_gain"))
             for decayed in DECAYS.values() for name in (decayed, f"{decayed}_zero_centered")}
    standard = [gains[name] for name in DECAYS.values()]
    centered = [gains[f"{name}_zero_centered"] for name in DECAYS.values()]
    falls = standard[0] > standard[1] > standard[2]
    stays = abs(centered[2] - 1) < min(abs(standard[2] - 1), abs(centered[0] - 1))
    return (HOLDS if falls and stays else FAILS), "; ".join(of_decay(report, decay) for decay in DECAYS)


def of_decay(report, decay):
    """Mean gain and RMS of the norms' outputs, of the variants of one weight decay, and what it does to the loss."""
    centered = {"0": "undecayed_zero_centered", "0.1": "zero_centered", "1": "strong_zero_centered"}[decay]
    names = {"decayed": DECAYS[decay], "decayed, zero-centered": f"{DECAYS[decay]}_zero_centered", "not": FREE[decay],
             "not, zero-centered": centered}
    parts = []
    for words, name in names.items():
        gain, output = (mean(of_layers(report, name, key)) for key in ("norm_gain", "norm_output"))
        parts.append(f"{words} {gain:.3f} (outputs {output:.3f})")
    return f"weight decay {decay}: gain {', '.join(parts)}; {nats(variant(report, DECAYS[decay]))}"


def two_functions(report):
    """Once through the data a training loss is one of unseen text, by the batch's statistics, in which later tokens
    take part; the validation loss is one by running averages. RMSNorm's difference of the two, over the same seeds and
    so the same batches, is what the texts make; BatchNorm's is larger beyond the noise and LayerNorm's is not."""
    base = evaluation_gaps(report, "baseline")
    excess = {}
    for name in ("batchnorm", "layernorm"):
        gaps = evaluation_gaps(report, name)
        seeds = base.keys() & gaps.keys()
        if not seeds:
            raise Open(f"no seed of {name} and baseline came to an end")
        excess[name] = mean([gaps[seed] - base[seed] for seed in seeds])
    margin = floor(report)
    numbers = "evaluation less training, above RMSNorm's: " + ", ".join(
        f"{name} {value:+.4f} nats" for name, value in excess.items()) + f"; 3 sigma {margin:.4f}"
    return (HOLDS if excess["batchnorm"] > margin > abs(excess["layernorm"]) else FAILS), numbers


def small_means(report):
    shares = of_layers(report, "layernorm", "mean_share")
    small = sum(share < 0.05 for share in shares) > len(shares) / 2
    return (HOLDS if small else FAILS), f"share of the mean in the mean square: {min(shares):.4f} to {max(shares):.4f}"


def scaled_at_depth(report):
    rows = [variant(report, f"plain-n_layers={depth}") for depth in (4, 24)]
    return (HOLDS if all(row["verdict"] == "worse" for row in rows) else
            FAILS if any(row["verdict"] == "better" for row in rows) else OPEN), "; ".join(nats(row) for row in rows)


def gate_lowers_sink(report):
    before, behind = (of_runs(report, name, "first_token_share", mean) for name in ("baseline", "elementwise"))
    return lowers(before, behind), f"mean share of the first token: {mean(before):.4f}, gated {mean(behind):.4f}"


def qk_norm_bounds(report):
    free, bounded = (of_runs(report, name, "largest_score", max) for name in ("fast", "fast_qk_norm"))
    numbers = f"largest score at lr 1e-2: {max(free):.3g}, with QK-Norm {max(bounded):.3g}"
    return lowers(free, bounded), numbers


def best_gate(report):
    rows = [variant(report, name) for name in ("elementwise", "gate_q", "gate_k", "gate_v", "gate_output")]
    numbers = losses(*rows)
    return steps_down(report, [rows[0]["val_loss"] - min(row["val_loss"] for row in rows[1:])]), numbers


def streams_help(report):
    rows = [variant(report, f"{name}-n_layers=16") for name in ("mhc", "gated", "attnres")]
    verdicts = [row["verdict"] for row in rows]
    verdict = HOLDS if set(verdicts) == {"better"} else FAILS if "worse" in verdicts else OPEN
    return verdict, "; ".join(map(nats, rows))


def not_worse(*names):
    def claim(report):
        rows = [variant(report, name) for name in names]
        floor(report)
        verdicts = {row["verdict"] for row in rows}
        verdict = FAILS if "worse" in verdicts else HOLDS if verdicts <= {"better", "no_conclusion"} else OPEN
        return verdict, "; ".join(map(nats, rows))
    return claim


def more_experts_help(report):
    rows = [variant(report, name) for name in ("baseline", "experts_4", "experts_8", "experts_16")]
    numbers = losses(*rows)
    return steps_down(report, [right["val_loss"] - left["val_loss"] for left, right in zip(rows, rows[1:])]), numbers


# experiment: [(id, what the course or its sources say, the criterion)]
CLAIMS = {
    "noise_floor": [
        ("C34", "the seed alone moves the final loss, and nothing else does", noise),
    ],
    "ablations": [
        ("C11", "without the residual stream the loss is worse, beyond the noise", no_residual),
        ("C12", "without the feed-forward network, at equal parameters, it is worse, beyond the noise", no_ffn),
        ("C13", "LayerNorm and RMSNorm cannot be told apart by the loss", same_norm),
        ("C14", "GELU is worse than SwiGLU at matched parameters", gelu),
        ("C19", "output matrices that start at 0.02 instead of 0.02/sqrt(2 n_layers) make it worse", scaled_init),
    ],
    "depth": [
        ("C06", "pre-norm trains at every depth up to 100 layers", pre_trains_deep),
        ("C06", "post-norm stalls or diverges at some depth up to 48", post_fails_deep),
        ("C06", "post-norm's loss is calm up to 12 layers and oscillates beyond 24, pre-norm's is calm at 100",
         post_oscillates),
        ("C18", "before training the stream grows as independent writes of one size make it, within 10 %",
         stream_grows),
        ("C10", "without a residual stream deeper is worse, though gradients look normal", plain_degrades),
    ],
    "ladder": [
        ("C39", "each part, added in the order feed-forward, residual, norm, lowers the loss beyond the noise",
         each_part_helps),
    ],
    "ffn": [
        ("C14", "GELU is worse than SwiGLU at matched parameters", lambda report: worse(report, "gelu")),
        ("C15", "SwiGLU at 4d beside GELU at 4d looks better than it is", unfair_width),
        ("C17", "wider is better, within the noise", wider_is_better),
        ("C21", "ReLU has dead units and GELU has none", dead_units),
        ("C29", "a clamp or a soft cap lowers the largest value and does not hurt", bounded_units),
    ],
    "norms": [
        ("C13", "LayerNorm and RMSNorm cannot be told apart by the loss", same_norm),
        ("C16", "BatchNorm in evaluation, by running averages, is another function than in training, by the batch's "
         "statistics; LayerNorm is the same", two_functions),
        ("C20", "weight decay presses a standard gain down and leaves a zero-centered one at 1", gain_decays),
        ("C25", "the mean of a token's features is small: under 5 % of its mean square in most layers", small_means),
    ],
    "residual_init": [
        ("C19", "at 4 and at 24 layers a start at 0.02 is worse than 0.02/sqrt(2 n_layers)", scaled_at_depth),
    ],
    "gates": [
        ("C26", "an output gate lowers the first token's share of attention", gate_lowers_sink),
        ("C27", "QK-Norm bounds the scores", qk_norm_bounds),
        ("C28", "behind the weighted sum is the best place for a gate", best_gate),
    ],
    "residual_streams": [
        ("C31", "at 16 layers widened and attentive streams are better than the plain one", streams_help),
    ],
    "hybrid_attention": [
        ("C32", "three layers of linear attention for one of full attention are not worse", not_worse("hybrid")),
    ],
    "moe": [
        ("C33", "at equal work a token more experts lower the loss", more_experts_help),
    ],
    "post_ln_warmup": [
        ("C01", "post-norm at 3e-3 and above, without warm-up, stalls and does not diverge",
         post_stalls(("0.003", "0.01"), 0)),
        ("C02", "with 100 steps of warm-up it still stalls there", post_stalls(("0.003", "0.01"), 100)),
        ("C03", "at 1e-3 without warm-up it stalls", post_stalls(("0.001",), 0)),
        ("C04", "at 1e-3 with warm-up it trains: 0.5 nats below the unigram loss or better", post_trains),
        ("C05", "pre-norm with a final norm trains at all three rates without warm-up", trains_without_warmup("pre")),
        ("C07", "without warm-up post-norm's gradients surge early, above pre-norm's", surge),
        ("C30", "the norm of the sublayer's output trains at all three rates without warm-up",
         trains_without_warmup("sublayer_output")),
    ],
}


def table(experiment, report):
    """Rows [id, claim, verdict, numbers]."""
    rows = []
    for name, text, criterion in CLAIMS.get(experiment, []):
        try:
            verdict, numbers = criterion(report)
        except Open as reason:
            verdict, numbers = OPEN, str(reason)
        rows.append([name, text, f"**{verdict}**", numbers])
    return rows
