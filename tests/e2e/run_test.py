"""A run from its start to its end: folders, initial weights, checkpoints to choose from, and failures on the way."""
import os
import random
import signal
import struct
import subprocess

import support


def write_safetensors(path, tensors):
    """tensors: {name: (shape, values)}, written as F32."""
    header = {}
    data = b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = support.json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tiny_shapes():
    """Names and shapes of support.TINY's model over the built-in corpus of 56 ids."""
    d, d_ff = support.TINY["model.d_model"], support.TINY["model.d_ff"]
    shapes = {"model.embed_tokens.weight": [56, d], "model.norm.weight": [d]}
    for layer in range(support.TINY["model.n_layers"]):
        prefix = f"model.layers.{layer}."
        shapes.update({f"{prefix}self_attn.{name}_proj.weight": [d, d] for name in "qkvo"})
        shapes.update({f"{prefix}mlp.{name}_proj.weight": [d_ff, d] for name in ("gate", "up")})
        shapes[f"{prefix}mlp.down_proj.weight"] = [d, d_ff]
        shapes.update({f"{prefix}{name}.weight": [d] for name in ("input_layernorm", "post_attention_layernorm")})
    return shapes


class Folder(support.Case):
    def test_what_a_run_leaves(self):
        self.train("run", train__eval_every=5, train__sample_every=6, train__checkpoint_every=4)
        self.assertLessEqual({"config.toml", "metrics.jsonl", "samples.jsonl", "summary.json", "checkpoints"},
                             set(os.listdir(self.path("run"))))
        self.assertEqual(sorted(os.listdir(self.path("run", "checkpoints"))),
                         ["best.h5", "step_000008.h5", "step_000012.h5"])
        metrics = self.metrics("run")
        self.assertEqual([line["step"] for line in metrics if "loss" in line], list(range(12)))
        self.assertEqual([line["step"] for line in metrics if "val_loss" in line], [5, 10, 12])
        self.assertEqual([line["tokens"] for line in metrics if "loss" in line], [64 * (i + 1) for i in range(12)])
        summary = support.json.loads(self.path("run", "summary.json").read_text())
        self.assertEqual(summary["best_val_loss"], min(loss for _, loss in self.evaluations("run")))
        self.assertEqual(summary["final_val_loss"], self.evaluations("run")[-1][1])
        self.assertFalse(summary["diverged"])

    def test_an_existing_run_is_never_overwritten(self):
        config = self.train("run") + ".toml"
        before = self.lines("run"), self.digest("run")
        message = self.refused("train", config, "--out", "run")
        for word in ("--resume", "--out", "--force"):
            self.assertIn(word, message)
        self.assertEqual((self.lines("run"), self.digest("run")), before)
        self.run_program("train", config, "--out", "run", "--force", "train.steps=3")
        self.assertEqual(len(self.losses("run")), 3)
        self.assertEqual((self.lines("run.old"), self.digest("run.old")), before)
        self.run_program("train", config, "--out", "run", "--force", "train.steps=2")
        self.assertEqual(len(self.losses("run.old.2")), 3)
        self.assertEqual((self.lines("run.old"), self.digest("run.old")), before)

    def test_a_start_killed_before_its_config_is_no_run(self):
        self.path("run", "checkpoints").mkdir(parents=True)
        self.path("run", "config.toml.tmp.1").write_text("half")
        self.assertIn("start it again", self.refused("train", "--resume", "run"))
        self.train("run")
        expected = self.train("expected")
        self.assertEqual(self.lines("run"), self.lines(expected))

    def test_a_refused_run_leaves_nothing(self):
        config = self.config()
        for wrong in (["train.steps=x"], ["model.n_heads=3"], ["optim.warmup_steps=13"], ["data.seq_len=50000"],
                      ["model.vocab_size=20"], ["--init", "nowhere"], ["data.path=missing.h5"]):
            with self.subTest(wrong):
                self.refused("train", config, "--out", "run", *wrong)
                self.assertFalse(self.path("run").exists())

    def test_a_parent_that_cannot_be_written(self):
        config = self.config()
        self.folder.chmod(0o555)
        message = self.refused("train", config, "--out", "runs/run", **self.as_somebody())
        self.assertIn("runs/run", message)
        self.assertIn("--out", message)

    def test_a_run_that_cannot_be_written_is_not_resumed(self):
        self.train("run", train__steps=4)
        for path in (self.folder, self.path("run"), self.path("run", "checkpoints")):
            path.chmod(0o555)
        before = self.lines("run"), self.digest("run")
        self.refused("train", "--resume", "run", "train.steps=8", **self.as_somebody())
        self.assertEqual((self.lines("run"), self.digest("run")), before)

    def test_two_processes_do_not_train_in_one_folder(self):
        config = self.config(train__steps=20000, train__checkpoint_every=100)
        process = self.start_program("train", config, "--out", "run")
        self.wait_for(lambda: self.path("run", "checkpoints", "step_000100.h5").exists(), process)
        self.assertIn("another process", self.refused("train", "--resume", "run"))
        self.assertIn("another process", self.refused("train", config, "--out", "run", "--force"))
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 3)
        self.assert_each_step_once("run")
        self.assertEqual(len(self.losses("run")), self.checkpoints("run")[-1])


