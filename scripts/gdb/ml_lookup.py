"""Finds the tape, the model, the parameters and the word table from where the program stands, and names for tensors.

The program has no global objects, so the frames are searched, from the selected one outwards and then inwards: some
function's `this` or argument leads to what is asked for. What was found is remembered until the program moves.
"""
import re

import gdb

import ml_memory as memory
from ml_memory import Unreadable

NAMESPACE = "minillm::"
FLOORS = "core|autograd|nn|optim|data|formats|generate|train|suite|experiments|cli|tests|examples"
cache = {}


def forget(*_):
    cache.clear()


def register():
    for event in (gdb.events.stop, gdb.events.cont, gdb.events.exited, gdb.events.new_objfile,
                  gdb.events.memory_changed, gdb.events.inferior_call):
        event.connect(forget)


# --- how one object leads to another ---

def trainer_of_run(run):
    return memory.optional(run["trainer_"])


ROUTES = {
    "Tape": {
        "Tape": lambda it: it,
        "Var": lambda it: it["tape_"].dereference(),
        "Stream": lambda it: it["x"]["tape_"].dereference(),
        "Trainer": lambda it: it["tape_"],
        "RunLoop": lambda it: trainer_of_run(it)["tape_"],
    },
    "ParameterStore": {
        "ParameterStore": lambda it: it,
        "Transformer": lambda it: memory.unique(it["store_"]),
        "AdamW": lambda it: it["store_"].referenced_value(),
        "Trainer": lambda it: memory.unique(it["model_"].referenced_value()["store_"]),
        "RunLoop": lambda it: memory.unique(it["model_"]["store_"]),
    },
    "Transformer": {
        "Transformer": lambda it: it,
        "Trainer": lambda it: it["model_"].referenced_value(),
        "RunLoop": lambda it: it["model_"],
    },
    "tokenizer": {
        "TokenFile": lambda it: it["tokenizer"],
        "RunLoop": lambda it: it["data_"]["tokenizer"],
    },
}


def tape_nodes(tape):
    """The nodes as gdb.Values, in order."""
    return [pointer.dereference() for pointer in memory.vector(tape["nodes_"])]


def is_whole(kind, value):
    """Whether the object has been made: a local of -O0 that has not been reached yet holds anything."""
    if value is None:
        return False
    if kind == "Tape":
        nodes = memory.vector(value["nodes_"])
        return int(value["epoch_"]) > 0 and (not nodes or int(nodes[-1].dereference()["id"]) == len(nodes) - 1)
    if kind == "ParameterStore":
        return all(memory.string(it["name"]) for it in memory.deque(value["parameters_"]))
    if kind == "tokenizer":
        return memory.string(value) != ""
    return bool(memory.string(value["path_"]))


def object_of(value):
    """A variable's object: through references and pointers."""
    gdb_type = value.type.strip_typedefs()
    if gdb_type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return value.referenced_value()
    if gdb_type.code == gdb.TYPE_CODE_PTR:
        target = gdb_type.target().strip_typedefs().unqualified()
        if (target.name or "").startswith(NAMESPACE) and int(value):
            return value.dereference()
    return value


def objects_of(frame):
    """The variables of a frame whose types are minillm's."""
    try:
        block = frame.block()
    except RuntimeError:
        return
    while block is not None:
        for symbol in block:
            if not (symbol.is_variable or symbol.is_argument):
                continue
            try:
                value = object_of(symbol.value(frame))
                name = memory.type_name(value.type)
            except (gdb.error, gdb.MemoryError, RuntimeError):
                continue
            if name.startswith(NAMESPACE):
                yield name[len(NAMESPACE):], value
        if block.function is not None:
            return
        block = block.superblock


def frames():
    """Of the selected thread: the selected frame, those that called it, those that it called; then other threads'."""
    try:
        selected = gdb.selected_frame()
    except gdb.error:
        return
    for step in ("older", "newer"):
        frame = selected if step == "older" else selected.newer()
        while frame is not None and frame.is_valid():
            yield frame
            frame = getattr(frame, step)()
    thread = gdb.selected_thread()
    for other in sorted(gdb.selected_inferior().threads(), key=lambda it: it.num):
        if other.num == thread.num:
            continue
        try:
            other.switch()
            frame = gdb.newest_frame()
            while frame is not None and frame.is_valid():
                yield frame
                frame = frame.older()
        finally:
            thread.switch()
            selected.select()


def find(kind):
    """The object of this kind that the program works on; None when no frame leads to one."""
    try:
        key = kind, gdb.selected_thread().num, gdb.selected_frame().level()
    except (gdb.error, AttributeError):
        return None
    if key not in cache:
        cache[key] = search(kind)
    return cache[key]


def search(kind):
    routes = ROUTES[kind]
    for frame in frames():
        for name, value in objects_of(frame):
            if name not in routes:
                continue
            try:
                found = routes[name](value)
                if is_whole(kind, found):
                    return found
            except (Unreadable, gdb.error, gdb.MemoryError, TypeError):
                continue
    return None


