"""The `torch` namespace for PyTorch scripts: `import engine.torch as torch` (or `import engine as torch`).

In: names as PyTorch spells them.  Out: the engine's functions, classes and modules; see `names`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.torch import names
from engine.torch.version import __version__ as __version__


def __getattr__(name: str) -> Any:
    with import_module("engine.lang.interpreter_settings").collecting_rarely():
        value = names.find(name, __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *names.known()})
