"""Commands that look: ml-tape, ml-node, ml-grad, ml-stats, ml-plot, ml-model."""
import difflib
import re

import gdb

import ml_lookup as lookup
import ml_memory as memory
import ml_printers as printers
from ml_memory import Unreadable, number

BARS = 16
BAR_WIDTH = 40


class Command(gdb.Command):
    """Base: errors of memory become messages; what one argument means stands in the docstring of each."""

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        self.dont_repeat()
        try:
            self.run(gdb.string_to_argv(argument))
        except (Unreadable, gdb.error, gdb.MemoryError) as error:
            raise gdb.GdbError(f"{self.name}: {error}") from None

    def usage(self):
        raise gdb.GdbError("usage: " + self.__doc__.splitlines()[0])


def tensor_of(name):
    """(title, memory.Tensor) of a parameter's name, "#58", either with ".grad", or an expression."""
    wanted, is_grad = (name[:-5], True) if name.endswith(".grad") else (name, False)
    found = lookup.named_tensors().get(wanted)
    if found is not None:
        return name, found.grad if is_grad else found.value
    node = re.fullmatch(r"#(\d+)", wanted)
    if node:
        node = lookup.node_at(int(node.group(1)))
        title = lookup.node_text(node) + (" .grad" if is_grad else "")
        return title, memory.Tensor(node["grad" if is_grad else "value"])
    return tensor_of_expression(name)


def names_like(text):
    """Up to three parameters that have the text in their name, else those spelt like it."""
    names = list(lookup.named_tensors())
    return [name for name in names if text in name][:3] or difflib.get_close_matches(text, names)


def tensor_of_expression(text):
    try:
        value = lookup.object_of(gdb.parse_and_eval(text))
        kind = memory.type_name(value.type).removeprefix(lookup.NAMESPACE)
    except gdb.error as error:
        near = names_like(text.removesuffix(".grad"))
        hint = f"; there is {', '.join(near)}" if near else ""
        raise gdb.GdbError(f"no parameter, node or expression {text} ({error}){hint}") from None
    if kind == "Var":
        node = lookup.tape_nodes(value["tape_"].dereference())[int(value["id_"])]
        return printers.var_text(value), memory.Tensor(node["value"])
    field = {"Tensor": None, "Buffer": "tensor_", "Parameter": "value"}
    if kind not in field:
        raise gdb.GdbError(f"{text} is a {kind or value.type}, not a Tensor, Var, Buffer or Parameter")
    tensor = memory.Tensor(value[field[kind]] if field[kind] else value)
    return lookup.name_of(tensor) or text, tensor


def length_text(tensor):
    if not tensor or tensor.numel > memory.MOST_ELEMENTS:
        return "-"
    return number(memory.length(tensor.values()))


class TapeTable(Command):
    """ml-tape [FIRST [LAST] | WORD]
The tape as a table: id, op, scope, shape, the lengths of value and gradient, where the op was called. WORD: only the
nodes whose op is WORD or whose scope has it. "-": memory given back, or never taken, or not written yet."""
    name = "ml-tape"

    def run(self, words):
        if len(words) > 2:
            self.usage()
        tape = lookup.the_tape()
        nodes = lookup.tape_nodes(tape)
        print(printers.Tape(tape).to_string())
        rows = [self.row(node) for node in chosen(nodes, words)]
        if rows:
            print_table([("id", "op", "scope", "shape", "|value|", "|grad|", "called at"), *rows], right={0, 4, 5})

    @staticmethod
    def row(node):
        scope = memory.literal(node["scope"])
        value, grad = memory.Tensor(node["value"]), memory.Tensor(node["grad"])
        gradient = length_text(grad)
        if int(node["parameter"]):
            parameter = node["parameter"].dereference()
            scope = memory.string(parameter["name"])
            gradient = "-" if bool(parameter["grad_is_fresh"]) else gradient
        return (f"#{int(node['id'])}", memory.literal(node["op"]), scope, memory.shape_text(value.shape),
                length_text(value), gradient, lookup.place_text(node["here"]))


def chosen(nodes, words):
    if not words:
        return nodes
    if words[0].lstrip("#").isdigit():
        first, last = (int(word.lstrip("#")) for word in (words * 2)[:2])
        return nodes[first:last + 1]
    return [node for node in nodes
            if memory.literal(node["op"]) == words[0] or words[0] in memory.literal(node["scope"])
            or (int(node["parameter"]) and words[0] in memory.string(node["parameter"].dereference()["name"]))]


def print_table(rows, right=()):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) if i in right else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


