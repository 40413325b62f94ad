#!/usr/bin/python3 -B
"""Runs the session that docs/step_through.md records, and compares it with the page.

    scripts/gdb/tour.py PROGRAM [--write]

--write puts what gdb said now into the page, after lines that moved in the sources were looked up again. A line that is
"..." alone stands for lines left out, and stays. Needs gdb and a program of the step or debug build.

What is left out of gdb's words, so that they are the same from build to build: addresses, arguments of frames, answers
to tbreak and skip, threads; paths begin at the tree's root.
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "step_through.md"
TRANSLATION = ROOT / "docs" / "step_through.zh.md"  # other words around the same blocks
PROMPT = "(gdb) "
MARK = "=== command "

# Run inside gdb: each command behind a line that says which it is.
DRIVER = """
import json, gdb
for number, command in enumerate(json.load(open({path!r}))):
    gdb.write({mark!r} + str(number) + "\\n")
    try:
        gdb.execute(command)
    except gdb.error as error:
        gdb.write(str(error) + "\\n")
        if command.startswith(("tbreak", "break", "ml-break")):
            break  # without it the program would run to its end
    gdb.flush()
"""

NOISE = re.compile(r"\[(Thread debugging|New Thread|Switching to|Thread .* exited|Inferior \d+ )|"
                   r"Using host libthread_db|warning: Error disabling address|(Temporary b|B)reakpoint \d+(:| at )|"
                   r"Function\(s\) .* will be skipped|Run till exit from|\s*$")
FRAME = re.compile(r"^((?:(?:Temporary b|B)reakpoint [\d.]+, )?)(#\d+ +)?(?:in )?(\S.*?) \(.*\) at (\S+):(\d+)$")


def in_tree(path):
    """core/rng.h, however the compiler was told of it."""
    found = re.search(r"(?:^|/)((?:core|autograd|nn|optim|data|formats|generate|train|suite|cli|tests)/.*)$", path)
    return found.group(1) if found else path


def plain(line):
    """A line of gdb's as the page has it; None when it is left out."""
    line = re.sub(r'^Thread \d+ "[^"]*" hit ', "", line.rstrip())
    if NOISE.match(line):
        return None
    frame = FRAME.match(line)
    if frame:
        stop, depth, name, path, number = frame.groups()
        return f"{stop and 'Breakpoint, '}{depth or ''}{name} ... at {in_tree(path)}:{number}"
    return re.sub(r"^(\d+)\t", lambda number: number.group(1).ljust(8), line)


def run_gdb(arguments, commands, options=(), folder=ROOT):
    """What gdb says to each command: lists of lines. It loads .gdbinit of the tree's root as it does for anybody."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "commands.json")
        pathlib.Path(path).write_text(json.dumps(list(commands)), encoding="utf-8")
        driver = os.path.join(scratch, "driver.py")
        pathlib.Path(driver).write_text(DRIVER.format(path=path, mark=MARK), encoding="utf-8")
        done = subprocess.run(
            ["gdb", "-nh", "-batch", "-iex", f"add-auto-load-safe-path {ROOT}", "-ex", "set inferior-tty /dev/null",
             "-ex", "set breakpoint pending off", *options, "-x", driver, "--args", *map(str, arguments)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            errors="replace", timeout=1200, check=False, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    said = [[] for _ in commands]
    at = None
    for line in done.stdout.splitlines():
        before, mark, number = line.partition(MARK)
        if at is not None and (before or not mark):
            said[at].append(before)
        if mark:
            at = int(number)
    if at is None:
        raise RuntimeError(f"gdb did not start:\n{done.stdout}")
    return said


def session(program, commands, folder, arguments):
    """The same, of a run of the page's command line, in the page's words."""
    words = shlex.split(arguments)
    words[words.index("--out") + 1] = os.path.join(folder, "run")
    said = run_gdb([program, *words], commands)
    return [[line for line in map(plain, lines) if line is not None] for lines in said]


# --- the page ---

def command_line(text):
    """What the page tells to give the program: the words behind build/step/minillm."""
    return re.search(r"^gdb --args build/step/minillm (.*)$", text, re.M).group(1)


def blocks(text):
    """Spans of the code blocks that hold a session."""
    return [found.span(1) for found in re.finditer(r"^```\n(\(gdb\) .*?)^```$", text, re.M | re.S)]


def exchanges(block):
    """[command, [line, ...]] of a block."""
    found = []
    for line in block.splitlines():
        if line.startswith(PROMPT):
            found.append([line[len(PROMPT):], []])
        else:
            found[-1][1].append(line)
    return found


def of_page(text):
    return [it for begin, end in blocks(text) for it in exchanges(text[begin:end])]


def fits(expected, said):
    """Whether the lines are the same, where "..." alone stands for any lines."""
    if not expected:
        return not said
    if expected[0] == "...":
        return any(fits(expected[1:], said[i:]) for i in range(len(said) + 1))
    return bool(said) and expected[0] == said[0] and fits(expected[1:], said[1:])


def differences(text, answers):
    """One text for each command that gdb answers otherwise than the page says."""
    found = []
    for (command, expected), said in zip(of_page(text), answers):
        if not fits(expected, said):
            found.append(PROMPT + command + "\n" + "\n".join(difflib.ndiff(expected, said)))
    return found


def with_elisions(expected, said):
    """The new lines, shortened where the page shortens the old ones: as many lines before and behind each "..."."""
    if "..." not in expected:
        return said
    first = expected.index("...")
    last = len(expected) - expected[::-1].index("...")
    behind = len(expected) - last
    return said[:first] + ["..."] + (said[-behind:] if behind else [])


def recorded(text, answers):
    """The page with these answers."""
    answers = iter(answers)
    parts, at = [], 0
    for begin, end in blocks(text):
        parts.append(text[at:begin])
        for command, expected in exchanges(text[begin:end]):
            parts.append("\n".join([PROMPT + command, *with_elisions(expected, next(answers))]) + "\n")
        at = end
    return "".join(parts) + text[at:]


def with_blocks_of(page, translation):
    """The translation with the page's code blocks, one for one."""
    ours = iter(re.findall(r"^```.*?^```$", page, re.M | re.S))
    return re.sub(r"^```.*?^```$", lambda old: next(ours, old.group()), translation, flags=re.M | re.S)


def relocated(text):
    """The page with the lines of tbreak commands where their text is now: what the next stop shows."""
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        wanted = re.match(r"\(gdb\) tbreak ([\w/.]+):(\d+)", line)
        if not wanted:
            continue
        shown = next((re.match(rf"{wanted.group(2)} +(.*)\n", later) for later in lines[i:]
                      if re.match(rf"{wanted.group(2)} +\S", later)), None)
        if not shown:
            continue
        source = [it.strip() for it in (ROOT / wanted.group(1)).read_text(encoding="utf-8").splitlines()]
        at = int(wanted.group(2))
        if source[at - 1:at] != [shown.group(1)] and source.count(shown.group(1)) == 1:
            lines[i] = line.replace(f":{at}", f":{source.index(shown.group(1)) + 1}")
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--write", action="store_true", help="put what gdb says now into the page")
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    if options.write:
        text = relocated(text)
    with tempfile.TemporaryDirectory() as folder:
        answers = session(os.path.abspath(options.program), [it[0] for it in of_page(text)], folder,
                          command_line(text))
    if options.write:
        text = recorded(text, answers)
        PAGE.write_text(text, encoding="utf-8")
        TRANSLATION.write_text(with_blocks_of(text, TRANSLATION.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    found = differences(text, answers)
    print("\n\n".join(found) or f"{PAGE.name}: {len(answers)} commands, all answered as recorded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
