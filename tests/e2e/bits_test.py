"""What must not change the bits of a training (threads, evaluations, samples, checkpoints), and what may."""
import support

# Large enough that tiles, heads, blocks of rows and chunks of the optimizer are really done by several threads, with
# sizes that none of them divides.
WIDE = {"model.d_model": 160, "model.n_layers": 3, "model.n_heads": 5, "model.n_kv_heads": 5, "model.d_ff": 212,
        "model.vocab_size": 300, "data.path": "synthetic", "data.seq_len": 96, "optim.warmup_steps": 1,
        "optim.lr": 0.003, "train.steps": 4, "train.batch_size": 6, "train.micro_batch_size": 2,
        "train.eval_every": 2, "train.eval_tokens": 400, "train.checkpoint_every": 0}


class Bits(support.Case):
    def assert_same_for_all_threads(self, **settings):
        expected = self.train("threads1", WIDE, train__threads=1, **settings)
        self.assertGreater(self.losses(expected)[0] - self.losses(expected)[-1], 0.1, "something is learned")
        for threads in (2, 3, 4):
            run = self.train(f"threads{threads}", WIDE, train__threads=threads, **settings)
            self.assertEqual(support.json.loads(self.path(run, "summary.json").read_text())["threads"], threads)
            self.assert_same_run(run, expected)
        return expected

    def test_threads_fused(self):
        self.assert_same_for_all_threads(model__dropout=0.1)

    def test_threads_composed(self):
        self.assert_same_for_all_threads(train__ops="composed", train__steps=3, optim__lr=0.006)

    def test_threads_of_the_other_parts(self):
        self.assert_same_for_all_threads(model__norm="layernorm", model__ffn="gelu", model__n_kv_heads=1,
                                         model__bias=True, model__position="learned", model__tie_embeddings=False,
                                         model__qk_norm=True, model__attention_gate="elementwise",
                                         model__norm_position="sublayer_output")

    def test_threads_in_double(self):
        self.assert_same_for_all_threads(train__dtype="float64", model__d_model=40, model__d_ff=56, data__seq_len=24,
                                         train__steps=8, optim__lr=0.01)

    def train_again(self, config, out, **environment):
        done = support.subprocess.run(
            [support.PROGRAM, "train", f"{config}.toml", "--out", out], cwd=self.folder,
            env={**support.ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, support.last_lines(done.stderr))
        return support.json.loads(self.path(out, "summary.json").read_text())

    def test_more_threads_than_the_machine_grants(self):
        expected = self.train("all", WIDE, train__threads=4)
        self.train_again("all", "limited", OMP_THREAD_LIMIT="1")
        self.assert_same_run("limited", expected)

    def test_instruction_sets(self):
        expected = self.train("widest", WIDE)
        summary = support.json.loads(self.path(expected, "summary.json").read_text())
        narrower = self.train_again("widest", "avx2", MINILLM_MAX_ISA="avx2")
        self.assert_same_run("avx2", expected)
        self.assertEqual(narrower["numerics"], summary["numerics"])
        # What multiplies where there are no tiles rounds otherwise, and agrees.
        self.train_again("widest", "baseline", MINILLM_MAX_ISA="baseline")
        for found, want in zip(self.losses("baseline"), self.losses(expected), strict=True):
            self.assertAlmostEqual(found, want, delta=1e-4)

    def test_an_unknown_instruction_set(self):
        self.train("sse", WIDE)
        done = support.subprocess.run(
            [support.PROGRAM, "train", "sse.toml", "--out", "refused"], cwd=self.folder,
            env={**support.ENVIRONMENT, "MINILLM_MAX_ISA": "sse"}, capture_output=True, text=True, timeout=600,
            check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('MINILLM_MAX_ISA: no such instruction set; found "sse"; expected avx512, avx2', done.stderr)
        self.assertFalse(self.path("refused").exists())

    def test_looking_does_not_change_the_training(self):
        base = {"train__steps": 30, "model__dropout": 0.1, "train__batch_size": 4, "train__micro_batch_size": 2}
        expected = self.train("blind", train__eval_every=0, train__sample_every=0, train__checkpoint_every=0, **base)
        self.assertEqual(self.evaluations(expected), [])
        variants = {"evaluated": {"train__eval_every": 1}, "sampled": {"train__sample_every": 1},
                    "saved": {"train__checkpoint_every": 1},
                    "all": {"train__eval_every": 3, "train__sample_every": 2, "train__checkpoint_every": 4,
                            "train__keep_checkpoints": 1, "train__eval_tokens": 1000}}
        for name, settings in variants.items():
            with self.subTest(name):
                run = self.train(name, **{"train__eval_every": 0, "train__sample_every": 0,
                                          "train__checkpoint_every": 0, **base, **settings})
                self.assertEqual([line for line in self.lines(run) if "val_loss" not in line], self.lines(expected))
                self.assertEqual(self.digest(run), self.digest(expected))
        self.assertEqual([step for step, _ in self.evaluations("evaluated")], list(range(1, 31)))
        self.assertEqual(len(self.path("sampled", "samples.jsonl").read_text().splitlines()), 30)

    def test_evaluation_is_without_dropout_and_repeats(self):
        run = self.train("run", model__dropout=0.5, train__eval_tokens=1_000_000)
        final = self.evaluations(run)[-1][1]
        for _ in range(2):
            self.assertEqual(self.json_of("eval", run)["val_loss"], final)
        config = self.path(run, "config.toml").read_text()
        self.assertIn("dropout = 0.5", config)
        # The same weights in a run that has no dropout at all.
        other = self.config("other", model__dropout=0, train__steps=0)
        self.run_program("train", other, "--out", "other", "--init", run)
        self.assertEqual(self.json_of("eval", "other")["val_loss"], final)

    def test_micro_batches_are_the_same_mean(self):
        base = {"train__steps": 10, "train__batch_size": 8, "model__d_model": 32, "model__d_ff": 48,
                "data__seq_len": 32, "optim__grad_clip": 0.5}
        runs = {}
        for size in (8, 4, 2, 1):
            runs[size] = self.metrics(self.train(f"micro{size}", train__micro_batch_size=size, train__eval_every=0,
                                                 **base))
        for size in (4, 2, 1):
            for one, other in zip(runs[8], runs[size], strict=True):
                self.assertEqual((one["step"], one["tokens"], one["lr"]), (other["step"], other["tokens"], other["lr"]))
                # The first step compares equal weights; later ones compare what rounding has grown to.
                tolerance = 1e-6 if one["step"] == 0 else 1e-4
                self.assertAlmostEqual(one["loss"], other["loss"], delta=tolerance)
                self.assertAlmostEqual(one["grad_norm"], other["grad_norm"], delta=tolerance)
        self.assertGreater(runs[8][0]["grad_norm"], 0.5, "clipping takes part")
        self.assertNotEqual(self.digest("micro8"), self.digest("micro1"))

    def test_micro_batches_are_the_same_mean_in_double(self):
        base = {"train__steps": 10, "train__batch_size": 8, "train__dtype": "float64", "train__eval_every": 0}
        runs = [self.metrics(self.train(f"micro{size}", train__micro_batch_size=size, **base)) for size in (8, 4, 2, 1)]
        for run in runs[1:]:
            for one, other in zip(runs[0], run, strict=True):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-6)
                self.assertAlmostEqual(one["grad_norm"], other["grad_norm"], delta=1e-6)

    def test_the_seed_changes_everything_and_the_name_nothing(self):
        first = self.train("first", train__steps=3)
        self.assert_same_run(self.train("second", train__steps=3), first)
        other = self.train("other", train__steps=3, train__seed=2)
        self.assertNotEqual(self.losses(other)[0], self.losses(first)[0])
        self.assertNotEqual(self.digest(other)["weights"], self.digest(first)["weights"])


if __name__ == "__main__":
    support.main()