class NodeTable(Command):
    """ml-node N
All of node N: its operands, who reads it, what it saved for backward, its value and its gradient."""
    name = "ml-node"

    def run(self, words):
        if len(words) != 1 or not words[0].lstrip("#").isdigit():
            self.usage()
        node = lookup.node_at(int(words[0].lstrip("#")))
        print(lookup.node_text(node))
        nodes = lookup.tape_nodes(lookup.the_tape())
        print(f"  called at   {lookup.place_text(node['here'])}")
        for operand in memory.span(node["inputs"]):
            print(f"  operand     {lookup.node_text(nodes[int(operand)])}")
        for reader in nodes:
            if int(node["id"]) in [int(operand) for operand in memory.span(reader["inputs"])]:
                print(f"  read by     {lookup.node_text(reader)}")
        marks = ("needs_grad", "saved", "recomputable", "released", "pinned")
        print(f"  marks       {' '.join(mark for mark in marks if bool(node[mark])) or 'none'}")
        for name, value in printers.saved_fields(memory.dynamic(node)):
            if not (isinstance(value, str) and value.startswith("#")):  # an operand, which is there already
                print(f"  {name:<11} {value if isinstance(value, str) else value.format_string()}")
        for name in ("value", "grad"):
            print(f"  {name:<11} {memory.tensor_text(memory.Tensor(node[name]))}")


class Gradient(Command):
    """ml-grad NAME
The gradient of a parameter, of named rows of one, or of a node "#58": first numbers, length, where it is largest."""
    name = "ml-grad"

    def run(self, words):
        if len(words) != 1:
            self.usage()
        name = words[0] if words[0].endswith(".grad") else words[0] + ".grad"
        title, tensor = tensor_of(name)
        parameter = lookup.named_tensors().get(name[:-5])
        if parameter is not None and parameter.is_fresh:
            print(f"{title}: no node has added to it in this pass")
            return
        if not tensor:
            print(f"{title}: none; backward has not come there yet, or gave its memory back "
                  "(TapeOptions::retain keeps it)")
            return
        numbers = tensor.values()
        print(memory.tensor_text(tensor, title))
        if len(numbers) > 1:
            at = max(range(len(numbers)), key=lambda i: abs(numbers[i]) if numbers[i] == numbers[i] else -1)
            print(f"  length {number(memory.length(numbers))}, largest {number(numbers[at])} at {place_of(at, tensor)}")


def place_of(index, tensor):
    """The index of an element in each axis: [2, 0, 5]."""
    places = []
    for extent in reversed(tensor.shape):
        places.append(index % extent)
        index //= extent
    return memory.shape_text(places[::-1])


class Stats(Command):
    """ml-stats [grad]
A line a parameter: shape, length, mean, standard deviation, smallest, largest, NaN; of the gradients with "grad"."""
    name = "ml-stats"

    def run(self, words):
        if words not in ([], ["grad"]):
            self.usage()
        lookup.the("ParameterStore", "the parameters")
        rows = [("parameter", "shape", "length", "mean", "std", "min", "max", "NaN")]
        for name, it in lookup.named_tensors().items():
            tensor = it.grad if words else it.value
            if not tensor:
                rows.append((name, memory.shape_text(it.value.shape), "-", "-", "-", "-", "-", "-"))
                continue
            numbers = tensor.values()
            of_it = memory.Summary(numbers)
            rows.append((name, memory.shape_text(tensor.shape), number(memory.length(numbers)), number(of_it.mean),
                         number(of_it.std()), number(of_it.min), number(of_it.max), str(of_it.nan)))
        print_table(rows, right=range(2, 8))


class Plot(Command):
    """ml-plot NAME
A histogram in text of a parameter, its ".grad", a node "#58" or "#58.grad", or any Tensor expression."""
    name = "ml-plot"

    def run(self, words):
        if len(words) != 1:
            self.usage()
        title, tensor = tensor_of(words[0])
        of_it = memory.Summary(tensor.values())
        print(f"{title} {memory.shape_text(tensor.shape)}: {len(of_it.finite)} numbers, mean {number(of_it.mean)}, "
              f"std {number(of_it.std())}, {of_it.bad()}")
        for line in histogram(of_it.finite, of_it.min, of_it.max):
            print(line)


def histogram(numbers, low, high):
    if not numbers:
        return
    width = (high - low) / BARS
    if width == 0:
        yield f"  all are {number(low)}"
        return
    counts = [0] * BARS
    for x in numbers:
        counts[min(BARS - 1, int((x - low) / width))] += 1
    most = max(counts)
    for bar, count in enumerate(counts):
        marks = "#" * (-(-count * BAR_WIDTH // most))
        yield f"  {number(low + bar * width):>13} {marks:<{BAR_WIDTH}} {count}"


class ModelTree(Command):
    """ml-model
The modules as a tree, with their parameters."""
    name = "ml-model"

    def run(self, words):
        if words:
            self.usage()
        self.show("", memory.dynamic(lookup.the("Transformer", "a model")), 0, set())

    def show(self, field, value, depth, seen):
        is_parameter = memory.type_name(value.type) == "minillm::Parameter"
        text = printers.parameter_text(value) if is_parameter else printers.module_text(value)
        print("  " * depth + (f"{field}: " if field else "") + text)
        if is_parameter or int(value.address) in seen:
            return
        seen.add(int(value.address))
        for name, inner in printers.inner_modules(value):
            self.show(name, inner, depth + 1, seen)


def register():
    for command in (TapeTable, NodeTable, Gradient, Stats, Plot, ModelTree):
        command()
