"""Every config that states its parameters in a comment states what `minillm check --json` counts.

    config_counts_test.py PROGRAM
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def stated(config):
    match = re.search(r"^#.*?\b(\d{1,3}(?:,\d{3})+) parameters", config.read_text(encoding="utf-8"), re.M)
    return int(match.group(1).replace(",", "")) if match else None


def main():
    program = sys.argv[1]
    compared = 0
    wrong = 0
    for config in sorted((ROOT / "configs").rglob("*.toml")):
        expected = stated(config)
        if expected is None:
            continue
        done = subprocess.run([program, "check", str(config), "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{config.relative_to(ROOT)}: check failed ({done.returncode}): {done.stderr.strip()}")
            wrong += 1
            continue
        found = json.loads(done.stdout)["parameters"]
        compared += 1
        if found != expected:
            print(f"{config.relative_to(ROOT)}: the comment says {expected:,} parameters, check counts {found:,}")
            wrong += 1
    if compared + wrong < 10:
        print(f"only {compared + wrong} configs state their parameters")
        wrong += 1
    print(f"{compared} configs compared, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
