"""Wrong input through the command line: refused with one message that says where, what was found, what is expected and
what to do; nothing left behind. Entry numbers (T01, D04, ...) are those of docs/bug_trials.md."""
import json
import os
import random
import re
import shlex

import cli_support
import support
from cli_support import SMALL, Row, little_endian, story

COMMANDS = ("prepare", "import-tokens", "import", "train", "check", "eval", "generate", "gradcheck")


class CommandLine(cli_support.InputCase):
    def test_words_and_options(self):
        out = "--out d.h5"
        self.check_all([
            ("chek a.toml", r"unknown command chek; did you mean check\?"),
            ("train a.toml --thraeds 3", r"minillm train: unknown option --thraeds; did you mean --threads\?"),
            ("generate r --max-token=3", r"unknown option --max-token; did you mean --max-tokens\?"),
            ("train a.toml --optim.lr=3", r"settings have no dashes: optim\.lr=3"),
            ("eval r --checkpoint", r"--checkpoint needs a value; expected --checkpoint best\|last\|N"),
            ("generate r --top-k --json", r"--top-k needs a value; found --json"),
            (["train", "a.toml", "--init", ""], r'--init needs a value; found ""; expected --init W\.safetensors\|RUN'),
            (["train", "a.toml", "--out="], r'--out needs a value; found ""'),
            (["prepare", "a.txt", "--out", ""], r'--out needs a value; found ""'),
            (["check", ""], r'CONFIG\.toml is missing; found ""; for example: minillm check '),
            (["prepare", "", "--out", "d.h5"], r'FILE\|DIR\.\.\. is missing; found ""'),
            (["eval", ""], r"RUN is missing"),
            ("check a.toml b.toml", r"unexpected word b\.toml; expected section\.key=value"),
            ("check --json=yes a.toml", r"--json is a switch and takes no value; found --json=yes"),
            ("check a.toml --match 12x", r"--match: .*found 12x; expected from 1 to"),
            ("check a.toml --match 0", r"--match: .*found 0; expected from 1 to"),
            Row("train a.toml train.threads=1 --threads 2",
                (r"--threads: says the same as train\.threads; found train\.threads=1",), files={"a.toml": SMALL}),
            Row("train a.toml run.out=a --out b", (r"--out: says the same as run\.out; found run\.out=a",),
                files={"a.toml": SMALL}),
            ("train a.toml --threads 1025", r"--threads: .*found 1025; expected from 0 to 1024"),
            ("import-tokens a.bin --vocab 9 --out d.h5 --val 0.1 --val-file b.bin",
             r"--val: does not go with --val-file"),
            ("train a.toml --threads 2.0", r"--threads: .*found 2\.0; expected from 0 to"),
            ("generate r --temperature 1.0f", r"--temperature: the value is not a number; found 1\.0f"),
            ("generate r --seed 99999999999999999999", r"--seed: .*in range; found 9+; expected from 0"),
            ("eval none --tokens 5", r"none: there is no such run; expected the folder of a run, runs/NAME"),
            ("prepare a.txt --vocab 258 " + out, r"--vocab: .*found 258; expected from 260"),
            ("train", r"a config is missing; expected CONFIG\.toml or --resume DIR"),
            ("train a.toml --resume r", r"a resumed run brings its own config; found a\.toml"),
            ("train --resume r --out o", r"--out: does not go with --resume"),
            ("train --resume none", r"none: there is no such run"),
            Row("train --resume a.toml", (r"a\.toml: there is no such run",), files={"a.toml": SMALL}),
        ])

    def test_help_and_examples(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.run_program(command, "--help").stdout
                self.assertIn("Usage:\n  minillm " + command, text)
                examples = [line.strip() for line in text.splitlines() if line.startswith(f"  minillm {command} ")]
                self.assertGreaterEqual(len(examples[1:]), 1, "an example")
                # In an empty folder nothing is wrong with an example but that its files are not there.
                for example in examples[1:]:
                    message = self.refused(*shlex.split(example)[1:])
                    self.assertRegex(message, r"cannot (be opened|read)|there is no such run", example)

    def test_controls_cannot_steer_a_terminal(self):
        for words in (["check", "\x1b[31mred.toml"], ["prepare", "\x1b]0;title\x07", "--out", "d.h5"],
                      ["eval", "a\x1b[2J"], ["check", "a.toml", "x\x1b.y=3"]):
            self.assertIn("\\x1b", self.refused(*words))
        config = self.write("a.toml", '[model]\n"d\\u001b[31m" = 3\n')
        self.assertIn("unknown key model.d\\x1b[31m", self.refused("check", config.name))

    def test_results_that_cannot_be_written(self):
        config = self.write("a.toml", SMALL)
        with open("/dev/full", "wb") as full:
            for words in (["check", config.name], ["check", config.name, "--json"], ["--help"]):
                done = self.run_program(*words, status=1, stdout=full)
                self.assertRegex(done.stderr, r"^error: standard output cannot be written: No space left on device")


class Configs(cli_support.InputCase):
    def check_settings(self, *table):
        """(settings, pattern, ...): on top of SMALL."""
        self.check_all([Row(["check", "a.toml", *settings.split()], patterns, files={"a.toml": SMALL})
                        for settings, *patterns in table])

    def test_keys(self):
        self.check_settings(
            ("optim.learing_rate=3e-4", r"unknown key optim\.learing_rate; did you mean lr\?"),
            ("model.n_head=3", r"did you mean n_heads\?"),
            ("modle.n_heads=3", r"did you mean model\.n_heads\?"),
            ("train.lr=3", r"that key belongs to \[optim\]"),
            ("lr=3e-4", r"not an override; expected section\.key=value; did you mean optim\.lr\?"),
            ("model.n_layers=6.5", r"n_layers: wrong type; found 6\.5; expected an integer in \[1, 10000\]"),
            ("model.n_layers=12x", r'wrong type; found the word "12x"; expected an integer'),
            ('model.n_layers="6"', r'found the string "6"'),
            ("model.tie_embeddings=yes", r'found the word "yes"; expected true or false'),
            ("train.seed=99999999999999999999", r"found 9+, which is not between -2\^63 and 2\^63 - 1"),
            ("optim.lr=", r"optim\.lr: wrong type; found nothing; expected a number"),
            ("model.norm=layrnorm",
             r'unknown word; found "layrnorm"; expected one of rmsnorm.*did you mean layernorm\?'),
            ("model.ffn=swigul", r"did you mean swiglu\?"),
            ('model.norm="layernorm', r"expected a word, or TOML text in quotes"))

    def test_values(self):
        self.check_settings(
            # C09
            ("optim.lr=-1e-3", r"command line: optim\.lr: value out of range; found -0\.001; expected a finite number"),
            ("optim.lr=nan", r"found nan"),
            ("optim.lr=inf", r"found inf"),
            ("optim.weight_decay=-0.1", r"optim\.weight_decay: .*found -0\.1"),
            ("optim.beta2=1.0", r"optim\.beta2: .*found 1; expected a number in \[0, 1\)"),
            ("optim.eps=0", r"optim\.eps: .*found 0"),
            ("optim.grad_clip=-1", r"optim\.grad_clip: .*0 switches clipping off"),
            ("model.n_layers=0", r"found 0; expected an integer in \[1"),  # C10
            ("train.batch_size=0", r"found 0"),
            ("data.seq_len=0", r"found 0"),
            ("model.vocab_size=1", r"found 1; expected an integer in \[2"),
            ("model.causal=false", r'expected true with data\.objective = "next"'),
            # C06
            ("optim.warmup_steps=3", r"found 3; expected 0 to train\.steps = 2; shorten the warm-up or lengthen"),
            ("train.micro_batch_size=3 train.batch_size=4", r"does not divide train\.batch_size; found 3"))

    def test_shapes(self):
        self.check_settings(
            # C03
            ("model.d_model=100 model.n_heads=12", r"command line: model\.n_heads: .*found 12; expected 10 or 20"),
            ("model.d_model=100 model.n_heads=8", r"d_model 100 is not a multiple .*found 8; expected 5 or 10"),
            ("model.d_model=17", r"a\.toml:5: model\.n_heads: .*found 2; expected 1 or 17"),
            ("model.d_model=56 model.n_heads=7 model.n_kv_heads=2",
             r"does not divide n_heads 7; found 2; expected 1 or 7"),
            ("model.n_heads=4 model.n_kv_heads=8", r"does not divide n_heads 4; found 8; expected 4"),  # C04
            ("model.n_heads=4 model.n_kv_heads=3", r"found 3; expected 2 or 4"),
            ("model.n_kv_heads=0", r"n_kv_heads: value out of range; found 0"),
            ("model.n_kv_heads=-1", r"found -1"),
            # C05
            ("model.d_model=520 model.n_heads=8", r"needs an even width; found 65 \(derived\); expected 64 or 66"),
            ("model.max_seq_len=63", r"max_seq_len: is smaller than data\.seq_len; found 63; expected at least 64"))
        for settings in ("model.d_model=520 model.n_heads=8 model.position=none", "model.n_heads=4 model.n_kv_heads=1",
                         "model.n_heads=4 model.n_kv_heads=2", "model.n_heads=4 model.n_kv_heads=4", "optim.lr=1"):
            self.write("a.toml", SMALL)
            self.run_program("check", "a.toml", *settings.split())

    def test_sizes_beyond_all_bounds(self):
        largest = 2**31 - 1
        self.check_settings(
            (f"model.d_model={largest - 1} model.d_ff={largest}", r"too large to be counted.*at most 1e\+15 of each"),
            (f"model.n_heads={largest} model.head_dim=2 model.n_layers=10000 model.d_model=4096", r"too large"),
            (f"model.d_model={largest}", r"expected 1 or 2147483647"),  # a prime
            ("model.n_layers=2000000000", r"expected an integer in \[1, 10000\]"),
            (f"model.d_model={2**31}", r"found 2147483648; expected an integer in \[1, 2147483647\]"))
        self.write("a.toml", SMALL)
        self.run_program("check", "a.toml", "model.n_layers=2000")
        self.check_all([
            Row("check a.toml --match 9223372036854775807", (r"expected from 1 to 1000000000000000",),
                files={"a.toml": SMALL}),
            Row("check a.toml --match 1000000000000000",
                (r"--match: no model\.d_ff reaches it: the largest is 2147483647; found 10+; expected at most \d+",),
                files={"a.toml": SMALL}),
            Row("check a.toml --match 3 --match 8000", (r"minillm check: --match is given twice",)),
            Row(["train", "a.toml", "--out", b"bad\xff".decode(errors="surrogateescape")],
                (r"error: --out: the folder's name is not UTF-8",)),
            Row("check a.toml --match 1", (r"the rest of the model is larger already; found 1; expected at least \d+",),
                files={"a.toml": SMALL}),
            Row("train a.toml data.path=synthetic model.d_model=2000000 model.n_heads=1000000",
                (r"do not fit this machine's memory; found [\d.]+ TB; expected at most",), files={"a.toml": SMALL}),
            Row("train a.toml data.path=synthetic train.batch_size=2000000000",
                (r"train\.micro_batch_size: .*do not fit this machine's memory.*found [\d.]+ TB for 2000000000 x 64",),
                files={"a.toml": SMALL})])

    def test_files(self):
        too_deep = "x = " + "[" * 100000
        self.check_all([
            ("check none.toml", r"none\.toml: cannot read the config: No such file or directory"),
            Row("check a.toml", (r"a\.toml:2: unknown key optim\.lrr; did you mean lr\?",),
                files={"a.toml": "[optim]\r\nlrr = 1\r\n"}),
            Row("check a.toml", (r"a\.toml:3: not valid TOML; found .*cannot redefine",),
                files={"a.toml": "[model]\nd_model = 16\nd_model = 32\n"}),
            Row("check a.toml", (r"a\.toml:1: not valid TOML; found .*expected '='",), files={"a.toml": story(3)}),
            Row("check a.toml", (r"a\.toml:2: not valid TOML; found .*utf-8",),
                files={"a.toml": b'[model]\nnorm = "\xff"\n'}),
            Row("check a.toml", (r"not valid TOML; found .*depth",), files={"a.toml": too_deep}),
            Row("check a.toml", (r"a\.toml: is not a config file; found unknown binary data",),
                files={"a.toml": b"\x00\x01" * 999}),
            Row("check a.h5", (r"a\.h5: is not a config file; found a minillm file; expected TOML text",),
                files={"a.h5": b"minillm-file\n" + b" " * 600}),
            Row("check a.toml", (r"a\.toml:1: cannot read the base config: No such file or directory; found b\.toml",),
                files={"a.toml": 'base = "b.toml"\n'}),
            Row("check a.toml", (r"a\.toml:1: base files form a cycle",), files={"a.toml": 'base = "a.toml"\n'}),
            ("check .", r"\.: a folder, not a config file"),
            ("check /dev/zero", r"/dev/zero: is not a config file"),
            Row("check a.toml",
                (r"model\.vocab_size: is not set, and there is no data to take it from; set it, or data\.path",),
                files={"a.toml": ""}),
            Row("check a.toml", (r"a\.toml:2: data\.path: there is no such file; found none\.h5; .*minillm prepare",),
                files={"a.toml": '[data]\npath = "none.h5"\n'}),
            Row("gradcheck a.toml",
                (r"a\.toml:3: model\.n_heads: d_model 10 is not a multiple .* found 3; expected 2 or 5",),
                files={"a.toml": "[model]\nd_model = 10\nn_heads = 3\n"}),
        ])

    def test_all_problems_at_once(self):
        self.write("a.toml", "[model]\nd_model = 100\nn_heads = 12\nn_kv_heads = 5\nnorm = 'layrnorm'\ndropout = 1.5\n"
                             "[optim]\nlearing_rate = 3e-4\nwarmup_steps = 2000\n[trian]\nsteps = 3\n"
                             "[train]\nbatch_size = 'many'\n[data]\nseq_len = 9\n")
        message = self.refused("check", "a.toml", "optim.beta2=1", "--json")
        found = [line.split(": ")[0:2] for line in message.removeprefix("error: ").splitlines()]
        self.assertEqual(sorted(found), sorted([
            ["a.toml:6", "model.dropout"], ["a.toml:8", "unknown key optim.learing_rate; did you mean lr?"],
            ["a.toml:10", "unknown section [trian]; did you mean [train]?"], ["a.toml:13", "train.batch_size"],
            ["a.toml:5", "model.norm"], ["a.toml:3", "model.n_heads"], ["a.toml:4", "model.n_kv_heads"],
            ["command line", "optim.beta2"], ["a.toml:9", "optim.warmup_steps"]]))

    def test_accepted_text(self):
        plain = self.write("plain.toml", SMALL)
        marked = self.write("marked.toml", b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())  # T21, T22
        first, second = (json.loads(self.run_program("check", path.name, "--json", "run.name=模型 é").stdout)
                         for path in (plain, marked))
        self.assertEqual(first, second)
        self.assertEqual(first["config"]["run"]["name"], "模型 é")
        with open(plain, "rb") as text:
            self.run_program("check", "/dev/stdin", stdin=text)

    def test_json_is_one_object(self):
        self.write("a.toml", SMALL)
        for words in ("check a.toml", "check a.toml --match 20000", "gradcheck a.toml model.d_model=8 model.d_ff=8"):
            done = self.run_program(*words.split(), "--json")
            self.assertEqual(done.stdout.count("\n"), 1)
            self.assertIsInstance(json.loads(done.stdout), dict)
        self.assertIn("optim.lr is 0", self.run_program("check", "a.toml", "optim.lr=0").stdout)  # C09


class Corpora(cli_support.InputCase):
    def test_useless_text(self):
        def prepare(content, *patterns, vocab=300):
            return Row(f"prepare in.txt --vocab {vocab} --out d.h5", patterns, files={"in.txt": content})
        self.check_all([
            prepare("", r"in\.txt: the file is empty \(0 bytes\)"),
            prepare(" \n\t\r\n" * 9, r"the text is blank: nothing but blanks and line ends; found 45 bytes"),
            prepare("hi\n", r"too small for a vocabulary of 300; .*at most 262; use --vocab 262 or more text"),
            prepare("a b c d a b c", r"vocabulary of 4000; found \d+ bytes.*use --vocab \d+", vocab=4000),
            prepare("a b c d a b c", r"vocabulary of 2147483647; .*use --vocab \d+", vocab=2**31 - 1),
            prepare(b"\xff\xfe" + story(9).encode("utf-16le"),
                    r"UTF-16 text; expected UTF-8; convert it: iconv -f UTF-16"),
            prepare(bytes(range(256)) * 99, r"is not text: looks like unknown binary data"),
            prepare(b"\x89HDF\r\n\x1a\n" + bytes(600), r"is not text: looks like plain HDF5"),
            ("prepare none.txt --out d.h5", r"none\.txt: cannot be opened: No such file or directory"),
            ("prepare . --out d.h5", r"\.: the folder holds no text files"),
            ("prepare /dev/null --out d.h5", r"/dev/null: is not a file"),
            Row("prepare in.txt --out other.txt", (r"other\.txt: exists and is no data file of minillm; found text",),
                files={"in.txt": story(400), "other.txt": "somebody's work"}),
            Row("prepare in.txt --out in.txt", (r"in\.txt: is both the input and the output",),
                files={"in.txt": "abc"}),
            Row("prepare in.txt --out no/d.h5", (r"the folder no does not exist; mkdir -p no",),
                files={"in.txt": "abc"}),
            Row("prepare in.txt --out .", (r"is a folder, a file's name is needed",), files={"in.txt": "abc"}),
            Row("prepare in.txt --out d.h5 --val 10%", (r"--val: .*found 10%",), files={"in.txt": "abc"}),
            Row("prepare in.txt --out d.h5 --val 1", (r"--val: .*found 1; expected 0 <= share < 1",),
                files={"in.txt": "a"}),
            Row("prepare in.txt --out d.h5 --tokenizer in.txt",
                (r"in\.txt: is not a SentencePiece model; found text; expected a \.model file of SentencePiece, or a "
                 r"data file of minillm prepare$",), files={"in.txt": story(9)}),
            Row(["prepare", "in.txt", "--out", "d.h5", "--separator", "a\nb"],
                (r"--separator: .*cannot hold a line end; found a\\x0ab; expected one line",), files={"in.txt": "abc"}),
        ])

    def test_targets_that_are_no_files(self):
        self.write("in.txt", story())
        self.write("in.bin", little_endian(range(9)))
        os.mkfifo(self.folder / "pipe")
        (self.folder / "link").symlink_to("pipe")
        for words in ("prepare in.txt --vocab 300 --out pipe", "import-tokens in.bin --vocab 9 --out pipe",
                      "prepare in.txt --vocab 300 --out link"):
            self.assertRegex(self.refused(*words.split()), r"(pipe|link): cannot be replaced by a file; found a pipe")
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.bin", "in.txt", "link", "pipe"])

    def test_text_whose_vocabulary_has_no_blank(self):
        """Chinese has no blank between words: where one stands all the same it is a byte token, in text and prompts."""
        numbers = random.Random(1)
        text = "".join("".join(numbers.choices("春眠不覺曉處聞啼鳥夜來風雨", k=20)) + "。\n" for _ in range(300))
        for name, content in (("nowhere", text), ("val", text + "春 眠\n"), ("train", "春 眠\n" + text)):
            with self.subTest(name):
                self.write("in.txt", content)
                self.run_program("prepare", "in.txt", "--vocab", 270 if name == "train" else 300, "--out", "d.h5")
                self.run_program("prepare", "in.txt", "--tokenizer", "d.h5", "--out", "again.h5")
                self.assertEqual((self.folder / "d.h5").read_bytes(), (self.folder / "again.h5").read_bytes())
        self.write("a.toml", SMALL.replace("vocab_size = 300\n", ""))
        self.run_program("train", "a.toml", "data.path=d.h5", "--out", "run")
        done = self.run_program("generate", "run", "--prompt", " a ", "--max-tokens", 0, "--json")
        self.assertEqual(json.loads(done.stdout)["prompt_token_ids"], [1, 3 + 0x20, 3 + 0x61, 3 + 0x20])
        self.write("in.txt", "hello world")
        self.run_program("prepare", "in.txt", "--vocab", 262, "--val", 0.5, "--out", "d.h5")

    def test_the_noted_window_fits(self):
        self.write("a.toml", SMALL.replace("vocab_size = 300\n", "").replace("eval_tokens = 128\n", ""))
        self.write("in.txt", story(40))
        for share in (0.05, 0.9):  # the shorter split is /val, then /train
            summary = self.run_program("prepare", "in.txt", "--vocab", 280, "--val", share, "--out", "d.h5").stdout
            longest = int(re.search(r"set data\.seq_len to at most (\d+)$", summary, re.M).group(1))
            words = ["train", "a.toml", "data.path=d.h5", "--out", "run", "--force"]
            self.run_program(*words, f"data.seq_len={longest}")
            self.assertRegex(self.refused(*words, f"data.seq_len={longest + 1}"), "is shorter than one window")

    def test_what_a_folder_holds_beside_text_is_named(self):
        self.write("in/a.txt", story())
        self.write("in/SOURCE", "where it comes from")
        self.write("in/sub/b.txt", story())
        self.write("in/nothing.txt", "")
        self.write("in/.hidden", "x")
        (self.folder / "in" / "link.txt").symlink_to("no/where")
        log = self.run_program("prepare", "in", "--vocab", 300, "--out", "d.h5").stderr
        self.assertIn("in: SOURCE is recorded as where the text comes from, and not read as text\n", log)
        self.assertIn("in: sub-folders are not read: sub\n", log)
        self.assertIn("in: empty files are left out: nothing.txt\n", log)
        self.assertIn("in: no files, or links to nothing, are left out: link.txt\n", log)
        self.assertNotIn("hidden", log)

    def test_the_largest_vocabulary_that_is_named_works(self):
        for text in ("hi\n", "a b c d a b c", story(20), "a\nb\nc\nd\n", "hello world"):
            self.new_folder()
            self.write("in.txt", text)
            message = self.refused("prepare", "in.txt", "--out", "d.h5", "--vocab", 5000)
            largest = re.search(r"use --vocab (\d+)", message).group(1)
            self.run_program("prepare", "in.txt", "--out", "d.h5", "--vocab", largest)  # T01, T02

    def test_a_place_that_cannot_be_written(self):
        old = b"minillm-file\nbytes 00000000000000000999\nformat minillm-tokens 1\n" + b"an older file\n" * 9
        self.check_all([
            Row("prepare in.txt --vocab 300 --out d.h5", (r"d\.h5: cannot be written: File too large", "make room"),
                status=1, files={"in.txt": story(), "d.h5": old}, options=support.limit_file_size(4096)),  # D10
            Row("import-tokens in.bin --vocab 9 --out d.h5", (r"d\.h5: cannot be written: File too large", "make room"),
                status=1, files={"in.bin": little_endian(range(9)), "d.h5": old},
                options=support.limit_file_size(600)),
        ])
        self.new_folder()
        self.write("in.txt", story())
        self.folder.chmod(0o555)
        message = self.refused("prepare", "in.txt", "--vocab", 300, "--out", "d.h5", **self.as_somebody())
        self.assertRegex(message, r"d\.h5: cannot be (written|created): Permission denied")
        self.assertEqual(os.listdir(self.folder), ["in.txt"])

    def test_strange_text_is_kept(self):
        """CRLF, BOM, NUL, emoji, invalid bytes: every byte counts and is reported (T05, T10, T21, T22)."""
        text = story(800).encode().replace(b"\n", b"\r\n")
        text = b"\xef\xbb\xbf" + text + b"ab\0cd \xff\xfe \xe2\x82 end\r\n" * 40
        text += "  歪😀é…ﬁ\u00a0\u2581 \t x\r\n".encode() * 40
        self.write("in.txt", text)
        summary = self.run_program("prepare", "in.txt", "--vocab", 300, "--out", "d.h5").stdout
        sizes = re.findall(r"^  (?:train|val) .*?([\d,]+) bytes$", summary, re.M)
        self.assertEqual(sum(int(size.replace(",", "")) for size in sizes), len(text))
        parted = self.run_program("prepare", "in.txt", "--vocab", 300, "--out", "d.h5", "--separator", "").stdout
        self.assertIn("1 document from 1 file\n", parted)  # no blank line; an empty value means one
        for note in ("880 of 880 lines end in CR LF", "byte order mark", "NUL", "UTF-8"):
            self.assertIn(note, summary)


if __name__ == "__main__":
    support.main()
