"""Reads minillm's and the standard library's objects out of memory: gdb.Values to plain Python values.

Nothing runs in the program. The standard library is GCC's (libstdc++), whose own printers are not needed.
"""
import array
import math

import gdb

DTYPES = (("float32", "f", 4), ("float64", "d", 8), ("int32", "i", 4))  # by DType's number
MAX_RANK = 6
MOST_ELEMENTS = 1 << 22  # of a tensor: what is behind them is not read
SHOWN = 4                # first values of a tensor


class Unreadable(Exception):
    """What stands in memory is not the object it should be: not constructed yet, or gone."""


def reading(function):
    """Turns gdb's errors of unreadable memory and optimised out values into Unreadable."""
    def wrapped(*arguments):
        try:
            return function(*arguments)
        except (gdb.error, gdb.MemoryError, ValueError, OverflowError) as error:
            raise Unreadable(str(error)) from None
    wrapped.__doc__ = function.__doc__
    return wrapped


def plain_type(gdb_type):
    """Without references, typedefs and const."""
    gdb_type = gdb_type.strip_typedefs()
    if gdb_type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        gdb_type = gdb_type.target().strip_typedefs()
    return gdb_type.unqualified()


def type_name(gdb_type):
    return plain_type(gdb_type).name or ""


def derives_from(gdb_type, base):
    gdb_type = plain_type(gdb_type)
    if gdb_type.code != gdb.TYPE_CODE_STRUCT:
        return False
    return gdb_type.name == base or any(derives_from(f.type, base) for f in gdb_type.fields() if f.is_base_class)


def dynamic(value):
    """The object as what it was made as: a Node as the op's struct."""
    try:
        return value.cast(value.dynamic_type)
    except gdb.error:
        return value


# --- the standard library ---

@reading
def string(value):
    length = int(value["_M_string_length"])
    if not 0 <= length < 1 << 28:
        raise Unreadable("not a string")
    return read_bytes(int(value["_M_dataplus"]["_M_p"]), length).decode("utf-8", "replace")


@reading
def literal(pointer):
    return pointer.string("utf-8", "replace") if int(pointer) else ""


def read_bytes(address, count):
    return bytes(gdb.selected_inferior().read_memory(address, count)) if count else b""


@reading
def vector(value):
    """The elements of a std::vector, as gdb.Values."""
    first = value["_M_impl"]["_M_start"]
    count = int(value["_M_impl"]["_M_finish"] - first)
    if not 0 <= count < 1 << 28:
        raise Unreadable("not a vector")
    return [(first + i).dereference() for i in range(count)]


@reading
def vector_of_int32(value):
    first = int(value["_M_impl"]["_M_start"])
    size = int(value["_M_impl"]["_M_finish"]) - first
    if not 0 <= size < 1 << 31 or size % 4:
        raise Unreadable("not a vector")
    numbers = array.array("i")
    numbers.frombytes(read_bytes(first, size))
    return numbers


