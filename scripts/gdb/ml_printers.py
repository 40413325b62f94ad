"""Pretty printers: Tensor, Buffer, Shape, Var, Node, Tape, Parameter, ParameterStore, Module, Batch."""
import gdb
import gdb.printing

import ml_lookup as lookup
import ml_memory as memory
from ml_memory import Unreadable

MOST_ROWS = 4     # of a batch
MOST_TOKENS = 16  # of a row


def in_frame_line():
    """Whether gdb writes arguments or locals: one line for each object is enough there."""
    return hasattr(gdb, "print_options") and gdb.print_options().get("deref_refs", False)


class Printer:
    """One line, and with `print` or in a tree of variables what is inside."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.text()
        except (Unreadable, gdb.error, gdb.MemoryError) as error:
            return f"{type(self).__name__} that is not made yet, or gone ({error})"

    def children(self):
        if in_frame_line():
            return
        try:
            yield from self.parts()
        except (Unreadable, gdb.error, gdb.MemoryError):
            return

    def parts(self):
        return iter(())


class Tensor(Printer):
    def text(self):
        tensor = memory.Tensor(self.value)
        return memory.tensor_text(tensor, lookup.name_of(tensor))


class Buffer(Printer):
    def text(self):
        return "Buffer of " + memory.tensor_text(memory.Tensor(self.value["tensor_"]))


class Shape(Printer):
    def text(self):
        return memory.shape_text(memory.shape(self.value))


def var_text(value):
    if not int(value["tape_"]):
        return "Var, empty"
    tape = value["tape_"].dereference()
    made, now, node_id = int(value["epoch_"]), int(tape["epoch_"]), int(value["id_"])
    nodes = lookup.tape_nodes(tape)
    if made != now:
        return f"#{node_id} of a cleared tape (made in epoch {made}, now {now})"
    if not 0 <= node_id < len(nodes):
        raise Unreadable("no such node")
    return lookup.node_text(nodes[node_id])


class Here(Printer):
    def text(self):
        return lookup.place_text(self.value)


class Var(Printer):
    def text(self):
        return var_text(self.value)


class Node(Printer):
    def __init__(self, value):
        super().__init__(memory.dynamic(value))

    def text(self):
        return lookup.node_text(self.value)

    def parts(self):
        yield from saved_fields(self.value)
        yield "value", self.value["value"]
        yield "grad", self.value["grad"]
        yield "called_at", lookup.place_text(self.value["here"])


def saved_fields(node):
    """What the op's own struct adds to Node; ids of operands as the nodes they are."""
    nodes = lookup.tape_nodes(lookup.the_tape())
    for field in memory.plain_type(node.type).fields():
        if field.is_base_class or field.artificial or not hasattr(field, "bitpos"):
            continue
        value = node[field]
        if field.type.name == "minillm::NodeId" and 0 <= int(value) < len(nodes):
            value = lookup.node_text(nodes[int(value)])
        yield field.name, value


class Tape(Printer):
    def text(self):
        options = self.value["options_"]
        said = ["fast kernels" if int(options["kernels"]) == 0 else "reference kernels",
                "fused ops" if int(options["ops"]) == 0 else "composed ops"]
        said += ["keeps all values"] if bool(options["retain"]) else []
        said += [] if bool(options["record"]) else ["records no gradients"]
        count = len(memory.vector(self.value["nodes_"]))
        return f"Tape of {count} nodes, epoch {int(self.value['epoch_'])}, {', '.join(said)}"

    def parts(self):
        for node in lookup.tape_nodes(self.value):
            yield f"#{int(node['id'])}", lookup.node_text(node).partition(" ")[2]


def parameter_text(value):
    notes = ["decays"] if bool(value["decay"]) else []
    notes += ["no gradient yet"] if bool(value["grad_is_fresh"]) and int(value["grad"]["data"]) else []
    notes += ["kept, not trained"] if bool(value["is_buffer"]) else []
    return " ".join([f"Parameter {memory.string(value['name'])} {memory.shape_text(memory.shape(value['shape']))}",
                     ", ".join(notes)]).rstrip()


class Parameter(Printer):
    def text(self):
        return parameter_text(self.value)

    def parts(self):
        yield "value", self.value["value"]
        if not bool(self.value["grad_is_fresh"]):
            yield "grad", self.value["grad"]
        for it in lookup.parameter_tensors(self.value)[1:]:
            yield it.name, memory.tensor_text(it.value)


