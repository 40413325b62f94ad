"""gdb for minillm: printers, commands, and what `step` walks past. For gdb 13 or newer, any build with symbols.

    (gdb) source scripts/gdb/minillm.py

The .gdbinit of the tree's root does this. Nothing here calls a function of the program: all is read from memory, so
core dumps can be looked at as well. docs/step_through.md is a tour with all of it.

    ml-tape [FIRST [LAST] | WORD]      the tape as a table, or the nodes whose op or scope holds WORD
    ml-node N                          all of one node: operands, readers, what it saved, value, gradient
    ml-grad NAME                       a gradient: first numbers, length, where it is largest
    ml-stats [grad]                    a line a parameter
    ml-plot NAME                       a histogram
    ml-watch NAME [INDEX]              stop where a number changes
    ml-break OP [forward|backward]     stop in an op
    ml-model                           the modules as a tree

NAME is a parameter's or a named part of one ("model.layers.0.self_attn.q_proj.weight"), a node ("#58"), either with
".grad" behind it, or an expression whose value is a Tensor, Var, Buffer or Parameter.
"""
import importlib
import os
import sys

import gdb

FOLDER = os.path.dirname(os.path.abspath(__file__))
MODULES = ("ml_memory", "ml_lookup", "ml_printers", "ml_commands", "ml_stops")

SETTINGS = (
    "set print frame-arguments all",  # else a backtrace says t=... for every Tensor
    "set print object on",            # a Node& is shown as the op's struct
    "set print pretty on",
)

# What `step` does not enter: the standard library and fmt, and those of our own functions that only hand out what is
# there already. So the next press is the next line of the op, or its kernel. `skip disable` enters them all again.
SKIPPED = (
    r"^(std|fmt|__gnu_cxx|__cxxabiv1)::",
    r"^operator.(new|delete)",
    r"^minillm::(Tensor|Shape|Var|Here|GradientTarget|InPhase|PhaseClock|QkvLayout)::",
    r"^minillm::Tape::(Scratch|ScopeGuard|Tape|node|value|shape|gradient|gradient_target|var|save|allocate|scratch|"
    r"make|make_n|make_view|place|enter|scope|options|fast|composed|size|epoch|move_gradient|move_clocks)[(<]",
    r"^minillm::(check|check_op|axis_of|rows_of|size_of|dtype_of|data_or_null|fill_zero|phase_of|mean_over)[(<]",
)


def skip_once(pattern):
    """Sourcing twice must not leave each rule twice."""
    if pattern not in gdb.execute("info skip", to_string=True):
        gdb.execute(f"skip -rfu {pattern}", to_string=True)


def main():
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    for setting in SETTINGS:
        gdb.execute(setting, to_string=True)
    for pattern in SKIPPED:
        skip_once(pattern)
    loaded = [importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)
              for name in MODULES]
    for module in loaded:
        if hasattr(module, "register"):
            module.register()


main()
