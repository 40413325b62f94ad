"""Commands that stop the program: ml-break, ml-watch."""
import re

import gdb

import ml_commands as commands
import ml_lookup as lookup
import ml_memory as memory


def new_breakpoint(text):
    """Sets it without gdb's own line, which shows an address and warns of each backward that has no `op`."""
    before = {it.number for it in gdb.breakpoints()}
    try:
        gdb.execute(text, to_string=True)
    except gdb.error:
        return None
    made = [it for it in gdb.breakpoints() if it.number not in before]
    return made[0] if made else None


class Break(commands.Command):
    """ml-break OP [forward|backward]
Stops in an op, named as the tape names it ("softmax", "matmul"): at the first line of its function, or of its backward
for every node of that op. Without the second word: both."""
    name = "ml-break"

    def run(self, words):
        if not words or len(words) > 2 or words[1:] not in ([], ["forward"], ["backward"]):
            self.usage()
        if not re.fullmatch(r"\w+", words[0]):
            raise gdb.GdbError(f"{words[0]} is not an op's name, as ml-tape shows it")
        for direction in words[1:] or ["forward", "backward"]:
            made = getattr(self, direction)(words[0])
            if made is None:
                raise gdb.GdbError(f"no op {words[0]}, or no symbols: is the program loaded?")
            print(f"Breakpoint {made.number}: {words[0]}, {direction}")

    @staticmethod
    def forward(op):
        # The op's function where it is called as the op; else where its node is put on the tape, before it is computed.
        return (new_breakpoint(f"break -qualified minillm::{op}") or
                new_breakpoint(f'break minillm::Tape::append if $_streq(op, "{op}")'))

    @staticmethod
    def backward(op):
        # Every function of that name, the tape's own too, which is of no op.
        return new_breakpoint(f'break -function backward if $ml_is_op("{op}")')


class IsOp(gdb.Function):
    """$ml_is_op(OP): whether the function at hand is a member of a node of that op."""

    def __init__(self):
        super().__init__("ml_is_op")

    def invoke(self, op):
        try:
            return int(memory.literal(gdb.selected_frame().read_var("this")["op"]) == op.string())
        except (gdb.error, gdb.MemoryError, ValueError, memory.Unreadable):
            return 0


class Watch(commands.Command):
    """ml-watch NAME [INDEX]
Stops where element INDEX (default 0) of a parameter or its ".grad" changes. Of a node's "#58.grad", which has no memory
before backward comes there: where that memory is taken."""
    name = "ml-watch"

    def run(self, words):
        if not 1 <= len(words) <= 2 or not all(word.isdigit() for word in words[1:]):
            self.usage()
        title, tensor = commands.tensor_of(words[0])
        index = int(words[1]) if len(words) == 2 else 0
        node = re.fullmatch(r"#(\d+)\.grad", words[0])
        if not tensor and node:
            address = int(lookup.node_at(int(node.group(1)))["grad"]["data"].address)
            c_type, what = gdb.lookup_type("char").pointer(), f"the memory of {title}"
        elif not tensor:
            raise gdb.GdbError(f"{title} has no memory")
        elif index >= tensor.numel:
            raise gdb.GdbError(f"{title} has {tensor.numel} elements, not {index + 1}")
        else:
            address = tensor.address + index * tensor.size
            c_type = gdb.lookup_type({"f": "float", "d": "double", "i": "int"}[tensor.code])
            what = f"{title} {commands.place_of(index, tensor)}"
        # By a variable of gdb's, so that what it says at each change shows no address.
        name = f"ml_watched_{1 + max((it.number for it in gdb.breakpoints()), default=0)}"
        gdb.set_convenience_variable(name, gdb.Value(address).cast(c_type.pointer()))
        made = new_breakpoint(f"watch *${name}")
        if made is None:
            raise gdb.GdbError(f"gdb cannot watch {what}")
        print(f"Watchpoint {made.number}: {what}, now {memory.number(tensor.values()[index]) if tensor else 'none'}")


def register():
    IsOp()
    Break()
    Watch()
