"""Runs other programs: what scripts that measure them share."""
import os
import pathlib
import subprocess


class RunFailed(Exception):
    """A program ended with an error; the text says which and its last line."""


def failure_text(program, status, output):
    lines = output.strip().splitlines()
    return f'{program}: exit status {status}: {lines[-1] if lines else "no output"}'


def run(command, **options):
    """The finished program, with what it wrote to `stdout` and `stderr`. Raises RunFailed."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors='replace',
                              **options)
    except FileNotFoundError as missing:
        raise RunFailed(f'{command[0]}: is not installed') from missing
    if done.returncode != 0:
        raise RunFailed(failure_text(command[0], done.returncode, done.stderr or done.stdout))
    return done


def output_of(command, **options):
    return run(command, **options).stdout


def is_program(path):
    return pathlib.Path(path).is_file() and os.access(path, os.X_OK)


def measure_pairs(ours, theirs, pairs, measure):
    """[(measure(ours), measure(theirs))], one after the other, the order turned around from pair to pair."""
    found = []
    for number in range(pairs):
        order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        values = {id(side): measure(side) for side in order}
        found.append((values[id(ours)], values[id(theirs)]))
    return found
