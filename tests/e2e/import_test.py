"""minillm import, from a file of llm.c to a loss: the model computes what PyTorch computes from the same bytes
(tests/golden/llmc_golden.py), trains on, and what is wrong is refused with nothing left behind."""
import hashlib
import json
import re
import shlex
import sys

import cli_support
import support
from cli_support import Row, little_endian, story

sys.path.append(str(support.ROOT / "tests" / "golden"))
import llmc_golden  # noqa: E402

GOLDEN = json.loads((support.ROOT / "tests" / "golden" / "llmc_golden.json").read_text(encoding="utf-8"))
NEAR = 1e-5  # float32 against float64


def mean(losses):
    return sum(losses) / len(losses)


class Import(cli_support.InputCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, version in (("float32", llmc_golden.FLOAT32), ("bfloat16", llmc_golden.BFLOAT16)):
            (cls.given / f"{name}.bin").write_bytes(llmc_golden.checkpoint(version))
        (cls.given / "tokens.bin").write_bytes(little_endian(llmc_golden.TOKENS))
        (cls.given / "story.txt").write_text(story(), encoding="utf-8")

    def import_tokens(self, out="data.h5", vocabulary=llmc_golden.VOCABULARY):
        tokens = self.given / "tokens.bin"
        self.run_program("import-tokens", tokens, "--val-file", tokens, "--vocab", vocabulary, "--out", out)

    def make_run(self):
        self.run_program("import", self.given / "float32.bin", "--out", "run")

    def test_the_loss_is_that_of_gpt2(self):
        self.import_tokens()
        for name in ("float32", "bfloat16"):
            content = (self.given / f"{name}.bin").read_bytes()
            self.assertEqual(hashlib.sha256(content).hexdigest(), GOLDEN[name]["sha256"], "the file of the losses")
            self.run_program("import", self.given / f"{name}.bin", "--out", name)
            loss = json.loads(self.run_program("eval", name, "--data", "data.h5", "--json").stdout)["val_loss"]
            self.assertAlmostEqual(loss, mean(GOLDEN[name]["losses"]), delta=NEAR)
        self.assertGreater(abs(mean(GOLDEN["float32"]["losses"]) - mean(GOLDEN["bfloat16"]["losses"])), 10 * NEAR)

    def test_training_goes_on_from_the_weights(self):
        """The command lines that import prints, in their order."""
        printed = self.run_program("import", self.given / "float32.bin", "--out", "a run").stdout
        tokens, evaluation, training = re.findall(r"^  minillm (.*)$", printed, re.M)
        for name in ("train.bin", "val.bin"):
            self.write(name, little_endian(llmc_golden.TOKENS))
        self.run_program(*shlex.split(tokens))
        self.assertIn("30 in 3 windows of 10", self.run_program(*shlex.split(evaluation)).stdout)
        done = self.run_program(*shlex.split(training), "train.steps=2", "optim.warmup_steps=1", "train.batch_size=3",
                             "data.order=sequential")
        self.assertIn("next: minillm eval 'a run_tuned'", done.stderr)
        lines = (self.folder / "a run_tuned" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        first, second = [json.loads(line)["loss"] for line in lines if "grad_norm" in line]
        self.assertAlmostEqual(first, mean(GOLDEN["float32"]["losses"]), delta=NEAR)
        self.assertLess(second, first)
        evaluated = json.loads(self.run_program("eval", "a run_tuned", "--json").stdout)
        self.assertEqual(evaluated["step"], 2)
        self.assertLess(evaluated["val_loss"], first)

    def test_files_that_are_refused(self):
        whole = (self.given / "float32.bin").read_bytes()
        values = whole[1024:]
        huge = 1024 + 4 * 65536 * (29 + 10 + 65536 * (12 * 65536 + 13) + 2)
        def imported(content, *patterns):
            return Row("import m.bin --out run", patterns, files={"m.bin": content})
        self.check_all([
            imported(whole[:-1], rf"m\.bin: the file is shorter .*found {len(whole) - 1} bytes; expected {len(whole)} "
                     r"bytes for 2 layers of 12 channels, .*copy it again"),
            imported(whole + b"0", r"the file is longer than its header says"),
            imported(llmc_golden.header(version=2) + values,
                     r"found version 2; expected 3 \(float32\) or 5 \(bfloat16\)"),
            imported(llmc_golden.header(num_layers=2**31 - 1) + values, r"shorter than its header says"),
            imported(llmc_golden.header(channels=2**31 - 1, num_heads=1) + values, r"expected more than any file has"),
            imported(llmc_golden.header(channels=65536, num_layers=65536, num_heads=1) + bytes(1000),  # K13
                     rf"found 2024 bytes; expected {huge} bytes for 65536 layers of 65536 channels"),
            imported(llmc_golden.header(num_heads=5) + values, r"found 5; expected a divisor of 12"),
            imported(llmc_golden.header(magic=20240520) + values, r"found a token file of llm\.c; .*import-tokens"),
            imported(values, r"m\.bin: is not a model that can be imported; found unknown binary data; "
                     r"expected a GPT-2 checkpoint of llm\.c"),
            imported(whole[:1024] + b"\0\0\xc0\x7f" + whole[1028:],
                     r"model\.embed_tokens\.weight is not finite; .*found nan at element 0"),
            imported(story(9), r"found text"),
            imported("", r"found an empty file"),
            ("import none --out run", r"none: cannot be opened: No such file or directory"),
            ("import . --out run", r"\.: is a folder without a model that can be imported; expected a file config\."),
            ("import /dev/zero --out run", r"/dev/zero: is not a file"),
            Row("import run/m.bin --out run --force",
                (r"run: a file that the command reads lies in the folder it would replace; found run/m\.bin",),
                files={"run/m.bin": whole, "run/config.toml": ""}),
            Row("import m.bin --out run --force", (r"run: is a folder with other files, not a run; found thesis\.txt",),
                files={"m.bin": whole, "run/thesis.txt": "mine"}),
            Row(["import", "m.bin", "--out", b"bad\xff".decode(errors="surrogateescape")],
                (r"error: --out: the folder's name is not UTF-8",), files={"m.bin": whole}),
            ("import m.bin", r"--out is missing; for example: minillm import"),
            ("import --out run", r"PATH is missing"),
            Row("import m.bin --out m.bin", (r"m\.bin: is a file, a folder is needed; choose another with --out",),
                files={"m.bin": whole}),
            Row("import m.bin --out run",
                (r"run: the run exists already; choose another folder with --out, or move this one to run\.old with "
                 r"--force$",),
                files={"m.bin": whole, "run/config.toml": "", "run/metrics.jsonl": ""}),
            Row("import m.bin --out run --force",
                (r"run: is a folder with other files, not a run; found config\.toml and neither checkpoints nor "
                 r"metrics\.jsonl; choose another with --out$",),
                files={"m.bin": whole, "run/config.toml": "title = 'my site'", "run/src/a.c": "code"}),
            Row("import m.bin --out run", (r"run: is a folder with other files, not a run; found checkpoints and ",),
                files={"m.bin": whole, "run/checkpoints/step_000000.h5": "precious"}),
            Row("import m.bin --out run", (r"step_000000\.h5: cannot be written: File too large",), status=1,
                files={"m.bin": whole}, options=support.limit_file_size(9000)),
            Row("train m.toml --init m.bin data.path=synthetic",
                (r"is not a safetensors file; found a GPT-2 model of llm\.c; minillm import m\.bin --out RUN",),
                files={"m.bin": whole, "m.toml": cli_support.SMALL}),
            Row("import-tokens m.bin --vocab 65536 --out d.h5", (r"looks like a GPT-2 model of llm\.c",),
                files={"m.bin": whole}),
        ])

    def test_what_an_imported_run_cannot_do(self):
        self.make_run()
        self.run_program("prepare", self.given / "story.txt", "--vocab", 300, "--out", "text.h5")
        self.import_tokens("larger.h5", llmc_golden.VOCABULARY + 1)
        before = self.tree(self.folder)
        for words, pattern in (
                ("generate run", r"step_000000\.h5: has no tokenizer for text"),
                ("eval run", r"the run has no data of its own; .*--data"),
                ("eval run --data text.h5", r"another tokenizer than run/.*expected none; .*minillm import-tokens"),
                ("eval run --data larger.h5",
                 r"larger\.h5: its vocabulary does not fit the model .*found vocab_size 24; expected at most 23"),
                ("train --resume run", r"holds weights only, so a run cannot go on from it; .*--init"),
                ("train run/config.toml data.path=larger.h5 model.vocab_size=24",
                 r"run: the run exists already; start from its weights with --init run and another --out, choose "
                 r"another folder with --out$"),
                ("train run/config.toml data.path=larger.h5 model.vocab_size=24 --force",
                 r"found run/config\.toml; choose another"),
                ("train run/config.toml --init run --out x", r"data\.path: a run needs data"),
                ("train run/config.toml --init run --out x data.path=larger.h5",
                 r"model\.vocab_size: is smaller than the data's"),
                ("train run/config.toml --init run --out x data.path=larger.h5 model.vocab_size=24",
                 r"belong to another model; found model\.vocab_size = 23; expected model\.vocab_size = 24")):
            with self.subTest(words):
                self.assertRegex(self.refused(*words.split()), pattern)
        self.assertEqual(self.tree(self.folder), before)

    def test_force_moves_the_old_run_aside(self):
        self.make_run()
        old = (self.folder / "run" / "checkpoints" / "step_000000.h5").read_bytes()
        done = self.run_program("import", self.given / "bfloat16.bin", "--out", "run", "--force")
        self.assertIn("the old run is now run.old", done.stderr)
        self.assertEqual((self.folder / "run.old" / "checkpoints" / "step_000000.h5").read_bytes(), old)
        self.assertNotEqual((self.folder / "run" / "checkpoints" / "step_000000.h5").read_bytes(), old)


if __name__ == "__main__":
    support.main()
