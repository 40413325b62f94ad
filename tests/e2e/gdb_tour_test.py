"""gdb on a program of the step or debug build: the tour of docs/step_through.md line by line, presses of `step` from
the tape's loop to kernels, printers and commands on a core dump.

Skipped (77) without gdb, where gdb may not trace, and for builds that are not made to step through.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import support

sys.path.insert(0, str(support.ROOT / "scripts" / "gdb"))
import tour

SETTINGS = "train.kernels=reference train.threads=1"
LOOP = "current.backward(*this);"

# op, train.ops, its kernel: five ways a backward comes to its loop.
OPS = (("softmax", "composed", "softmax_backward_reference"),
       ("log_softmax", "composed", "log_softmax_backward_reference"),
       ("rmsnorm", "fused", "rmsnorm_backward_reference"),
       ("causal_attention", "fused", "attention_backward_reference"),
       ("cross_entropy", "fused", "cross_entropy_backward_reference"))


def why_not():
    """Why there is nothing to test here, or None."""
    if shutil.which("gdb") is None:
        return "no gdb"
    tried = subprocess.run(["gdb", "-nx", "-batch", "-ex", "run", "/bin/true"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
    if "exited normally" not in tried.stdout:
        return "gdb may not trace here"
    asked = subprocess.run(["gdb", "-nx", "-batch", "-ex", "list minillm::Tape::clear", "-ex", "info source",
                            support.PROGRAM], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    producer = re.search(r"[Pp]roducer.*", asked.stdout)
    flags = shlex.split(producer.group().replace('"', " ")) if producer else []
    if not producer or "-fsanitize" in " ".join(flags) or not {"-Og", "-O0"} & set(flags):
        return "not a build to step through"
    return None


def line_of(path, text):
    lines = (support.ROOT / path).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if line.strip() == text]
    if len(found) != 1:
        raise AssertionError(f"{path} says {len(found)} times {text}")
    return found[0]


class GdbTour(support.Case):
    def arguments(self, ops="composed"):
        return [support.PROGRAM, "train", support.ROOT / "configs" / "tiny.toml", *SETTINGS.split(),
                f"train.ops={ops}", "--out", self.folder / "run", "--force"]

    # --- the page ---

    def test_page(self):
        text = tour.PAGE.read_text(encoding="utf-8")
        commands = [command for command, _ in tour.of_page(text)]
        self.assertGreaterEqual(len(re.findall(r"^### \d+[.] ", text, re.M)), 10, "ten stops")
        answers = tour.session(support.PROGRAM, commands, str(self.folder), tour.command_line(text))
        found = tour.differences(text, answers)
        self.assertEqual(found, [], "\n\n" + "\n\n".join(found))
        for command, said in zip(commands, answers):
            self.assertNotRegex("\n".join(said), r"optimized out|No symbol|0x[0-9a-f]", command)
        # A digit, a line or an answer that changes is seen.
        command, said = next((c, a) for c, a in zip(commands, answers) if c == "print sum")
        self.assertRegex(said[0], r"= \d")
        changed = text.replace(said[0], said[0] + "1")
        self.assertEqual(len(tour.differences(changed, answers)), 1)
        for at in range(0, len(answers), 7):
            self.assertNotEqual(tour.differences(text, answers[:at] + [answers[at] + ["more"]] + answers[at + 1:]), [])

    # --- presses ---

    def steps_of(self, op, ops):
        """(presses to the first line of the backward, functions and lines from there to the first other function)."""
        loop = line_of("autograd/tape.cpp", LOOP)
        where = ("python f = gdb.selected_frame(); caller = f.older(); "
                 "print('AT', f.name(), '|', f.find_sal().line, '|', caller.name())")
        commands = [f'tbreak autograd/tape.cpp:{loop} if $_streq(current.op, "{op}")', "run", where]
        commands += ["step", where] * 20
        said = tour.run_gdb(self.arguments(ops), commands)
        places = [line[3:].split(" | ") for lines in said for line in lines if line.startswith("AT ")]
        self.assertEqual(places[0][0], "minillm::Tape::backward(minillm::Var, double)".split("(")[0], said[:3])
        return [(name.partition("(minillm")[0], int(line), caller) for name, line, caller in places]

    def test_presses(self):
        table = []
        for op, ops, kernel in OPS:
            with self.subTest(op):
                places = self.steps_of(op, ops)
                names = [name for name, _, _ in places]
                presses = next(i for i, name in enumerate(names) if name.endswith("::backward") and "Node" in name)
                self.assertLessEqual(presses, 2)
                in_kernel = next(i for i, name in enumerate(names) if "minillm::kernels::" in name)
                self.assertIn(kernel, names[in_kernel])
                self.assertIn("Node", places[in_kernel][2], "the kernel's caller is the op's backward")
                self.assertEqual(set(names[presses:in_kernel]), {names[presses]}, "nothing is entered on the way")
                lines = [line for _, line, _ in places[in_kernel:in_kernel + 6]]
                self.assertGreaterEqual(len(set(lines)), 4, "a press in the kernel is a line")
                table.append(f"{op}: {presses} to its backward, {in_kernel - presses} more to {kernel}")
        print("\n".join(table))

    # --- a core dump ---

    def test_core_dump(self):
        looking = ["print tape", "ml-tape 130 140", "ml-node 138", "ml-grad #138", "ml-stats", "ml-model",
                   "print *this", "ml-plot grad", "backtrace 3", "up 3", "print batch_", "ml-grad model.norm.weight"]
        core = self.folder / "core"
        live = tour.run_gdb(self.arguments(), ["set print address off", "ml-break softmax backward", "run", *looking,
                                               f"generate-core-file {core}", "kill"])[3:3 + len(looking)]
        dead = tour.run_gdb([support.PROGRAM], ["set print address off", f"core-file {core}", *looking])[2:]
        self.assertIn("Tape of 177 nodes", live[0][0])
        self.assertGreater(len(live[1]), 11)
        for command, one, other in zip(looking, live, dead):
            self.assertEqual(one, other, command)
        self.assertIn('inputs[0] = " the blue stone again.', "\n".join(live[looking.index("print batch_")]))

    # --- the commands one by one ---

    def test_stops(self):
        commands = ["ml-break sigmoid forward", "run", "backtrace 1", "delete", "ml-break scale backward", "continue",
                    'print $ml_is_op("scale")', "ml-watch model.norm.weight.grad 3",
                    "ml-watch model.norm.weight.grad 16",
                    "ml-watch #3.grad", "ml-node 900", "ml-grad model.norm.wei", "ml-grad model.norm.wieght",
                    "ml-tape x y z", "ml-break"]
        said = ["\n".join(lines) for lines in tour.run_gdb(self.arguments(), commands)]
        for command, text, expected in zip(commands, said, (
                r"Breakpoint 1: sigmoid, forward", r"minillm::sigmoid", r"#0 .*minillm::sigmoid", r"^$",
                r"Breakpoint 2: scale, backward", r"Scale>::backward", r"= 1$",
                r"[Ww]atchpoint 3: model.norm.weight.grad \[3\], now -?\d", r"has 16 elements",
                r"[Ww]atchpoint 4: the memory of #3 reshape model \(16,32,16\) .grad, now none",
                r"#0 to #176, not #900",
                r"there is model.norm.weight", r"there is model.norm.weight",
                r"usage: ml-tape", r"usage: ml-break OP")):
            self.assertRegex(text, expected, command)


if __name__ == "__main__":
    support.PROGRAM = str(pathlib.Path(sys.argv[1]).absolute()) if len(sys.argv) > 1 else ""
    reason = why_not()
    if reason:
        print(f"gdb_tour_test: {reason}")
        sys.exit(77)
    support.main()