class Weights(support.Case):
    def test_no_steps_leave_a_checkpoint(self):
        run = self.train("run", train__steps=0, optim__warmup_steps=0)
        self.assertEqual(self.checkpoints(run), [0])
        self.assertEqual(self.lines(run), [])
        loss = self.json_of("eval", run)["val_loss"]
        self.assertAlmostEqual(loss, 4.025, delta=0.05)  # ln 56
        self.json_of("generate", run, "--max-tokens", 3)

    def test_init_from_a_run(self):
        source = self.train("source", train__eval_every=3, train__checkpoint_every=4)
        start = self.train("zero", train__steps=0, optim__warmup_steps=0, train__seed=5)
        self.assertNotEqual(self.digest(start)["weights"], self.digest(source)["weights"])
        self.run_program("train", "zero.toml", "--out", "taken", "--init", source)
        taken = self.digest("taken")
        self.assertEqual(taken["weights"], self.digest(source)["weights"])
        self.assertEqual(taken["step"], 0)
        self.assertEqual(taken["moments"], self.digest(start)["moments"], "moments start at zero")
        self.run_program("train", self.config("more", train__steps=3), "--out", "more", "--init", source)
        self.assertEqual([line["step"] for line in self.metrics("more") if "loss" in line], [0, 1, 2])
        self.assertLess(self.losses("more")[0], self.losses(source)[0] - 0.1, "it starts from what was learned")

    def test_init_from_safetensors(self):
        numbers = random.Random(1)
        tensors = {}
        for name, shape in tiny_shapes().items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            tensors[name] = (shape, [struct.unpack("<f", struct.pack("<f", numbers.gauss(0, 0.1)))[0]
                                     for _ in range(count)])
        write_safetensors(self.folder / "w.safetensors", tensors)
        self.run_program("train", self.config(train__steps=0, optim__warmup_steps=0), "--out", "run",
                         "--init", "w.safetensors")
        whole = support.hashlib.sha256()
        for name in sorted(tensors):
            shape, values = tensors[name]
            whole.update(f"/weights/{name}[{', '.join(map(str, shape))}]".encode())
            whole.update(struct.pack(f"<{len(values)}f", *values))
        self.assertEqual(self.digest("run")["weights"], whole.hexdigest())
        del tensors["model.norm.weight"]
        write_safetensors(self.folder / "w.safetensors", tensors)
        message = self.refused("train", "run.toml", "--out", "other", "--init", "w.safetensors")
        self.assertIn("model.norm.weight", message)

    def test_checkpoints_to_choose_from(self):
        run = self.train("run", train__eval_every=4, train__checkpoint_every=4, train__keep_checkpoints=9,
                         train__eval_tokens=1_000_000, optim__lr=0.05)
        evaluations = dict(self.evaluations(run))
        self.assertEqual(list(evaluations), [4, 8, 12])
        self.assertEqual(len(set(evaluations.values())), 3)
        for step, loss in evaluations.items():
            self.assertEqual(self.json_of("eval", run, "--checkpoint", step)["val_loss"], loss)
        self.assertEqual(self.json_of("eval", run, "--checkpoint", "last")["val_loss"], evaluations[12])
        self.assertEqual(self.json_of("eval", run, "--checkpoint", "best")["val_loss"], min(evaluations.values()))
        self.assertEqual(self.json_of("eval", run), self.json_of("eval", run, "--checkpoint", "last"))
        message = self.refused("eval", run, "--checkpoint", "5")
        self.assertIn("4, 8, 12", message)
        self.refused("eval", run, "--checkpoint", "bset")

    def test_a_finished_run_says_so(self):
        run = self.train("run")
        before = self.lines(run), self.digest(run), self.path(run, "summary.json").read_bytes()
        done = self.run_program("train", "--resume", run)
        self.assertIn("finished already", done.stderr)
        self.assertIn("has done 12 updates already", self.refused("train", "--resume", run, "train.steps=5"))
        self.assertEqual((self.lines(run), self.digest(run), self.path(run, "summary.json").read_bytes()), before)

    def test_a_resumed_run_keeps_its_folder(self):
        run = self.train("run")
        self.assertIn("run.out", self.refused("train", "--resume", run, "run.out=elsewhere"))
        self.assertFalse(self.path("elsewhere").exists())

    def test_more_steps_go_on_with_a_notice(self):
        run = self.train("run", train__eval_every=0)
        before = self.lines(run)
        done = self.run_program("train", "--resume", run, "train.steps=20")
        self.assertIn("train.steps = 20 (was 12)", done.stderr)
        self.assertRegex(done.stderr, "warning: .*schedule")
        self.assertEqual(self.lines(run)[:12], before)
        self.assertEqual(len(self.losses(run)), 20)
        # The learning rate of step 12 of a cosine over 20 steps, warmed up for 2.
        phase = (12 - 2) / (20 - 2)
        expected = 0.001 + 0.5 * (0.01 - 0.001) * (1 + support.math.cos(support.math.pi * phase))
        self.assertAlmostEqual(self.metrics(run)[12]["lr"], expected, delta=1e-12)

    def test_a_constant_schedule_goes_on_as_if_never_ended(self):
        settings = {"optim__schedule": "constant", "train__eval_every": 0}
        expected = self.train("long", train__steps=20, **settings)
        self.train("short", train__steps=12, **settings)
        done = self.run_program("train", "--resume", "short", "train.steps=20")
        self.assertNotIn("schedule now ends", done.stderr)
        self.assert_same_run("short", expected)

    def test_changes_that_a_resume_refuses(self):
        run = self.train("run", train__steps=6)
        before = self.lines(run), self.digest(run)
        for change in ("model.n_layers=3", "model.d_ff=32", "model.dropout=0.1", "data.seq_len=8",
                       "data.order=sequential", "train.seed=3", "train.batch_size=8", "train.micro_batch_size=2",
                       "train.dtype=float64"):
            with self.subTest(change):
                message = self.refused("train", "--resume", run, "train.steps=9", change)
                self.assertIn(change.split("=")[0], message)
        (self.folder / "t.bin").write_bytes(struct.pack("<4000H", *(i % 50 for i in range(4000))))
        self.run_program("import-tokens", "t.bin", "--vocab", 56, "--out", "other.h5")
        message = self.refused("train", "--resume", run, "train.steps=9", "data.path=other.h5")
        self.assertIn("other.h5", message)
        self.assertEqual((self.lines(run), self.digest(run)), before)

    def test_a_changed_learning_rate_is_printed_and_used(self):
        run = self.train("run", train__steps=6, optim__schedule="constant")
        done = self.run_program("train", "--resume", run, "train.steps=9", "optim.lr=0.002")
        self.assertIn("optim.lr = 0.002 (was 0.01)", done.stderr)
        self.assertEqual([line["lr"] for line in self.metrics(run) if line["step"] > 6 and "lr" in line], [0.002] * 2)


