"""Training learns: the built-in corpus down to its entropy, one batch by heart."""
import math
import random
import struct

import support


def choice(words):
    return math.log(words)


def perhaps(words):
    return math.log(2) + 0.5 * choice(words)


# Determiner (singular or plural, two words each), [mood], animal, verb, "the", [colour], thing, [adverb], ".": the
# entropy of a sentence's choices over its mean number of tokens. No model's expected loss is lower.
ENTROPY = (choice(2) + choice(2) + perhaps(6) + choice(8) + choice(5) + perhaps(4) + choice(8) + perhaps(3)) / 7.5


class Learn(support.Case):
    def test_tiny_reaches_the_entropy_of_its_corpus(self):
        config = support.ROOT / "configs" / "tiny.toml"
        self.run_program("train", config, "--out", "tiny", "train.threads=1")
        found = self.json_of("eval", "tiny")
        self.assertEqual(found["tokens"], 40000)
        # 0.003 is two standard errors of the 40,000 tokens; above it stands what a window's first tokens, which see
        # less of their sentence, must cost, and what is left to learn.
        self.assertGreater(found["val_loss"], ENTROPY - 0.003)
        self.assertLess(found["val_loss"], ENTROPY + 0.02)
        summary = support.json.loads(self.path("tiny", "summary.json").read_text())
        self.assertLess(found["val_loss"], summary["unigram_loss"] - 2)
        self.assertFalse(summary["diverged"] or summary["stalled"])
        text = self.json_of("generate", "tiny", "--temperature", 0, "--max-tokens", 20)["text"]
        self.assertRegex(text, r"\n(A|Every|Two|Many)( \w+){2,3} the( \w+){1,3}\.\n")

    def test_one_batch_by_heart(self):
        numbers = random.Random(3)
        windows, length = 8, 16
        # Each window begins with a token of its own, so that everything behind it can be known.
        tokens = [token for window in range(windows)
                  for token in [window, *(numbers.randrange(8, 50) for _ in range(length - 1))]] + [0]
        (self.folder / "batch.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        self.run_program("import-tokens", "batch.bin", "--vocab", 50, "--val-file", "batch.bin", "--out", "batch.h5")
        base = {**support.TINY, "data.path": "batch.h5", "data.seq_len": length, "train.batch_size": windows,
                "train.steps": 300, "train.eval_every": 0, "model.d_model": 32, "model.d_ff": 64,
                "model.n_heads": 4}
        settings = {"default": {}, "no decay": {"optim__weight_decay": 0},
                    "decayed gains": {"optim__decay_norms": True}, "linear": {"optim__schedule": "linear"},
                    "constant": {"optim__schedule": "constant"}, "wsd": {"optim__schedule": "wsd"},
                    "no clipping": {"optim__grad_clip": 0}, "micro-batches": {"train__micro_batch_size": 2},
                    "betas": {"optim__beta1": 0.8, "optim__beta2": 0.99}}
        for name, more in settings.items():
            with self.subTest(name):
                run = self.train(name.replace(" ", "-"), base, **more)
                losses = self.losses(run)
                self.assertGreater(losses[0], 3.5)
                self.assertLess(losses[-1], 0.05)


if __name__ == "__main__":
    support.main()