class ParameterStore(Printer):
    def text(self):
        parameters = memory.deque(self.value["parameters_"])
        count = sum(memory.math.prod(memory.shape(it["shape"])) for it in parameters if not bool(it["is_buffer"]))
        return f"ParameterStore of {len(parameters)} parameters, {count:,} numbers"

    def parts(self):
        for it in memory.deque(self.value["parameters_"]):
            yield memory.string(it["name"]), parameter_text(it).partition("Parameter ")[2]


# --- modules ---

def inner_modules(value):
    """(field, module or parameter) of everything a module is made of, in order of its fields."""
    for field in memory.plain_type(value.type).fields():
        if not hasattr(field, "bitpos") or field.artificial:
            continue
        if field.is_base_class:
            if memory.derives_from(field.type, "minillm::Module") and field.name != "minillm::Module":
                yield from inner_modules(value[field])
            continue
        for inner in pointed_to(value[field]):
            name = memory.type_name(inner.type)
            if name == "minillm::Parameter" or memory.derives_from(inner.type, "minillm::Module"):
                yield field.name, memory.dynamic(inner)


def pointed_to(value):
    """What a field leads to: through references, pointers, std::unique_ptr and std::vector."""
    gdb_type = value.type.strip_typedefs()
    name = gdb_type.name or ""
    if gdb_type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        yield value.referenced_value()
    elif gdb_type.code == gdb.TYPE_CODE_PTR:
        if int(value):
            yield value.dereference()
    elif name.startswith("std::unique_ptr<"):
        inner = memory.unique(value)
        if inner is not None:
            yield from pointed_to(inner)
    elif name.startswith("std::vector<std::unique_ptr<"):
        for item in memory.vector(value):
            yield from pointed_to(item)
    elif gdb_type.code == gdb.TYPE_CODE_STRUCT:
        yield value


def module_text(value):
    value = memory.dynamic(value)
    kind = memory.type_name(value.type).rpartition("::")[2]
    return f"{kind} {memory.string(value['path_'])}".rstrip()


class Module(Printer):
    def __init__(self, value):
        super().__init__(memory.dynamic(value))

    def text(self):
        return module_text(self.value)

    def parts(self):
        for name, inner in inner_modules(self.value):
            is_parameter = memory.type_name(inner.type) == "minillm::Parameter"
            yield name, (parameter_text(inner) if is_parameter else module_text(inner))


# --- data ---

class Batch(Printer):
    def sizes(self):
        rows, columns = int(self.value["batch_size"]), int(self.value["seq_len"])
        inputs, targets = (memory.vector_of_int32(self.value[name]) for name in ("inputs", "targets"))
        if rows * columns != len(inputs) or len(inputs) != len(targets):
            raise Unreadable("its sizes do not fit")
        return rows, columns, inputs, targets

    def text(self):
        rows, columns, _, targets = self.sizes()
        return f"Batch of {rows} x {columns} tokens, {sum(target >= 0 for target in targets)} counted"

    def parts(self):
        rows, columns, inputs, targets = self.sizes()
        for row in range(min(rows, MOST_ROWS)):
            begin, end = row * columns, row * columns + min(columns, MOST_TOKENS)
            more = " ..." if columns > MOST_TOKENS else ""
            yield f"inputs[{row}]", lookup.text_of(inputs[begin:end]) + more
            yield f"targets[{row}]", lookup.text_of([it for it in targets[begin:end] if it >= 0]) + more


PRINTERS = {"Tensor": Tensor, "Buffer": Buffer, "Shape": Shape, "Here": Here, "Var": Var, "Tape": Tape,
            "Parameter": Parameter, "ParameterStore": ParameterStore, "Batch": Batch}
BASES = {"Node": Node, "Module": Module}


class MinillmPrinters(gdb.printing.PrettyPrinter):
    def __call__(self, value):
        gdb_type = memory.plain_type(value.type)
        if gdb_type.code != gdb.TYPE_CODE_STRUCT or "minillm" not in (gdb_type.name or ""):
            return None
        name = gdb_type.name.removeprefix(lookup.NAMESPACE)
        if name in PRINTERS:
            return PRINTERS[name](value)
        for base, printer in BASES.items():
            if memory.derives_from(gdb_type, lookup.NAMESPACE + base):
                return printer(value)
        return None


def register():
    gdb.printing.register_pretty_printer(None, MinillmPrinters("minillm"), replace=True)
