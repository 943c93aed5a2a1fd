"""Running Python programs whose `torch` is the engine's.

In: a file of operators; the words behind `python -m engine.torch`: a script's path, or `-m` and a module's name, and
the program's arguments.  Out: the program runs as `__main__` with these arguments; the result is the exit status.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from engine.lang.errors import MissingFileError
from engine.torch.import_hook import as_torch

USAGE: Final = "usage: python -m engine.torch (SCRIPT | -m MODULE) [ARGUMENTS...]"


def load_operators(path: str) -> None:
    """Run a Python file that gives operators (`torch.library`); they stay.  What it raises is raised.

    Raises MissingFileError.
    """
    if not os.path.exists(path):
        raise MissingFileError(f"there is no file '{path}'")
    as_torch()
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = ModuleType(f"operators of {os.path.abspath(path)}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise


def run_as_torch(words: Sequence[str]) -> int | str:
    """Run the program of these words.  What it raises is raised; a missing program is told in the result."""
    is_module = words[:1] == ["-m"]
    program, *arguments = words[is_module:] or [""]
    if not program or (not is_module and program.startswith("-")):
        return USAGE
    if not is_module and not os.path.exists(program):
        return f"there is no file '{program}'\n{USAGE}"
    as_torch()
    sys.argv = [program, *arguments]
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
        runpy.run_path(program, run_name="__main__")
    return 0