class Failures(support.Case):
    def test_a_learning_rate_that_explodes(self):
        self.train("run", status=1, optim__lr=1e30, optim__warmup_steps=0)
        message = self.refused("train", "--resume", "run", status=1)
        self.assertRegex(message, r"step 1: the gradient of model\.\S+ is not finite")
        self.assertIn("optim.lr", message)
        digest = self.digest("run")
        self.assertEqual((digest["step"], digest["finite"]), (1, True))
        self.assertEqual(len(self.losses("run")), 1)

    def test_where_a_step_that_is_not_finite_began(self):
        config = self.config("run", optim__lr=1e30, optim__warmup_steps=0)
        plain = self.run_program("train", config, "--out", "plain", status=1)
        self.assertNotIn("the first value", plain.stderr)
        traced = self.run_program("train", config, "--out", "run", "--trace-nan", status=1)
        place = r"the first value that is not finite: (nan|-?inf) at element \d+ of .* \[[\d, ]+\], " \
                r"(for|back)ward of #\d+ \w+ \S+, called at \S+\.(cpp|h):\d+\n +\S.* of \d+ not finite\n"
        self.assertRegex(traced.stderr, place)
        self.assertRegex(traced.stderr, r"step 1: the gradient of model\.\S+ is not finite")
        self.assert_same_run("run", "plain")
        again = self.run_program("train", "--resume", "run", "--trace-nan", status=1)
        self.assertRegex(again.stderr, place)

    def test_stops_at_a_node_for_a_debugger(self):
        config = self.config("run")

        def train_until(node):
            return subprocess.run([support.PROGRAM, "train", config, "--out", "run"], cwd=self.folder, check=False,
                                  env={**support.ENVIRONMENT, "MINILLM_STOP_AT": node}, capture_output=True, text=True)

        for wrong in ("", "-1", "x", "7x"):
            done = train_until(wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(f'MINILLM_STOP_AT: is no node of a tape; found "{wrong}"', done.stderr)
            self.assertFalse(self.path("run").exists())
        self.assertEqual(train_until("7").returncode, -signal.SIGTRAP)

    def stop_amid_a_long_run(self, number, status, **settings):
        """Sends the run `run`, which has too many steps to be done with, a signal after its first checkpoint."""
        settings = {"train__steps": 10_000_000, "train__eval_every": 0, "optim__schedule": "constant", **settings}
        config = self.config("run", **settings)
        process = self.start_program("train", config, "--out", "run")
        checkpoints = self.path("run", "checkpoints")
        self.wait_for(lambda: checkpoints.exists() and self.checkpoints("run"), process)
        process.send_signal(number)
        process.communicate()
        self.assertEqual(process.returncode, status)

    def assert_goes_on_as_if_never_ended(self, *settings):
        """`run` resumed for some more steps equals one that was not stopped."""
        steps = self.checkpoints("run")[-1] + 15
        self.run_program("train", "--resume", "run", f"train.steps={steps}", *settings)
        self.run_program("train", "run.toml", "--out", "straight", f"train.steps={steps}")
        self.assert_same_run("run", "straight")

    def test_weights_that_overflow_are_never_saved(self):
        self.stop_amid_a_long_run(signal.SIGTERM, 3, train__checkpoint_every=1)
        before = self.digest("run")
        message = self.refused("train", "--resume", "run", "optim.lr=3e38", "optim.weight_decay=1000",
                               status=1)
        self.assertRegex(message, r"step \d+: .* model\.\S+ not finite")
        self.assertTrue(before["finite"])
        self.assertEqual(self.digest("run"), before, "the last finite state is what was there")
        # The run's config has the settings that failed.
        self.assert_goes_on_as_if_never_ended("optim.lr=0.01", "optim.weight_decay=0.1")
        for every in (0, 1):
            self.train(f"start{every}", status=1, optim__lr=3e38, optim__warmup_steps=0, train__checkpoint_every=every)
            self.assertEqual(self.checkpoints(f"start{every}"), [])

    def test_no_room_for_a_checkpoint(self):
        self.stop_amid_a_long_run(signal.SIGKILL, -signal.SIGKILL, train__checkpoint_every=10)
        newest = self.checkpoint("run")
        before = self.digest_of(newest)
        limit = support.limit_file_size(newest.stat().st_size - 1)
        message = self.refused("train", "--resume", "run", status=1, **limit)
        self.assertRegex(message, r"run/checkpoints/step_\d+\.h5: cannot be written: File too large")
        self.assertEqual(self.checkpoint("run"), newest)
        self.assertEqual(self.digest_of(newest), before)
        self.assert_clean("run")
        self.assert_goes_on_as_if_never_ended()

    def test_no_room_for_metrics(self):
        settings = {"train__steps": 60, "train__checkpoint_every": 0, "train__eval_every": 0}
        expected = self.train("straight", **settings)
        message = self.refused("train", "straight.toml", "--out", "run", status=1, **support.limit_file_size(5000))
        self.assertIn("run/metrics.jsonl", message)
        self.assertGreater(len(self.losses("run")), 10)
        self.assertLess(len(self.losses("run")), 60)
        self.run_program("train", "--resume", "run")
        self.assert_same_run("run", expected)

    def test_no_room_for_anything(self):
        if "libomp" in support.libraries():
            self.skipTest("LLVM's OpenMP makes a file in memory at its start, and dies when that may not grow")
        message = self.refused("train", self.config(), "--out", "run", status=1, **support.limit_file_size(100))
        self.assertIn("run/config.toml", message)
        self.assert_clean("run")
        self.train("run")

    def test_a_disk_that_fills(self):
        settings = {"train__steps": 30, "train__checkpoint_every": 10, "train__eval_every": 0,
                    "train__keep_checkpoints": 1}
        expected = self.train("straight", **settings)
        size = self.checkpoint(expected).stat().st_size
        disk = self.folder / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size * 3 // 2 // 4096 * 4096}", "tmpfs", str(disk)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("a file system of its own needs root")
        self.addCleanup(subprocess.run, ["umount", str(disk)], check=True)
        message = self.refused("train", "straight.toml", "--out", "disk/run", status=1)
        self.assertRegex(message, r"No space left on device; found \d+ bytes free; expected \d+ bytes")
        self.assertEqual(self.checkpoints("disk/run"), [10])
        self.assertTrue(self.digest("disk/run")["finite"])
        self.assert_clean("disk/run")
        subprocess.run(["mount", "-o", f"remount,size={size * 4}", str(disk)], check=True)
        self.run_program("train", "--resume", "disk/run")
        self.assert_same_run("disk/run", expected)


if __name__ == "__main__":
    support.main()