def the(kind, what):
    """Like find, with an error for the user."""
    found = find(kind)
    if found is None:
        raise gdb.GdbError(f"no frame leads to {what}; stop inside a training step")
    return found


def the_tape():
    return the("Tape", "a tape")


# --- parameters and names ---

class NamedTensor:
    """A parameter, or rows of one under the name that files use."""

    def __init__(self, name, parameter, first=0, count=None):
        self.name = name
        self.parameter = parameter
        self.value = memory.Tensor(parameter["value"])
        self.grad = memory.Tensor(parameter["grad"])
        self.is_fresh = bool(parameter["grad_is_fresh"])
        if count is not None:
            self.value = self.value.rows(first, count)
            self.grad = self.grad.rows(first, count) if self.grad else self.grad


def parameter_tensors(parameter):
    """The parameter itself, then its named rows where there are several."""
    own = memory.string(parameter["name"])
    found = [NamedTensor(own, parameter)]
    first = 0
    for rows in memory.vector(parameter["slices"]):
        name, count = memory.string(rows["name"]), int(rows["rows"])
        if name != own:
            found.append(NamedTensor(name, parameter, first, count))
        first += count
    return found


def named_tensors():
    """{name: NamedTensor} of all parameters, in order of declaration."""
    store = find("ParameterStore")
    if store is None:
        return {}
    key = "tensors", int(store.address)
    if key not in cache:
        cache[key] = {it.name: it for parameter in memory.deque(store["parameters_"])
                      for it in parameter_tensors(parameter)}
    return cache[key]


def tensor_names():
    """{(address, shape): name}: parameters by name, the tape's values as "#58"."""
    key = "names", *(str(find(kind).address) if find(kind) is not None else "" for kind in ("ParameterStore", "Tape"))
    if key in cache:
        return cache[key]
    names = {}

    def add(tensor, name):
        if tensor:
            names.setdefault((tensor.address, tuple(tensor.shape)), name)

    for name, it in named_tensors().items():
        add(it.value, name)
        add(it.grad, name + ".grad")
    tape = find("Tape")
    for node in tape_nodes(tape) if tape is not None else []:
        try:
            add(memory.Tensor(node["value"]), f"#{int(node['id'])}")
            add(memory.Tensor(node["grad"]), f"#{int(node['id'])}.grad")
        except Unreadable:
            continue
    cache[key] = names
    return names


def name_of(tensor):
    try:
        return tensor_names().get((tensor.address, tuple(tensor.shape)), "") if tensor else ""
    except (Unreadable, gdb.error):
        return ""


# --- nodes ---

def node_at(node_id):
    nodes = tape_nodes(the_tape())
    if not 0 <= node_id < len(nodes):
        raise gdb.GdbError(f"the tape has nodes #0 to #{len(nodes) - 1}, not #{node_id}" if nodes
                           else "the tape is empty: nothing was computed since it was cleared")
    return nodes[node_id]


def node_text(node):
    """#37 softmax model.layers.0.self_attn (4,4,64,64)"""
    extents = ",".join(map(str, memory.shape(node["value"]["shape"])))
    scope = memory.literal(node["scope"])
    if int(node["parameter"]):
        scope = memory.string(node["parameter"].dereference()["name"])
    words = [f"#{int(node['id'])}", memory.literal(node["op"]), scope, f"({extents})"]
    return " ".join(word for word in words if word)


def place_text(here):
    """nn/norm.cpp:20: a Here as the tree has it, wherever it was built."""
    file = memory.literal(here["file"])
    in_tree = re.search(rf"(?:^|/)((?:{FLOORS})/.*)", file)
    return f"{in_tree.group(1) if in_tree else file}:{int(here['line'])}"


# --- words ---

def words():
    """The text of each token id; None where no word table is within reach."""
    if "words" not in cache:
        text = find("tokenizer")
        try:
            raw = b"" if text is None else memory.read_bytes(int(text["_M_dataplus"]["_M_p"]),
                                                             int(text["_M_string_length"]))
            cache["words"] = parse_words(raw)
        except (gdb.error, gdb.MemoryError, ValueError):
            cache["words"] = None
    return cache["words"]


def parse_words(raw):
    """data/word_table.cpp's form: a line of magic, then "<length> <bytes>\\n" for ids 3, 4, ..."""
    magic = b"minillm-words 1\n"
    if not raw.startswith(magic):
        return None
    found = ["<unk>", "<s>", "</s>"]
    rest = raw[len(magic):]
    while rest:
        digits, _, rest = rest.partition(b" ")
        found.append(rest[:int(digits)].decode("utf-8", "replace"))
        rest = rest[int(digits) + 1:]
    return found


def text_of(ids):
    """The ids as quoted text, or as numbers."""
    table = words()
    if table is None or any(not 0 <= i < len(table) for i in ids):
        return " ".join(map(str, ids))
    return '"' + "".join(table[i] for i in ids).replace("\n", "\\n") + '"'
