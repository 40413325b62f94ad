"""Sessions that end, begin or look otherwise than the usual ones: each of these once lost something."""
import json
import os
import resource
import shutil
import signal
import subprocess

import support

STEADY = {"train__eval_every": 0, "train__steps": 4000, "optim__schedule": "constant"}


class Settings(support.Case):
    def kill_behind(self, size, *arguments):
        process = self.start_program("train", *arguments)
        self.wait_for(lambda: self.metrics_size("run") > size, process)
        process.kill()
        process.wait()

    def test_settings_of_a_session_that_was_killed_before_its_first_checkpoint(self):
        run = self.train("run", train__eval_every=0)
        self.kill_behind(self.metrics_size(run) + 500, "--resume", run, "train.steps=1000000", "optim.lr=0.002",
                         "train.checkpoint_every=0")
        done = self.run_program("train", "--resume", run, "train.steps=20")
        self.assertIn("changed at resume: optim.lr = 0.002 (was 0.01)", done.stderr)
        self.assertIn("lr = 0.002", self.path(run, "config.toml").read_text())
        self.assertEqual(len(self.losses(run)), 20)

    def test_the_best_checkpoint_of_steps_that_are_not_taken_again(self):
        config = self.config("run", **{**STEADY, "train__eval_every": 5, "train__checkpoint_every": 100,
                                       "train__steps": 1000000})
        self.run_program("train", config, "--out", "run", "train.steps=100")
        best = self.path("run", "checkpoints", "best.h5")
        before = best.read_bytes()
        process = self.start_program("train", "--resume", "run", "train.steps=1000000", "train.checkpoint_every=0")
        self.wait_for(lambda: best.read_bytes() != before, process)
        process.kill()
        process.wait()
        done = self.run_program("train", "--resume", "run", "optim.lr=0.5", "train.steps=110")
        self.assertIn("best.h5 was of steps that are not taken again", done.stderr)
        later = {step: loss for step, loss in self.evaluations("run") if step > 100}
        self.assertEqual(self.json_of("eval", "run", "--checkpoint", "best")["step"], min(later, key=later.get))

    def test_the_schedule_is_compared_not_its_name(self):
        self.run_program("train", self.config("half", train__max_minutes=1e-9), "--out", "half")
        done = self.run_program("train", "--resume", "half", "train.steps=30", "train.max_minutes=0")
        self.assertIn("warning: the cosine schedule runs otherwise now", done.stderr)
        self.run_program("train", self.config("flat", **STEADY, train__max_minutes=1e-9), "--out", "flat")
        done = self.run_program("train", "--resume", "flat", "train.steps=20", "train.max_minutes=0")
        self.assertNotIn("schedule", "".join(line for line in done.stderr.splitlines() if "warning" in line))