@reading
def deque(value):
    """The elements of a std::deque: chunks of 512 bytes, or of one element."""
    at, end = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
    current, last, node = at["_M_cur"], at["_M_last"], at["_M_node"]
    per_chunk = max(1, 512 // current.dereference().type.sizeof)
    found = []
    while current != end["_M_cur"]:
        found.append(current.dereference())
        current += 1
        if current == last and current != end["_M_cur"]:
            node += 1
            current = node.dereference()
            last = current + per_chunk
        if len(found) > 1 << 20:
            raise Unreadable("not a deque")
    return found


@reading
def span(value):
    first, count = value["_M_ptr"], int(value["_M_extent"]["_M_extent_value"])
    if not 0 <= count < 1 << 28:
        raise Unreadable("not a span")
    return [(first + i).dereference() for i in range(count)]


@reading
def unique(value):
    """What a std::unique_ptr points to; None when it is empty."""
    head = value["_M_t"]["_M_t"]  # a std::tuple of the pointer and its deleter, each in a base
    while not (head.type.name or "").startswith("std::_Head_base<0"):
        bases = [field for field in plain_type(head.type).fields() if field.is_base_class]
        head = head[next((it for it in bases if it.name.startswith("std::_Head_base<0")), bases[0])]
    pointer = head["_M_head_impl"]
    return pointer.dereference() if int(pointer) else None


@reading
def optional(value):
    """What a std::optional holds; None when it is empty."""
    payload = value["_M_payload"]
    return payload["_M_payload"]["_M_value"] if bool(payload["_M_engaged"]) else None


# --- minillm ---

@reading
def shape(value):
    rank = int(value["rank_"])
    if not 0 <= rank <= MAX_RANK:
        raise Unreadable("not a shape")
    extents = [int(value["extents_"]["_M_elems"][axis]) for axis in range(rank)]
    if any(not 0 <= extent < 1 << 40 for extent in extents):
        raise Unreadable("not a shape")
    return extents


class Tensor:
    """A Tensor's pointer, shape and type, and its numbers when they are asked for."""

    @reading
    def __init__(self, value):
        self.address = int(value["data"])
        self.shape = shape(value["shape"])
        dtype = int(value["dtype"])
        if not 0 <= dtype < len(DTYPES):
            raise Unreadable("not a tensor")
        self.dtype, self.code, self.size = DTYPES[dtype]
        self.numel = math.prod(self.shape)

    def __bool__(self):
        return self.address != 0

    def rows(self, first, count):
        """Rows [first, first + count) along axis 0."""
        part = object.__new__(Tensor)
        part.__dict__.update(self.__dict__)
        width = math.prod(self.shape[1:])
        part.shape = [count, *self.shape[1:]]
        part.numel = count * width
        part.address = self.address + first * width * self.size if self.address else 0
        return part

    @reading
    def values(self):
        if not self.address:
            raise Unreadable("no memory")
        numbers = array.array(self.code)
        numbers.frombytes(read_bytes(self.address, min(self.numel, MOST_ELEMENTS) * self.size))
        return numbers


def length(numbers):
    return math.sqrt(sum(x * x for x in numbers))


class Summary:
    """Smallest, largest and mean of the finite numbers, and how many are not finite."""

    def __init__(self, numbers):
        finite = [x for x in numbers if math.isfinite(x)]
        self.count = len(numbers)
        self.nan = sum(x != x for x in numbers)
        self.inf = len(numbers) - len(finite) - self.nan
        self.finite = finite
        self.min = min(finite, default=math.nan)
        self.max = max(finite, default=math.nan)
        self.mean = math.fsum(finite) / len(finite) if finite else math.nan

    def std(self):
        if not self.finite:
            return math.nan
        return math.sqrt(math.fsum((x - self.mean) ** 2 for x in self.finite) / len(self.finite))

    def bad(self):
        return f"{self.nan} NaN" + (f", {self.inf} infinite" if self.inf else "")


def number(x):
    """Six digits; whole numbers as they are."""
    return f"{x:.6g}"


def shape_text(extents):
    return "[" + ", ".join(map(str, extents)) + "]"


def tensor_text(tensor, name=""):
    """Tensor model.norm.weight [16] float32 {1, 1, 1, 1, ...} min 1, max 1, mean 1, 0 NaN"""
    head = f"Tensor {name} " if name else "Tensor "
    head += f"{shape_text(tensor.shape)} {tensor.dtype}"
    if not tensor:
        return head + ", no memory" if tensor.shape else "Tensor, empty"
    try:
        numbers = tensor.values()
    except Unreadable as error:
        return f"{head}, {error}"
    first = ", ".join(number(x) for x in numbers[:SHOWN]) + (", ..." if tensor.numel > SHOWN else "")
    if tensor.numel <= 1:
        return f"{head} {{{first}}}"
    all_of_it = Summary(numbers)
    part = f" of the first {len(numbers)}" if len(numbers) < tensor.numel else ""
    return (f"{head} {{{first}}} min {number(all_of_it.min)}, max {number(all_of_it.max)}, "
            f"mean {number(all_of_it.mean)}, {all_of_it.bad()}{part}")
