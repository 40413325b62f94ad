"""The course's four decisions, answered with the numbers of recorded experiments: docs/decisions.md is made of this."""
import claims

NOT_YET = "Not answered yet: `experiments/{}` has no records."


def against(row, reference):
    losses = [claims.number(one["val_loss"], ".4f") for one in (row, reference)]
    return f"{losses[0]} against {losses[1]}, {row['sentence']}"


def outcome_of(row, unigram):
    if not claims.has_ended(row):
        return "goes on"
    if row["diverged"]:
        return "diverges"
    if row["stalled"]:
        return "stalls"
    return "trains" if claims.trains(row, unigram) else "does not get half a nat below the unigram loss"


def where_the_norm_stands(reports):
    report = reports.get("post_ln_warmup")
    if report is None:
        return NOT_YET.format("post_ln_warmup")
    lines = ["| learning rate | warm-up | pre-norm | post-norm | largest early gradient, pre | post |",
             "| --- | --- | --- | --- | --- | --- |"]
    for lr in claims.LRS:
        for warmup in (0, 100):
            pre, post = (claims.cell(report, placement, lr, warmup) for placement in ("pre", "post"))
            surges = [claims.number(row["grad_norm_max_first_100"], ".2f") for row in (pre, post)]
            lines.append(f"| {lr} | {warmup} | {claims.state(pre)} | {claims.state(post)} | {surges[0]} | "
                         f"{surges[1]} |")
    hard = claims.cell(report, "pre", "0.01", 0)
    unigram = report["unigram_loss"]
    ahead = sum(1 for lr in claims.LRS for warmup in (0, 100)
                if claims.trains(claims.cell(report, "pre", lr, warmup), unigram) and
                not claims.trains(claims.cell(report, "post", lr, warmup), unigram))
    return "\n".join(lines) + (f"\n\nAt 1e-2 without warm-up pre-norm {outcome_of(hard, unigram)}: "
                              f"{claims.state(hard)}. In {ahead} of the six cells\npre-norm trains and post-norm does "
                              "not.")


def which_norm(reports):
    report = reports.get("ablations")
    if report is None:
        return NOT_YET.format("ablations")
    base, layer = claims.variant(report, "baseline"), claims.variant(report, "layernorm")
    speeds = [row["tokens_per_s"] for row in (base, layer)]
    if None in speeds:
        return f"LayerNorm {against(layer, base)}. Their speeds are not known."
    return (f"LayerNorm {against(layer, base)}. Speed alone, median of {layer['speed_measurements']}: RMSNorm "
            f"{speeds[0]:,.0f} tokens/s, "
            f"LayerNorm {speeds[1]:,.0f}, {speeds[1] / speeds[0]:.3f} times.")


def which_activation(reports):
    report = reports.get("ablations")
    if report is None:
        return NOT_YET.format("ablations")
    base = claims.variant(report, "baseline")
    lines = []
    for name in ("gelu_1024", "gelu_1032"):
        row = claims.variant(report, name)
        lines.append(f"- {name} ({row['parameters']:,} parameters, {row['parameter_difference_percent']:+.3f} %): "
                     f"{against(row, base)}.")
    return "\n".join(lines)


def how_outputs_start(reports):
    report = reports.get("ablations")
    if report is None:
        return NOT_YET.format("ablations")
    base, plain = claims.variant(report, "baseline"), claims.variant(report, "residual_out_init")
    surges = [claims.number(row["grad_norm_max_first_100"], ".2f") for row in (plain, base)]
    return (f"Started at 0.02: {against(plain, base)}. Largest gradient of the first 100 steps {surges[0]} instead of "
            f"{surges[1]}.")


def answer(decide, reports):
    """What fills a decision's place: records of a part of a suite leave it open."""
    try:
        return decide(reports)
    except claims.Open as reason:
        return f"Not answered yet: {reason}."


# place in docs/decisions.md: what fills it
DECISIONS = {
    "norm_position": where_the_norm_stands,
    "norm": which_norm,
    "activation": which_activation,
    "output_init": how_outputs_start,
}