class Records(support.Case):
    def test_the_record_says_where_weights_came_from(self):
        self.train("source")
        self.run_program("train", self.config("run"), "--out", "run", "--init", "source")
        init = json.loads(self.path("run", "summary.json").read_text())["init"]
        self.assertRegex(init, r"^source/checkpoints/step_000012\.h5 \(sha256 [0-9a-f]{64}\)$")
        self.run_program("train", "--resume", "run", "train.steps=14")
        self.assertEqual(json.loads(self.path("run", "summary.json").read_text())["init"], init)
        self.assertEqual(json.loads(self.path("source", "summary.json").read_text())["init"], "")

    def test_a_run_without_its_folder_of_checkpoints_is_left_alone(self):
        run = self.train("run")
        shutil.rmtree(self.path(run, "checkpoints"))
        before = self.lines(run)
        self.assertIn("checkpoints is missing", self.refused("train", "--resume", run))
        self.assertEqual(self.lines(run), before)

    def test_advice_is_never_what_is_refused_next(self):
        run = self.train("run")
        best = self.path(run, "checkpoints", "best.h5")
        for path in self.path(run, "checkpoints").glob("step_*.h5"):
            path.write_bytes(path.read_bytes()[:-1])
        self.assertNotIn("--init", self.refused("train", self.config("run"), "--out", run))
        said = self.refused("train", "--resume", run)
        self.assertIn("no checkpoint of the run's steps can be read", said)
        self.assertIn(f"start another run, with --init {run}/checkpoints/best.h5", said)
        self.run_program("train", self.config("run"), "--init", f"{run}/checkpoints/best.h5", "--out", "other")
        best.write_bytes(best.read_bytes()[:-1])
        self.assertNotIn("--init", self.refused("train", "--resume", run))

    def test_a_resume_that_cannot_write_leaves_the_summary(self):
        run = self.train("run")
        self.path(run, "samples.jsonl").unlink()
        self.path(run, "samples.jsonl").mkdir()
        self.assertIn("samples.jsonl: cannot be written", self.refused("train", "--resume", run, "train.steps=14"))
        self.assertTrue(self.path(run, "summary.json").exists())

    def test_others_may_name_files_as_we_do(self):
        run = self.train("run")
        gone = subprocess.Popen(["true"])
        gone.wait()
        others = [self.path(run, f"thesis.tmp.{gone.pid}"), self.path(run, "checkpoints", f"notes.tmp.{gone.pid}")]
        for path in others:
            path.write_text("precious")
        self.run_program("train", "--resume", run, "train.steps=14")
        self.assertEqual([path.read_text() for path in others], ["precious"] * 2)

    def test_evaluating_beside_a_run_that_replaces_its_checkpoints(self):
        config = self.config("run", **{**STEADY, "train__steps": 10000000, "train__checkpoint_every": 1,
                                       "train__keep_checkpoints": 1})
        process = self.start_program("train", config, "--out", "run")
        self.wait_for(lambda: self.metrics_size("run") > 500, process)
        for _ in range(40):
            self.run_program("eval", "run", "--tokens", 16)


