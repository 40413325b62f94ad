"""What the claims of claims.py read from a report, the object of `minillm report --json`."""
import math

HOLDS, FAILS, OPEN = "holds", "does not hold", "no conclusion"


class Open(Exception):
    """Why a claim can be neither borne out nor refuted by a report."""


def variant(report, name):
    for row in report["variants"]:
        if row["name"] == name:
            return row
    raise Open(f"{name} was not run")


def number(value, form):
    return "none" if value is None else format(value, form)


def nats(row):
    if row["delta"] is None:
        return f"{row['name']} {number(row['val_loss'], '.4f')}"
    sigmas = "" if row["delta_sigmas"] is None else f", {row['delta_sigmas']:+.1f} sigma"
    return f"{row['name']} {row['val_loss']:.4f}, {row['delta']:+.4f} nats{sigmas}"


def has_ended(row):
    return row["ended"] == len(row["runs"]) > 0


def trains(row, unigram):
    """All its runs ended half a nat below the loss of a model that knows frequencies alone."""
    return (row["stalled"] == 0 and row["diverged"] == 0 and row["val_loss"] is not None and
            row["val_loss"] < unigram - 0.5)


def floor(report):
    """Three sigma. A claim that needs it stays open where it rests on too few seeds."""
    if report["noise"] is None or report["noise"]["runs"] < 5:
        raise Open("the noise floor rests on fewer than five seeds")
    return report["noise"]["threshold_run"]


def state(row):
    flags = [f"{row[flag]} of {row['ended']} {flag}" for flag in ("stalled", "diverged") if row[flag]]
    loss = "no loss" if row["val_loss"] is None else f"{row['val_loss']:.2f}"
    return loss + (f" ({', '.join(flags)})" if flags else "")


def states(rows):
    return "; ".join(f"{row['name']}: {state(row)}" for row in rows.values())


def stream_of(report, name):
    """Behind each layer, the RMS of the stream: the mean over a variant's runs."""
    runs = [report["runs"][index]["layers"] for index in variant(report, name)["runs"]]
    if not runs or any(not layers for layers in runs):
        raise Open(f"the layers of {name} are not known")
    return [mean([layer["stream_rms"] for layer in of_runs]) for of_runs in zip(*runs)]


def last_tenth(run):
    """The training losses of its last tenth that are there."""
    return [loss for loss in run["loss"][-max(1, len(run["loss"]) // 10):] if loss is not None]


def late_loss(report, name):
    """Mean training loss of the last tenth of the steps, over a variant's runs."""
    return mean([loss for index in variant(report, name)["runs"] for loss in last_tenth(report["runs"][index])])


def losses(*rows):
    if any(row["val_loss"] is None for row in rows):
        raise Open("a final loss is missing: " + states({row["name"]: row for row in rows}))
    return "; ".join(f"{row['name']} {row['val_loss']:.4f}" for row in rows)


def of_layers(report, name, key):
    """A statistic of the layers of the variant's runs at their end: every value that is there."""
    runs = [report["runs"][index] for index in variant(report, name)["runs"]]
    found = [layer[key] for run in runs for layer in run["layers"] or [] if layer.get(key) is not None]
    if not found:
        raise Open(f"no {key} of {name} is known")
    return found


def of_runs(report, name, key, reduce):
    """The same reduced to one number a run."""
    found = [reduce([layer[key] for layer in report["runs"][index]["layers"] or [] if layer.get(key) is not None])
             for index in variant(report, name)["runs"] if report["runs"][index]["layers"]]
    if not found:
        raise Open(f"no {key} of {name} is known")
    return found


def lowers(before, behind):
    """Every run behind lies below every run before; fails where none does."""
    return HOLDS if max(behind) < min(before) else FAILS if min(behind) >= max(before) else OPEN


def mean(values):
    return sum(values) / len(values) if values else math.nan


def steps_down(report, steps):
    """Each of the differences is an improvement beyond the noise; fails where one is the opposite."""
    margin = floor(report)
    return HOLDS if all(step < -margin for step in steps) else FAILS if any(step > margin for step in steps) else OPEN


def evaluation_gaps(report, name):
    """{seed: final validation loss less the late training loss} of a variant's runs."""
    runs = [report["runs"][index] for index in variant(report, name)["runs"]]
    return {run["seed"]: run["val_loss"][-1] - mean(last_tenth(run))
            for run in runs if run["state"] == "finished" and run["val_loss"] and last_tenth(run)}
