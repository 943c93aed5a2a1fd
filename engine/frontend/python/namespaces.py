"""Modules of Python, as programs in Python name them.

In: a module, a class.  Out: its sugared value, whose attributes are looked up while compiling.  In `engine.torch`,
operators and functions that are written in TorchScript come before functions of Python.
"""

from __future__ import annotations

import types
from typing import Any, Final, Protocol

from engine.aten.dispatch import table
from engine.frontend.names.namespaces import SUB_NAMESPACES, TorchNamespace
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.source import SourceRange


class SugaredLookup(Protocol):
    """Finds the sugared value for any Python value; `constant` lets scalars be constants of the program."""

    def sugared(self, b: Builder, value: Any, range: SourceRange, *, constant: bool = False) -> SugaredValue: ...


COMPILED_MODULES: Final = frozenset({"engine.torch.nn.utils.rnn", "engine.torch.nn.init"})
"""Modules of `engine.torch` whose functions and named tuples are compiled from Python."""

_LAYERS: Final = "torch.nn.modules"
HOMES: Final = {
    f"{_LAYERS}.attention": f"{_LAYERS}.activation",
    "Fold": f"{_LAYERS}.fold", "Unfold": f"{_LAYERS}.fold", "PixelShuffle": f"{_LAYERS}.pixelshuffle",
    "PixelUnshuffle": f"{_LAYERS}.pixelshuffle", "ChannelShuffle": f"{_LAYERS}.channelshuffle",
}  # fmt: skip
"""Modules and layers of `engine.torch` -> their module in PyTorch, where that is another."""


def in_library(b: Builder, value: Any) -> SugaredValue | None:
    """The sugared value for a class of `engine.torch` that is written in TorchScript as well, else None."""
    path = vars(value).get("torch_path") if isinstance(value, type) else None
    return None if path is None else b.library(path)


class PythonTorchNamespace(TorchNamespace):
    """`torch`, or a namespace in it, in a Python program."""

    __slots__ = ("module", "resolver")

    def __init__(self, module: types.ModuleType, resolver: SugaredLookup) -> None:
        super().__init__(module.__name__.replace("engine.torch", "torch").replace("engine", "torch"))
        self.module, self.resolver = module, resolver

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        path = f"{self.path}.{name}"
        value = None if table.overloads(self.operator(name)) else getattr(self.module, name, None)
        if isinstance(value, types.ModuleType) and value.__name__ == f"engine.{path}" and path not in SUB_NAMESPACES:
            return PythonModule(value, self.resolver)
        if self.path != "torch" and self.path not in SUB_NAMESPACES:
            return PythonModule(self.module, self.resolver).attr(b, name, range)
        return super().attr(b, name, range)

    def inner(self, name: str) -> TorchNamespace:
        module = getattr(self.module, name, None)
        if not isinstance(module, types.ModuleType) or module.__name__ != f"engine.{self.path}.{name}":
            return super().inner(name)
        return PythonTorchNamespace(module, self.resolver)

    def python_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        value = vars(self.module).get(name) if self.module.__name__ in COMPILED_MODULES else None
        return None if value is None else self.resolver.sugared(b, value, range)


class PythonModule(SugaredValue):
    """A Python module; its attributes are looked up while compiling."""

    __slots__ = ("module", "resolver")
    kind = "module"

    def __init__(self, module: types.ModuleType, resolver: SugaredLookup) -> None:
        self.module, self.resolver = module, resolver

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if not hasattr(self.module, name):
            raise CompileError(
                f"module '{self.module.__name__}': object has no attribute {name}",
                range,
                hints=did_you_mean(name, dir(self.module)),
            )
        return self.resolver.sugared(b, getattr(self.module, name), range, constant=True)
