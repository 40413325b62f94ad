"""Every config that states its parameters in a comment states what `minillm check --json` counts, and so do the tables
of ablations in docs/ablations.md and README.zh.md, and of presets in docs/evolution.md.

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


def table_faults(page, counts, folder):
    """What is wrong with a page's rows that link to a config and end with its parameters, one text a fault; each config
    of the folder has one."""
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\[[^\]]*\]\((?:\.\./)?(configs/[^)]*)\) \|.*?([\d,]+) \|$", text, re.M)
    told = {path: int(number.replace(",", "")) for path, number in rows}
    faults = [f"{path}: the table says {told[path]:,} parameters, check counts {counts.get(path, 0):,}"
              for path in told if told[path] != counts.get(path)]
    expected = [path for path in counts if pathlib.PurePath(path).parent == pathlib.PurePath(folder)]
    faults += [f"{path} is not in the table" for path in expected if path not in told]
    return [f"{page.name}: {fault}" for fault in faults]


def main():
    program = sys.argv[1]
    compared = 0
    wrong = 0
    counts = {}
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
        counts[str(config.relative_to(ROOT))] = found
        if found != expected:
            print(f"{config.relative_to(ROOT)}: the comment says {expected:,} parameters, check counts {found:,}")
            wrong += 1
    if compared + wrong < 10:
        print(f"only {compared + wrong} configs state their parameters")
        wrong += 1
    tables = {"docs/ablations.md": "configs/ablations", "README.zh.md": "configs/ablations",
              "docs/evolution.md": "configs/presets"}
    for page, folder in tables.items():
        for fault in table_faults(ROOT / page, counts, folder):
            print(fault)
            wrong += 1
    print(f"{compared} configs compared, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
