"""Every ablation and preset trains, and a run that goes on from its middle with other threads has the same bits."""
import support

CONFIGS = [path for folder in ("ablations", "presets")
           for path in sorted((support.ROOT / "configs" / folder).glob("*.toml"))]
# Small enough that all of them take seconds; every part keeps its shape but for the sizes.
SMALL = ["data.path=synthetic", "data.seq_len=20", "train.batch_size=2", "optim.warmup_steps=2", "model.d_model=32",
         "model.head_dim=8", "model.d_ff=24", "train.eval_every=3", "train.eval_tokens=100", "train.checkpoint_every=3",
         "optim.schedule=constant"]  # the only one that does not know how long the run is


class Configs(support.Case):
    def test_every_config(self):
        self.assertGreater(len(CONFIGS), 30)
        for config in CONFIGS:
            with self.subTest(config.stem):
                straight, resumed = config.stem, config.stem + "-resumed"
                self.run_program("train", config, "--out", straight, *SMALL, "train.steps=6", "train.threads=2")
                losses = self.losses(straight)
                self.assertEqual(len(losses), 6)
                self.assertTrue(all(2 < loss < 8 for loss in losses), losses)
                support.shutil.copytree(self.path(straight), self.path(resumed))
                self.path(resumed, "checkpoints", "step_000006.h5").unlink()
                done = self.run_program("train", "--resume", resumed, "train.threads=1")
                self.assertIn("step_000003", done.stderr)
                self.assert_same_run(resumed, straight)


if __name__ == "__main__":
    support.main()
