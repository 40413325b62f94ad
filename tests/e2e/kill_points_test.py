"""kill -9 before and after the system calls of a whole run, and what a resume makes of it.

Here some moments are tried; kill_points_slow_test.py tries more than a hundred. That no moment of a save is lost is the
subject of tests/train/kill_test.cpp.
"""
import ctypes
import os
import signal

import support

TRACE_ME = 0
TRACE_SYSTEM_CALL = 24

SETTINGS = {"train__steps": 3, "train__checkpoint_every": 1, "train__keep_checkpoints": 1, "train__eval_every": 1,
            "train__sample_every": 2, "model__dropout": 0.1, "optim__warmup_steps": 1}


class Traced:
    """The program under ptrace, stopped before and after each of its system calls."""

    def __init__(self, arguments, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.process = os.fork()
        if self.process == 0:
            self.become_program(arguments, folder)
        _, self.status = os.waitpid(self.process, 0)

    def become_program(self, arguments, folder):
        try:
            os.chdir(folder)
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silent, descriptor)
            self.libc.ptrace(TRACE_ME, 0, None, None)
            # The leak checker of a sanitized program traces too; two cannot.
            options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
            os.execve(support.PROGRAM, [support.PROGRAM, *arguments], {**support.ENVIRONMENT, "ASAN_OPTIONS": options})
        finally:
            os._exit(99)

    def stopped(self):
        return os.WIFSTOPPED(self.status)

    def go_on(self):
        """To the next stop; a signal that came meanwhile is not passed on."""
        self.libc.ptrace(TRACE_SYSTEM_CALL, self.process, None, None)
        _, self.status = os.waitpid(self.process, 0)

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        _, self.status = os.waitpid(self.process, 0)


class KillPoints(support.Case):
    MOST = 16  # moments to try

    def test_a_kill_at_any_system_call(self):
        expected = self.train("straight", **SETTINGS)
        config = self.config("killed", **SETTINGS)
        arguments = ["train", config, "--out", "killed"]
        first, end = self.moments_of_a_run(arguments)
        stride = (end - first) // self.MOST | 1  # odd: stops before and after a call alternate
        for stop in range(first, end + stride, stride):
            with self.subTest(stop=stop):
                support.shutil.rmtree(self.path("killed"), ignore_errors=True)
                self.run_and_kill_at(stop, arguments)
                self.go_on(arguments)
                self.assert_same_run("killed", expected)
                self.assertEqual(self.digest_of(self.path("killed", "checkpoints", "best.h5")),
                                 self.digest_of(self.path(expected, "checkpoints", "best.h5")))
                self.assertEqual(self.path("killed", "samples.jsonl").read_bytes(),
                                 self.path(expected, "samples.jsonl").read_bytes())
                summary = support.json.loads(self.path("killed", "summary.json").read_text())
                self.assertEqual(summary["steps"], 3)

    def moments_of_a_run(self, arguments):
        """The number of the stop at which the run's folder appears, and that of the last one."""
        traced = Traced(arguments, self.folder)
        if not traced.stopped():
            self.skipTest("tracing a child is not allowed here")
        count = 0
        first = None
        while traced.stopped():
            traced.go_on()
            count += 1
            if first is None and self.path("killed").exists():
                first = count - 2
        self.assertEqual(os.waitstatus_to_exitcode(traced.status), 0)
        self.assertGreater(count - first, 100)
        return first, count

    def run_and_kill_at(self, stop, arguments):
        traced = Traced(arguments, self.folder)
        for _ in range(stop):
            if not traced.stopped():
                return
            traced.go_on()
        if traced.stopped():
            traced.kill()

    def go_on(self, arguments):
        """What a user does: resume, or start again when there is nothing to resume yet."""
        if self.path("killed", "config.toml").exists():
            self.run_program("train", "--resume", "killed")
        else:
            self.run_program(*arguments)


if __name__ == "__main__":
    support.main()
