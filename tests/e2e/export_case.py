"""What the tests of exports share: trained runs, and a reader of what is written that is not ours."""
import json
import struct
import subprocess
import sys

import cli_support
import support
from cli_support import little_endian, story

sys.path.append(str(support.ROOT / "tests" / "support"))

VOCABULARY = 37
CONTEXT = 64
IDS = [(at * at * 5 + at * 11 + at // 7) % VOCABULARY for at in range(2000)]
NEAR = 1e-5  # a mean loss in float32 against double
SETTINGS = ["model.d_model=16", "model.n_layers=2", "model.n_heads=4", "model.n_kv_heads=2", "model.d_ff=24",
            "model.norm_eps=1e-5", "data.seq_len=64", "optim.warmup_steps=1", "optim.lr=0.02", "train.steps=25",
            "train.batch_size=4", "train.eval_every=0", "train.threads=1"]


def safetensors(tensors):
    """name -> (shape, values) as a file of F32."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


class ExportCase(cli_support.InputCase):
    cpu_seconds = 20

    @classmethod
    def call(cls, *words):
        subprocess.run([support.PROGRAM, *map(str, words)], cwd=cls.given, env=support.ENVIRONMENT, check=True,
                       capture_output=True)

    @classmethod
    def train_given(cls, name, data, *settings):
        (cls.given / "base.toml").write_text("", encoding="utf-8")
        cls.call("train", "base.toml", "--out", name, f"data.path={data}", *SETTINGS, *settings)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.given / "story.txt").write_text(story(), encoding="utf-8")
        (cls.given / "train.bin").write_bytes(little_endian(IDS))
        (cls.given / "val.bin").write_bytes(little_endian(IDS[:CONTEXT + 1]))
        cls.call("prepare", "story.txt", "--vocab", 300, "--out", "text.h5")
        cls.call("import-tokens", "train.bin", "--val-file", "val.bin", "--vocab", VOCABULARY, "--out", "ids.h5")
        cls.train_given("text", "text.h5", "train.steps=150")

    def export(self, run, kind, out, *words):
        return self.run_program("export", self.given / run, "--format", kind, "--out", out, *words).stdout

    def loss(self, run):
        """Of the 64 predictions of /val."""
        found = self.json_of("eval", run, "--data", self.given / "ids.h5")
        self.assertEqual(found["tokens"], CONTEXT)
        return found["val_loss"]

    def greedy(self, run):
        found = self.json_of("generate", run, "--temperature", 0, "--max-tokens", CONTEXT)
        self.assertEqual(found["prompt_token_ids"], [1])
        self.assertGreater(len(set(found["token_ids"])), 4, "a text worth comparing")
        return found

    def assert_speaks_as_it_is(self, path):
        """Text from the export itself, without an import."""
        self.assertEqual(self.greedy(path)["text"], self.greedy(self.given / "text")["text"])

    def assert_same_weights(self, one, other):
        digests = [self.digest_of(sorted((folder / "checkpoints").glob("step_*.h5"))[-1]) for folder in (one, other)]
        self.assertEqual(digests[0]["weights"], digests[1]["weights"])

    def assert_nothing_stays(self):
        self.assertEqual([path.name for path in self.folder.iterdir()], [])
