"""TorchScript in Python: compile, run, inspect and save programs without PyTorch.

    import engine
    unit = engine.CompilationUnit("def f(x):\\n    return x + x")
    unit.f(engine.tensor([1.0]))

In: names.  Out: what they stand for, imported when first asked for, so that importing the engine costs little.
Functions of `torch` are here by their names too: `engine.add(x, y)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    with import_module("engine.lang.interpreter_settings").collecting_rarely():
        value = import_module("engine.torch.names").find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(
        {*(name for name in globals() if name.startswith("__")), *import_module("engine.torch.names").known()}
    )
