"""Loads a script that has no .py behind its name as a module, as tests of its parts need it."""
import importlib.machinery
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    sys.dont_write_bytecode = True  # scripts/ stays as it is
    sys.path.insert(0, str(ROOT / "scripts"))
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module
