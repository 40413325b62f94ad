"""Text and tokens that change while they are read: refused, and nothing is left behind.

The moment is made, not hoped for: standard error is a pipe with room for some messages, so the program waits in the
next one until the text was changed.
"""
import fcntl
import os
import pathlib
import subprocess
import time

import cli_support
import support
from cli_support import little_endian, story


class ChangingText(cli_support.InputCase):
    def message_after(self, change, *words, fits=""):
        """The message of a command that must be refused; `change` is called when it has written the messages `fits` and
        waits with the one behind them."""
        reader, writer = os.pipe()
        room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"\n" * (room - len(fits)))
        process = subprocess.Popen([support.PROGRAM, *map(str, words)], cwd=self.folder, stderr=writer,
                                   stdout=subprocess.DEVNULL, env=support.ENVIRONMENT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(writer)
        self.wait_until_asleep(process)
        change()
        with open(reader, encoding="utf-8") as pipe:
            text = pipe.read().lstrip("\n")
        self.assertEqual(process.wait(60), 2, text)
        self.assertTrue(text.startswith(fits), text)
        return text[text.index("error: "):]

    def wait_until_asleep(self, process):
        """Until the program was found asleep some times in a row: it computes without a pause before its messages."""
        asleep = 0
        for _ in range(3000):
            state = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
            asleep = asleep + 1 if state == "S" else 0
            if asleep == 10:
                return
            time.sleep(0.01)
        self.fail("the program does not wait")

    def test_prepare(self):
        text = story(300)
        for later, pattern in (
                (text + "more\n", rf"in\.txt: changed .*; found {len(text) + 5} bytes; expected {len(text)} "),
                (text[:-100], rf"in\.txt: changed .*; found {len(text) - 100} bytes; expected {len(text)} bytes; run"),
                ("", rf"in\.txt: changed .*; found 0 bytes; expected {len(text)} bytes"),
                (text[:900] + "#" + text[901:],
                 r"in\.txt: changed .*; found SHA-256 \w{64}; expected \w{64}; run it again")):
            self.new_folder()
            path = self.write("in.txt", text)
            self.run_program("prepare", "in.txt", "--vocab", 300, "--out", "d.h5")
            before = (self.folder / "d.h5").read_bytes()
            # All was counted, the split is known, and the tokenizer is there; what follows is the encoding.
            message = self.message_after(lambda: path.write_text(later, encoding="utf-8"),  # pylint: disable=W0640
                                         "prepare", "in.txt", "--tokenizer", "d.h5", "--out", "d.h5",
                                         fits="reading 1 file\n")
            self.assertRegex(message, pattern)
            self.assertEqual((self.folder / "d.h5").read_bytes(), before)
            self.assertEqual(sorted(os.listdir(self.folder)), ["d.h5", "in.txt"])

    def test_import_tokens(self):
        tokens = little_endian(range(300))
        for name, later in (("in.bin", tokens + tokens), ("in.bin", tokens[:-2]), ("val.bin", tokens[:100])):
            self.new_folder()
            path = self.write(name, tokens)
            self.write("in.bin", tokens)
            # A file that a killed run left is removed, with a message, when both files have been opened.
            self.write("d.h5.tmp.99999999", "")
            message = self.message_after(lambda: path.write_bytes(later),  # pylint: disable=W0640
                                         "import-tokens", "in.bin", "--vocab", 300, "--out", "d.h5",
                                         *([] if name == "in.bin" else ["--val-file", name]))
            self.assertRegex(message, rf"{name}: changed while it was read; found {len(later)} bytes; expected 600")
            self.assertEqual(sorted(os.listdir(self.folder)), sorted({"in.bin", name}))


if __name__ == "__main__":
    support.main()
