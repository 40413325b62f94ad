# Loaded by a gdb that is started in this folder: printers and commands for minillm, and what `step` walks past.
# gdb asks for permission first. Say once, in ~/.config/gdb/gdbinit:
#   add-auto-load-safe-path /where/this/tree/is
# or load it by hand: gdb -x .gdbinit --args build/step/minillm ...
source scripts/gdb/minillm.py
