"""Wrong data, folders, weights and runs through the command line: refused with one message, nothing left behind; and
strange ones that are right. Entry numbers (D04, K15, ...) are those of docs/bug_trials.md."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import cli_support
import support
from cli_support import SMALL, Row, little_endian, story


class Data(cli_support.InputCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.given / "story.txt"
        text.write_text(story(), encoding="utf-8")
        (cls.given / "a.toml").write_text(SMALL.replace("vocab_size = 300\n", ""), encoding="utf-8")
        for words in ([ "prepare", text, "--vocab", 300, "--out", cls.given / "d.h5"],
                      ["train", cls.given / "a.toml", f"data.path={cls.given}/d.h5", "--out", cls.given / "run"]):
            subprocess.run([support.PROGRAM, *map(str, words)], check=True, capture_output=True)
        cls.config = ["train", cls.given / "a.toml"]

    def test_raw_tokens(self):
        ids = [7] * 5000
        ids[1234] = 999
        def imported(content, words, *patterns):
            return Row(f"import-tokens in.bin --out d.h5 {words}", patterns, files={"in.bin": content})
        self.check_all([
            imported(little_endian(ids), "--vocab 512",
                     r"in\.bin: the token at position 1234 .*found 999; expected ids "
                     r"below --vocab 512; check --vocab, and --dtype \(read as u16\)"),  # D04
            imported(little_endian([65535, 65536, 70000], 4), "--vocab 70000", r"position 2 .*found 70000"),  # D05
            imported(b"abc", "--vocab 512", r"ends inside a token; found 3 bytes; expected a multiple of 2"),
            imported(b"", "--vocab 512", r"in\.bin: the file is empty \(0 bytes\)$"),
            imported(b"minillm-file\n" + b" " * 601, "--vocab 65536",
                     r"not a raw token file: looks like a minillm file"),  # K14
            imported(b"\x89HDF\r\n\x1a\n" + bytes(600), "--vocab 65536", r"looks like plain HDF5"),
            imported(b"\0\0" * 9, "--vocab 1", r"--vocab: .*found 1; expected from 2 to 2147483647"),
            imported(b"ab", "--vocab 65536 --dtype u64", r"--dtype: unknown type; found u64; expected u16 or u32"),
            imported(b"ab", "--vocab 65536 --val-file none", r"none: cannot be opened: No such file or directory"),
            Row("import-tokens in.bin --vocab 65536 --out in.bin", (r"in\.bin: is both the input and the output",),
                files={"in.bin": b"abcd"}),
        ])

    def test_a_vocabulary_that_no_memory_counts(self):
        largest = 2**31 - 1
        if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 16 * largest:
            self.skipTest("this machine has the memory")
        self.write("in.bin", little_endian(range(9), 4))
        def first_to_be_killed():  # a program that does not check must not cost others their memory
            pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")
        message = self.refused("import-tokens", "in.bin", "--vocab", largest, "--out", "d.h5",
                                  preexec_fn=first_to_be_killed)
        self.assertRegex(message, r"--vocab: the counts .* do not fit this machine's memory; found 34\.4 GB for "
                                  r"2147483647 ids; expected at most [\d.]+ GB; give the size")
        self.assertEqual(os.listdir(self.folder), ["in.bin"])

    def test_lengths_around_a_window(self):
        for tokens, works in ((10, False), (40, False), (64, False), (65, True), (66, True)):  # D01, D02, D03
            self.new_folder()
            self.write("in.bin", little_endian(index % 300 for index in range(tokens)))
            done = self.run_program("import-tokens", "in.bin", "--vocab", 300, "--val", 0, "--out", "d.h5")
            self.assertIn("a run on it trains without evaluations, eval refuses it\n", done.stdout)
            words = [*self.config, "data.path=d.h5", "--out", "run"]
            if works:
                log = self.run_program(*words).stderr
                self.assertIn("(1 windows of 64)", log)
                self.assertRegex(log, r"final val_loss unknown, best unknown\nin run\n$")  # names no refused command
                self.assertRegex(self.refused("eval", "run"), r"the val split: .* needs 65 tokens, has 0")
            else:
                self.assertRegex(self.refused(*words),
                                 f"the train split: is shorter than one window: needs 65 tokens, "
                                                          f"has {tokens}; prepare more text, or lower data.seq_len")
                self.assertFalse((self.folder / "run").exists())

    def test_a_validation_split_smaller_than_a_batch(self):
        self.write("in.bin", little_endian(index % 300 for index in range(200)))  # D07
        self.run_program("import-tokens", "in.bin", "--vocab", 300, "--val-file", "in.bin", "--out", "d.h5")
        self.run_program(*self.config, "data.path=d.h5", "--out", "run", "train.batch_size=32")
        done = json.loads(self.run_program("eval", "run", "--json").stdout)
        self.assertEqual(done["tokens"], 3 * 64)
        self.assertLess(0, done["val_loss"])
        self.assertIsNone(done["bits_per_byte"])

    def test_files_that_are_no_data(self):
        whole = (self.given / "d.h5").read_bytes()
        size = len(whole)
        flipped = bytearray(whole)
        flipped[3000] ^= 4
        checkpoint = self.given / "run" / "checkpoints" / "step_000002.h5"
        def training(content, *patterns):
            return Row([*self.config, "data.path=x.h5"], patterns, files={"x.h5": content})
        self.check_all([
            training(whole[:size // 2],
                     rf"x\.h5 is incomplete: {size // 2} of {size} bytes; run minillm prepare again"),  # D09
            training(whole[:100], rf"x\.h5 is incomplete: 100 of {size} bytes"),
            training(whole[:-1], rf"incomplete: {size - 1} of {size} bytes"),
            training(bytes(flipped), r"x\.h5 was damaged: checksum differs; run minillm prepare again"),  # K15
            training(whole[512:], r"not a minillm file: looks like plain HDF5"),
            training(story(9), r"not a minillm file: looks like text; a file of kind minillm-tokens is needed"),  # K14
            training("", r"looks like an empty file"),
            training(checkpoint.read_bytes(), r"x\.h5 is a minillm-checkpoint file, a minillm-tokens file is needed"),
            ([*self.config, "data.path=none.h5"],
             r"command line: data\.path: there is no such file; found none\.h5; expected a "
             r"file of `minillm prepare`, or \"synthetic\"; minillm prepare text\.txt --out data\.h5"),
            (self.config, r"data\.path: a run needs data; .*minillm prepare"),
            ([*self.config, "data.path=."], r"\.: is a folder, a file is needed"),
            ([*self.config, "data.path=/dev/zero"], r"/dev/zero: is not a file"),
            ([*self.config, f"data.path={self.given}/d.h5", "model.vocab_size=200"],
             r"command line: model\.vocab_size: is smaller than the data's .*found 200; expected at least 300"),
            ([*self.config, f"data.path={self.given}/d.h5", "data.seq_len=7000"],
             r"the val split: is shorter than one window"),
        ])

    def test_places_for_a_run(self):
        words = [*self.config, f"data.path={self.given}/d.h5", "--out"]
        self.check_all([
            ([*words, self.given / "run"], r"the run exists already; go on with --resume .*--out.*--force"),
            Row([*words, "file"], (r"file: is a file, a folder is needed; choose another with --out",),
                files={"file": ""}),
            Row([*words, "file/run"], (r"file/run: the run's folder cannot be made: Not a directory",),
                files={"file": ""}),
        ])
        self.run_program(*words, "not/there/yet/")  # K16
        self.assertEqual(len(os.listdir(self.folder / "not" / "there" / "yet" / "checkpoints")), 2)

    def test_initial_weights(self):
        words = [*self.config, f"data.path={self.given}/d.h5", "--init"]
        header = b'{"a":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}}'
        run = self.given / "run"
        self.check_all([
            ([*words, "none"],
             r"none: cannot be opened; found No such file or directory; expected a \.safetensors file"),
            ([*words, "."], r"\.: is not a run's folder: it has no config\.toml"),
            ([*words, self.given / "story.txt"], r"is not a safetensors file; found text"),
            ([*words, self.given / "d.h5"], r"is a minillm-tokens file, a minillm-checkpoint file is needed"),
            Row([*words, "w.st"], (r"w\.st: ",), files={"w.st": b"\xff" * 8 + b"{" * 92}),  # K05
            Row([*words, "w.st"], (r"tensor a ",),
                files={"w.st": len(header).to_bytes(8, "little") + header + b"0000"}),
            # K17: the setting is named, with the tensors; and what no shape shows is caught too.
            ([*words, run, "model.d_model=32"],
             r"found model\.d_model = 16, model\.head_dim = 8; expected model\.d_model = 32, "
             r"model\.head_dim = 16",
              r"model\.embed_tokens\.weight: \[300, 16\] in the file, \[300, 32\] in the model"),
            ([*words, run, "model.n_heads=4"],
             r"belong to another model; found model\.n_heads = 2, .*expected model\.n_heads = 4"),
            ([*words, run, "model.norm=zero_centered_rmsnorm"], r'expected model\.norm = "zero_centered_rmsnorm"$'),
        ])
        self.run_program(*words, run, "--out", "run", "model.dropout=0.1", "model.max_seq_len=128")

    def test_using_a_run(self):
        run = self.given / "run"
        (self.given / "u.bin").write_bytes(little_endian(range(300)))
        self.run_program("import-tokens", self.given / "u.bin", "--vocab", 300, "--out", self.given / "u.h5")
        self.check_all([
            (["eval", run, "--tokens", "63"], r"--tokens: .*found 63; expected from 64"),
            (["eval", run, "--data", "none"], r"none: cannot be opened"),
            (["eval", run, "--data", self.given / "u.h5"],
             r"was made with another tokenizer .*found SHA-256 none; .*minillm prepare"),
            (["eval", run, "--checkpoint", "77"], r"there is no checkpoint 77; the run has the checkpoints 2, best"),
            (["eval", run, "--checkpoint", "frst"], r"found frst; expected last, best or a number of steps"),
            (["eval", "."], r"\.: is not a run's folder: it has no config\.toml"),
            # K14
            (["generate", self.given / "d.h5"], r"is a minillm-tokens file, a minillm-checkpoint file is needed"),
            (["generate", self.given / "story.txt"], r"not a minillm file: looks like text"),
            # I02
            (["generate", run, "--prompt", story(9)], r"--prompt: does not fit .*found \d+ tokens, .*expected 1 to 64"),
            (["train", "--resume", run, "model.n_layers=2"],
             r"model\.n_layers: .*found 2; expected 1; start another run, with --init"),
            (["train", "--resume", run, f"data.path={self.given}/u.h5", "train.steps=3"],
             r"u\.h5: is not the data this run was trained on"),  # R04
            (["train", "--resume", run, "train.steps=1", "optim.warmup_steps=0"],
             r"train\.steps: the run has done 2 updates already; found 1; expected 2 or more; .*--checkpoint N"),
            (["train", "--resume", run, "optim.lr=-1"], r"command line: optim\.lr: .*found -1"),  # C09
            (["train", "--resume", run, "lr=1"], r"found lr=1; .*section\.key=value changes a setting"),
        ])

    def test_files_of_the_command_in_the_folder_it_would_replace(self):
        self.write("run/config.toml", SMALL)
        shutil.copy(self.given / "d.h5", self.folder / "run" / "d.h5")
        shutil.copytree(self.given / "run", self.folder / "old")
        before = self.tree(self.folder)
        for words, found in (([*self.config, "data.path=run/d.h5", "--out", "run"], "run/d.h5"),
                             (["train", "run/config.toml", "data.path=synthetic", "--out", "run"], "run/config.toml"),
                             ([*self.config, f"data.path={self.given}/d.h5", "--init", "old", "--out", "old"], "old")):
            self.assertIn(f"lies in the folder it would replace; found {found};", self.refused(*words, "--force"))
            self.assertNotIn("--force", self.refused(*words))
        self.assertIn("thesis", self.refused(*self.config, f"data.path={self.given}/d.h5", "--force", "--out",
                                             self.write("mine/thesis.txt", "").parent))
        shutil.rmtree(self.folder / "mine")
        self.assertEqual(self.tree(self.folder), before)

    def test_what_a_resume_refuses_it_does_not_announce(self):
        shutil.copytree(self.given / "run", self.folder / "run")
        for change, found in (("train.batch_size=1", "found 1; expected 2"), ("train.seed=2", "found 2; expected 1337"),
                              ("model.n_heads=3", "found 3; expected 2"), ("data.seq_len=32", "found 32; expected 64")):
            done = self.run_program("train", "--resume", "run", "train.steps=30", change, status=2)
            self.assertRegex(done.stderr, rf"^error: {change.split('=')[0]}: a resumed run keeps its model, data and "
                                          rf"batches; {found}")
        done = self.run_program("train", "--resume", "run", "train.steps=3", "train.batch_size=0x2")
        self.assertIn("changed at resume: train.steps = 3 (was 2)\n", done.stderr)

    def test_data_that_does_not_fit_the_model(self):
        self.write("u.bin", little_endian(index % 300 for index in range(900)))
        self.write("b.bin", little_endian(index % 4000 for index in range(9000)))
        self.run_program("import-tokens", "u.bin", "--vocab", 300, "--out", "u.h5")
        self.run_program("import-tokens", "b.bin", "--vocab", 4000, "--out", "b.h5")
        self.run_program(*self.config, "data.path=u.h5", "--out", "run")
        self.assertRegex(self.refused("eval", "run", "--data", "b.h5"),
                         r"b\.h5: its vocabulary does not fit the model of run/.*found vocab_size 4000; expected")
        # The hint is only given where it leads to data that fits.
        self.assertRegex(self.refused("eval", "run", "--data", self.given / "d.h5"), r"expected none; .*import-tokens$")
        self.run_program(*self.config, "data.path=synthetic", "--out", "built-in")
        self.assertRegex(self.refused("eval", "built-in", "--data", "u.h5"),
                         r"found SHA-256 none; .*; the run was trained on the built-in corpus")
        shutil.copy(self.given / "d.h5", self.folder / "d.h5")
        self.run_program(*self.config, "data.path=d.h5", "--out", "text")
        self.assertIn("minillm prepare TEXT --tokenizer d.h5 makes", self.refused("eval", "text", "--data", "u.h5"))
        shutil.copy(self.folder / "u.h5", self.folder / "d.h5")
        for words in (["eval", "text"], ["eval", "text", "--data", "u.h5"]):
            self.assertRegex(self.refused(*words), r"another tokenizer .*expected \w{64}$")

    def test_data_prepared_again(self):
        shutil.copy(self.given / "story.txt", self.folder / "story.txt")
        self.run_program("prepare", "./story.txt", "--vocab", 300, "--out", "again.h5")
        self.assertEqual((self.folder / "again.h5").read_bytes(), (self.given / "d.h5").read_bytes())
        shutil.copytree(self.given / "run", self.folder / "run")
        self.run_program("train", "--resume", "run", "data.path=again.h5", "train.steps=3")

    def test_a_run_with_its_best_checkpoint_alone(self):
        shutil.copytree(self.given / "run", self.folder / "run")
        for path in (self.folder / "run" / "checkpoints").glob("step_*.h5"):
            path.unlink()
        self.assertRegex(self.refused("eval", "run"),
                         r"no valid checkpoint.*the checkpoints best; try --checkpoint best")
        self.run_program("eval", "run", "--checkpoint", "best")

    def test_cut_checkpoints(self):
        whole = (self.given / "run" / "checkpoints" / "best.h5").read_bytes()
        size = len(whole)
        for cut in [*(size * part // 16 for part in range(1, 16, 3)), size - 1]:  # K15
            self.new_folder()
            path = self.write("best.h5", whole[:cut])
            self.assertRegex(self.refused("generate", path.name), rf"best\.h5 is incomplete: {cut} of {size} bytes")

    def test_edges_of_sampling(self):
        def ids(*words):
            length = () if "--max-tokens" in words else ("--max-tokens", 8)
            done = self.run_program("generate", self.given / "run", *length, "--json", *words)
            self.assertEqual(done.stdout.count("\n"), 1)
            return json.loads(done.stdout)
        greedy = ids("--temperature", 0)["token_ids"]
        for words in (("--temperature", "1e-30"), ("--top-k", 1), ("--top-p", 0), ("--top-p", "1e-9")):  # I03, I05, I06
            self.assertEqual(ids(*words)["token_ids"], greedy)
        for words in (("--top-k", 0), ("--top-k", 300), ("--top-k", 301), ("--top-p", 1)):
            self.assertEqual(ids(*words, "--seed", 7)["token_ids"], ids(*words, "--seed", 7)["token_ids"])  # I07
        self.assertNotEqual(ids()["seed"], ids()["seed"])
        long = ids("--max-tokens", 1064, "--top-p", 1, "--temperature", 2, "--seed", 1)  # I01, I12
        self.assertLessEqual(len(long["token_ids"]), 64)
        for prompt, expected in (("foo</s>bar<s><unk>", 3), ("\xef\xbb\xbfab", 3)):  # T08
            self.assertGreaterEqual(min(ids("--prompt", prompt)["prompt_token_ids"][1:]), expected)
        # T15, T21: half a character and a byte order mark are byte tokens.
        self.assertEqual(ids("--prompt", b"\xe6\xad".decode(errors="surrogateescape"))["prompt_token_ids"],
                         [1, 3 + 0xe6, 3 + 0xad])
        marked = ids("--prompt", "\ufeffthe")["prompt_token_ids"]
        self.assertEqual(marked[:4], [1, 3 + 0xef, 3 + 0xbb, 3 + 0xbf])
        self.assertEqual(marked[4:], ids("--prompt", "the")["prompt_token_ids"][1:])

    def test_strange_names(self):
        for name in ("模型 é/a b", "line\nend", "-dash", "a=b"):  # K16
            self.new_folder()
            (self.folder / name).mkdir(parents=True)
            data = pathlib.Path(name) / "d.h5"
            self.run_program("prepare", self.given / "story.txt", "--vocab", 300, f"--out={data}")
            self.write(f"{name}/a.toml", SMALL)
            config = f"./{name}/a.toml"
            done = self.run_program("train", config, f"data.path={data}", f"--out={name}/run")
            self.run_program("generate", f"./{name}/run", "--max-tokens", 2)
            advice = re.search(r"^in .*; next: minillm (generate .*)\Z", done.stderr.rstrip("\n"), re.M | re.S).group(1)
            self.run_program(*shlex.split(advice), "--max-tokens", 2)
            self.assertEqual(json.loads(self.run_program("eval", f"./{name}/run", "--json").stdout)["step"], 2)
            self.run_program("train", f"--resume={name}/run", "train.steps=3")

    def test_read_only_data_and_two_readers(self):
        """D12: nothing is written beside the data, nobody waits for a lock."""
        self.folder.chmod(0o777)
        frozen = self.folder / "frozen"
        frozen.mkdir()
        (frozen / "d.h5").write_bytes((self.given / "d.h5").read_bytes())
        (frozen / "d.h5").chmod(0o444)
        frozen.chmod(0o555)
        self.addCleanup(frozen.chmod, 0o755)
        somebody = self.as_somebody()
        runs = [subprocess.Popen([support.PROGRAM, "train", str(self.given / "a.toml"), "data.path=frozen/d.h5",
                                  "--out", name], cwd=self.folder, env=support.ENVIRONMENT,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **somebody)
                for name in ("one", "two")]
        self.assertEqual([run.wait(120) for run in runs], [0, 0])
        self.assertEqual(os.listdir(frozen), ["d.h5"])


if __name__ == "__main__":
    support.main()