class Beginnings(support.Case):
    def test_closed_standard_streams_do_not_end_up_in_files(self):
        config = self.config("run")
        script = f'"{support.PROGRAM}" train {config} --out run <&- >&- 2>&-'
        subprocess.run(["sh", "-c", script], cwd=self.folder, env=support.ENVIRONMENT, check=True, timeout=600)
        self.assertEqual(len(self.metrics("run")), 13)
        self.assertEqual(self.path("run", "samples.jsonl").read_bytes(), b"")
        self.run_program("train", "--resume", "run", "train.steps=14")

    def test_a_config_from_a_pipe(self):
        text = (self.folder / self.config("run")).read_text()
        done = subprocess.run([support.PROGRAM, "check", "/dev/stdin", "model.vocab_size=64"], input=text, text=True,
                              cwd=self.folder, env=support.ENVIRONMENT, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_names_that_no_file_system_takes(self):
        self.assertIn("File name too long", self.refused("check", "a" * 300 + ".toml"))
        os.symlink("loop.toml", self.folder / "loop.toml")
        self.assertIn("Too many levels of symbolic links", self.refused("check", "loop.toml"))
        for i in range(50):
            (self.folder / f"{i}.toml").write_text(f'base = "{i + 1}.toml"\n')
        (self.folder / "50.toml").write_text("")
        self.assertIn("too many base files; expected at most 32", self.refused("check", "0.toml"))
        odd = "x\ty.toml"
        shutil.copy(self.folder / self.config("run"), self.folder / odd)
        self.assertIn("run.name: is not a plain name", self.refused("train", odd))
        self.assertFalse(self.path("runs").exists())
        self.assertIn("holds a NUL", self.refused("train", "run.toml", 'run.out="x\\u0000y"'))

    def test_values_at_the_edge_of_their_type(self):
        config = self.config("run")
        self.assertIn("found 9007199254740993", self.refused("check", config, "train.steps=9007199254740993"))
        self.assertIn("found 1e-39", self.refused("check", config, "optim.eps=1e-39"))
        self.assertIn("found 1e-50", self.refused("check", config, "model.norm_eps=1e-50"))
        self.assertIn("found .5, which TOML does not read as a number", self.refused("check", config, "optim.lr=.5"))
        self.assertIn("rotates no pair of a head of 8, so positions would not show; found 0.01; expected at least",
                      self.refused("check", config, "model.rope_fraction=0.01"))
        self.assertIn("do not fit this machine's memory",
                      self.refused("train", config, "model.max_seq_len=2000000000", "model.d_model=512"))

    def test_many_problems_stay_readable(self):
        (self.folder / "many.toml").write_text("[model]\n" + "".join(f"no_such_{i} = 1\n" for i in range(3000)))
        said = self.refused("check", "many.toml")
        self.assertIn("many.toml:21: unknown key model.no_such_19", said)
        self.assertTrue(said.endswith("\nand 2980 more problems"), said[-200:])
        self.assertEqual(said.count("the keys of [model] are"), 1)
        (self.folder / "long.toml").write_text(f"[model]\n{'k' * 200000} = 1\n")
        self.assertLess(len(self.refused("check", "long.toml")), 5000)
        for word in (".=3", "optim.=3", ".lr=3"):
            self.assertIn("not an override", self.refused("check", self.config("run"), word))
        said = self.refused("check", self.config("run"), "optim.lr=1\n[model]\nd_model=77")
        self.assertEqual(said.count("\n"), 0, said)

    def test_places_that_are_nearly_right(self):
        run = self.train("run")
        self.assertIn("the run is run", self.refused("generate", f"{run}/checkpoints"))
        os.symlink("nowhere", self.folder / "link")
        self.assertIn("a link to a folder that does not exist", self.refused("train", "run.toml", "--out", "link"))

    def test_initial_weights_that_are_not_finite(self):
        self.train("source")
        header = {"__metadata__": {}}
        values = b""
        for name, shape in (("a", [1]),):
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(values), len(values) + 4]}
            values += b"\x00\x00\xc0\x7f"
        text = json.dumps(header).encode()
        (self.folder / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + values)
        self.refused("train", self.config("run"), "--out", "run", "--init", "w.safetensors")
        self.assertFalse(self.path("run").exists())

    def test_a_model_with_more_ids_than_its_tokenizer(self):
        config = self.config("run", model__vocab_size=500, train__sample_every=2)
        self.run_program("train", config, "--out", "run")
        self.assertEqual(len(self.path("run", "samples.jsonl").read_text().splitlines()), 6)
        for seed in range(5):
            ids = self.json_of("generate", "run", "--seed", seed, "--temperature", 5, "--top-p", 1)["token_ids"]
            self.assertLess(max(ids, default=0), 64)


class Endings(support.Case):
    """What ends a run from outside and must not cost what it has learned."""

    def long_run(self):
        return self.config("run", **{**STEADY, "train__steps": 10000000, "train__checkpoint_every": 0})

    def test_a_reader_of_the_progress_that_goes_away(self):
        process = self.start_program("train", self.config("run"), "--out", "run")
        process.stderr.close()  # `2>&1 | head`
        self.assertEqual(process.wait(timeout=120), 0)
        self.assertEqual(json.loads(self.path("run", "summary.json").read_text())["end"], "finished")

    def test_a_terminal_or_a_time_limit_that_ends(self):
        for number in (signal.SIGHUP, signal.SIGXCPU):
            with self.subTest(number):
                process = self.start_program("train", self.long_run(), "--out", number.name)
                self.wait_for(lambda: self.metrics_size(number.name) > 500, process)
                process.stderr.close()
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=120), 3)
                steps = len(self.losses(number.name))
                self.assertTrue(self.path(number.name, "checkpoints", f"step_{steps:06}.h5").exists())

    def test_no_descriptor_left(self):
        config = self.config("run")
        refused = 0
        for limit in range(5, 9):
            limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}
            done = self.run_program("train", config, "--out", f"run{limit}", status=None, **limited)
            if done.returncode != 0 and "Too many open files" in done.stderr:
                refused += 1
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ulimit -n", done.stderr)
        self.assertGreater(refused, 0)


if __name__ == "__main__":
    support.main()
