"""What tests of wrong input share: a table of rows, each a command in an empty folder and what must come of it."""
import dataclasses
import random
import shutil
import struct

import support

# A config whose runs take a fraction of a second.
SMALL = """[model]
vocab_size = 300
d_model = 16
n_layers = 1
n_heads = 2
d_ff = 24
[data]
seq_len = 64
[optim]
warmup_steps = 2
[train]
steps = 2
batch_size = 2
eval_tokens = 128
threads = 1
"""


@dataclasses.dataclass
class Row:
    """A command that must be refused. Its words are parted at blanks when given as one text."""
    command: object
    patterns: tuple = ()       # regular expressions, each in the message
    status: int = 2
    files: dict = dataclasses.field(default_factory=dict)  # name -> text or bytes
    options: dict = dataclasses.field(default_factory=dict)  # of subprocess.run

    def words(self):
        return self.command.split() if isinstance(self.command, str) else [str(word) for word in self.command]


def rows(*table):
    """(command, pattern, ...) -> Row"""
    return [entry if isinstance(entry, Row) else Row(entry[0], entry[1:]) for entry in table]


def story(sentences=1500, seed=1):
    """English-looking text of about 50 bytes a sentence, the same for a seed."""
    words = ("the of and to in is that it was for on as with his be at by this had not are but from have they which "
             "one you were her all she there would their we him been has when who will more no if out").split()
    numbers = random.Random(seed)
    return "".join(" ".join(numbers.choice(words) for _ in range(12)).capitalize() + ".\n" for _ in range(sentences))


def little_endian(ids, width=2):
    return b"".join(struct.pack("<H" if width == 2 else "<I", token) for token in ids)


class InputCase(support.Case):
    """Tests in folders of their own; `given` holds what they share and must not change."""
    cpu_seconds = 5

    @classmethod
    def setUpClass(cls):
        cls.root = support.new_folder()
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.given = cls.root / "given"
        cls.given.mkdir()
        cls.root.chmod(0o755)
        cls.folders = 0

    def setUp(self):
        self.new_folder()

    def new_folder(self):
        type(self).folders += 1
        self.folder = self.root / f"work{self.folders}"
        self.folder.mkdir()

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    @staticmethod
    def tree(folder):
        """Every name below a folder with what would tell that it was touched."""
        found = {}
        for path in sorted(folder.rglob("*")):
            status = path.lstat()
            found[str(path.relative_to(folder))] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
        return {name: entry if not (folder / name).is_dir() else entry[:1] for name, entry in found.items()}

    def check_refused(self, row):
        self.new_folder()
        for name, content in row.files.items():
            self.write(name, content)
        before = self.tree(self.folder), self.tree(self.given)
        message = self.refused(*row.words(), status=row.status, **row.options)
        for pattern in row.patterns:
            self.assertRegex(message, pattern)
        self.assertEqual((self.tree(self.folder), self.tree(self.given)), before, "something was left or changed")

    def check_all(self, table):
        for row in rows(*table):
            with self.subTest(row.words() if len(str(row.command)) < 200 else row.words()[:2]):
                self.check_refused(row)
