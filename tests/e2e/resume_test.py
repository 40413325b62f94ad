"""A run stopped anywhere and resumed is the run that never stopped: the same metrics and weights, bit for bit."""
import random
import signal

import support

# Dropout, shuffled order, several epochs' worth of streams, evaluations, samples, best checkpoints: whatever has state.
EVERYTHING = {"model__dropout": 0.1, "data__order": "shuffled", "train__eval_every": 7, "train__sample_every": 9,
              "train__checkpoint_every": 1, "train__steps": 60}
VARIANTS = {
    "float32": {},
    "micro-batches": {"train__batch_size": 6, "train__micro_batch_size": 2},
    "float64": {"train__dtype": "float64", "train__batch_size": 4, "train__micro_batch_size": 2},
    "composed": {"train__ops": "composed", "model__position": "learned", "model__norm": "layernorm",
                 "model__tie_embeddings": False},
}


class Resume(support.Case):
    def stop_and_resume(self, run, config, signals, seed):
        """Runs to the end through stops by random signals at random moments; returns how often it was stopped."""
        moments = random.Random(seed)
        stops = 0
        arguments = ["train", config, "--out", run]
        while True:
            size = self.metrics_size(run)
            process = self.start_program(*arguments)
            # Progress first, so that the test ends; then anywhere within the next steps and saves.
            self.wait_for(lambda: self.metrics_size(run) > size + 200, process)
            self.wait_for(lambda end=support.time.monotonic() + moments.uniform(0, 0.02):
                          support.time.monotonic() > end, process)
            number = moments.choice(signals)
            process.send_signal(number)
            _, text = process.communicate(timeout=300)
            self.assertIn(process.returncode, {0, -signal.SIGKILL, 3}, support.last_lines(text))
            self.assert_each_step_once(run)
            if process.returncode == 0:
                return stops
            stops += 1
            self.assertLess(stops, 60, "no progress")
            if number != signal.SIGKILL:
                self.assertEqual(process.returncode, 3)
                self.assertEqual(self.checkpoints(run)[-1], len(self.losses(run)), "everything is saved")
            arguments = ["train", "--resume", run]

    def test_stops_at_random_moments(self):
        for seed, (name, settings) in enumerate(VARIANTS.items()):
            with self.subTest(name):
                run = name + "-stopped"
                expected = self.train(name, **EVERYTHING, **settings)
                config = self.config(run, **EVERYTHING, **settings)
                stops = self.stop_and_resume(run, config, [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], seed)
                self.assertGreater(stops, 0, "the run was too fast to be stopped")
                self.assert_same_run(run, expected)
                self.assertEqual(self.path(run, "samples.jsonl").read_bytes(),
                                 self.path(expected, "samples.jsonl").read_bytes())
                self.assertEqual(self.digest_of(self.path(run, "checkpoints", "best.h5")),
                                 self.digest_of(self.path(expected, "checkpoints", "best.h5")))

    def test_a_resume_from_an_older_checkpoint_drops_the_later_lines(self):
        settings = {**EVERYTHING, "train__checkpoint_every": 25}
        expected = self.train("straight", **settings)
        process = self.start_program("train", self.config("killed", **settings), "--out", "killed")
        self.wait_for(lambda: self.metrics_size("killed") > 3200, process)  # about 30 lines
        process.kill()
        process.wait()
        self.run_program("train", "--resume", "killed")
        self.assert_same_run("killed", expected)

    def test_a_kill_before_the_first_checkpoint_starts_again(self):
        settings = {**EVERYTHING, "train__checkpoint_every": 0, "train__eval_every": 0, "train__steps": 200}
        expected = self.train("straight", **settings)
        process = self.start_program("train", self.config("killed", **settings), "--out", "killed")
        self.wait_for(lambda: self.metrics_size("killed") > 300, process)
        process.kill()
        process.wait()
        done = self.run_program("train", "--resume", "killed")
        self.assertIn("no valid checkpoint yet: starts at step 0", done.stderr)
        self.assert_same_run("killed", expected)

    def test_a_kill_before_the_first_checkpoint_keeps_initial_weights(self):
        self.train("source", train__seed=7)
        settings = {"train__checkpoint_every": 0, "train__steps": 300, "train__eval_every": 0}
        config = self.config("straight", **settings)
        self.run_program("train", config, "--out", "straight", "--init", "source")
        process = self.start_program("train", config, "--out", "killed", "--init", "source")
        self.wait_for(lambda: self.metrics_size("killed") > 300, process)
        process.kill()
        process.wait()
        self.run_program("train", "--resume", "killed")
        self.assert_same_run("killed", "straight")

    def test_damaged_checkpoints_are_named_and_skipped(self):
        settings = {**EVERYTHING, "train__checkpoint_every": 5, "train__keep_checkpoints": 3}
        expected = self.train("straight", **settings)
        process = self.start_program("train", self.config("stopped", **settings), "--out", "stopped")
        self.wait_for(lambda: self.path("stopped", "checkpoints", "step_000020.h5").exists(), process)
        process.send_signal(signal.SIGTERM)
        process.wait()
        steps = self.checkpoints("stopped")
        self.assertGreaterEqual(len(steps), 3)
        newest, second = self.checkpoint("stopped", steps[-1]), self.checkpoint("stopped", steps[-2])
        newest.write_bytes(newest.read_bytes()[:-1000])
        flipped = bytearray(second.read_bytes())
        flipped[len(flipped) // 2] ^= 16
        second.write_bytes(flipped)
        done = self.run_program("train", "--resume", "stopped")
        self.assertIn(f"{newest.name} is incomplete", done.stderr)
        self.assertIn(f"{second.name} was damaged", done.stderr)
        self.assertIn(f"resumes stopped/checkpoints/step_{steps[-3]:06}.h5", done.stderr)
        self.assert_same_run("stopped", expected)

    def test_a_run_whose_checkpoints_are_all_damaged_is_left_alone(self):
        run = self.train("run", train__checkpoint_every=5)
        for step in self.checkpoints(run):
            self.checkpoint(run, step).write_bytes(self.checkpoint(run, step).read_bytes()[:-1000])
        before = self.lines(run), self.path(run, "checkpoints", "best.h5").read_bytes()
        self.assertIn("no checkpoint of the run's steps can be read", self.refused("train", "--resume", run))
        self.assertEqual((self.lines(run), self.path(run, "checkpoints", "best.h5").read_bytes()), before)
        self.run_program("train", self.config("other"), "--out", "other", "--init", "run/checkpoints/best.h5")

    def test_the_best_checkpoint_survives_a_resume_that_is_worse(self):
        run = self.train("run", train__steps=40, train__eval_every=10, optim__schedule="constant")
        best = self.digest_of(self.path(run, "checkpoints", "best.h5"))
        self.run_program("train", "--resume", run, "train.steps=60", "optim.lr=1.0")
        losses = [loss for _, loss in self.evaluations(run)]
        self.assertGreater(min(losses[4:]), min(losses[:4]))
        self.assertEqual(self.digest_of(self.path(run, "checkpoints", "best.h5")), best)
        self.assertEqual(support.json.loads(self.path(run, "summary.json").read_text())["best_val_loss"], min(losses))

    def test_temporaries_of_a_killed_run_are_removed(self):
        self.train("run", train__checkpoint_every=5)
        gone = support.subprocess.Popen(["true"])
        gone.wait()
        for name in ("checkpoints/step_000010.h5", "summary.json", "layers.json", "config.toml"):
            self.path("run", f"{name}.tmp.{gone.pid}").write_bytes(b"half")
        done = self.run_program("train", "--resume", "run", "train.steps=15")
        self.assertIn("left by a run that was killed", done.stderr)
        self.assert_clean("run")

    def test_temporaries_are_removed_from_a_finished_run_too(self):
        self.train("run")
        gone = support.subprocess.Popen(["true"])
        gone.wait()
        self.path("run", f"checkpoints/step_000012.h5.tmp.{gone.pid}").write_bytes(b"half")
        self.run_program("train", "--resume", "run")
        self.assert_clean("run")

    def test_a_run_killed_before_its_summary_gets_one(self):
        self.train("run")
        summary = self.path("run", "summary.json")
        before = support.json.loads(summary.read_text())
        lines = self.lines("run")
        summary.unlink()
        self.run_program("train", "--resume", "run")
        after = support.json.loads(summary.read_text())
        for key in ("steps", "final_val_loss", "best_val_loss", "grad_norm_max_first_100", "parameters"):
            self.assertEqual(after[key], before[key])
        self.assertEqual(self.lines("run"), lines)

    def test_a_second_signal_stops_at_once(self):
        # Steps of about a second: the first signal waits for the end of one, the second does not.
        slow = {"model__d_model": 128, "model__n_layers": 4, "model__d_ff": 512, "data__seq_len": 128,
                "train__batch_size": 64, "train__kernels": "reference", "train__steps": 50}
        process = self.start_program("train", self.config("slow", **slow), "--out", "slow")
        self.wait_for(lambda: self.path("slow", "metrics.jsonl").exists(), process)
        support.time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        first_line = process.stderr.readline()
        while "once more to stop now" not in first_line:
            self.assertNotEqual(first_line, "")
            first_line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.losses("slow"), [])


if __name__ == "__main__":
    support.main()
