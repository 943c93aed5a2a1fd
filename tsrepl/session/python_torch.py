"""`torch` at the prompt: TorchScript's, and behind it what only Python's module has.

In: names that are no operators.  Out: the constants among them, `torch.__version__`; for all else an error that says
what is typed here instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch import table
from engine.frontend.matching.schema_match import Actual
from engine.frontend.names.namespaces import Namespace, TorchNamespace
from engine.frontend.sugared.classes import ConstantValue
from engine.frontend.sugared.python_values import SCALARS
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange

if TYPE_CHECKING:
    from tsrepl.session import imports
else:
    imports = deferred("tsrepl.session.imports")

_INSTEAD: Final[Mapping[str, str]] = {
    "torch.load": "%load path as name reads a file",
    "torch.jit.load": "%load path as name reads a file",
    "torch.jit.save": "%save name path writes a file",
    "torch.jit.script": "what is defined here is compiled at once; @torch.jit.script above a def may stay",
    "torch.jit.trace": "what is defined here is compiled at once",
    "torch.Tensor": "it is a type, for annotations; torch.tensor and torch.zeros make tensors",
    "torch.cuda.is_available": "torch.device and x.device tell of devices",
}
"""Names of Python's torch -> what to do at the prompt."""
_OF_PYTHON: Final = frozenset({"torch.jit"})
"""Namespaces whose names are no operators, though some are called like one."""


class PromptTorch(TorchNamespace):
    """A namespace of `torch` for programs and for entries of a session."""

    __slots__ = ()

    def inner(self, name: str) -> TorchNamespace:
        return PromptTorch(f"{self.path}.{name}", strict=self.strict)

    def python_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        if self.path not in _OF_PYTHON and table.overloads(self.operator(name)):
            return None
        try:
            return _sugared(f"{self.path}.{name}")
        except AttributeError:
            return None


class PythonName(Namespace):
    """Something of Python's torch that programs cannot use, but whose names may be constants."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        try:
            return _sugared(f"{self.path}.{name}")
        except AttributeError:
            raise CompileError(f"there is no {self.path}.{name}", range) from None

    def as_value(self, b: Builder, range: SourceRange) -> Any:
        raise self._refusal(range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        raise self._refusal(range)

    def _refusal(self, range: SourceRange) -> CompileError:
        hint = _INSTEAD.get(self.path) or _hint(imports.python_value(self.path))
        return CompileError(f"{self.path} is a name of Python, which TorchScript does not have", range, hints=(hint,))


def _hint(found: Any) -> str:
    if isinstance(found, ModuleType):
        return "name something in it"
    if isinstance(found, type) and issubclass(found, imports.python_value("torch.nn.Module")):
        return "a layer is called: what its class returns is a module"
    return "call it in Python, and give its result as an argument"


def _sugared(path: str) -> SugaredValue:
    """Raises AttributeError for what Python's torch does not have either."""
    found = imports.python_value(path)
    if isinstance(found, str):
        return ConstantValue(str(found))
    return ConstantValue(found) if isinstance(found, SCALARS) else PythonName(path)
