"""The namespaces `torch` and `math`.

In: dotted names.  Out: operators, dtypes and other constants, special forms, functions that are written
in TorchScript.  A name that is none of these is taken for the operator `aten::name`; calling it raises an
error if there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.aten.dispatch import table
from engine.frontend.matching.schema_match import Actual
from engine.frontend.names.torch_names import has_name
from engine.frontend.standard_library import library
from engine.frontend.sugared.classes import ConstantValue
from engine.frontend.sugared.legacy_constructors import CONSTRUCTORS
from engine.frontend.sugared.python_values import not_a_value, unsupported_builtin
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, DeviceClass, SpecialForm
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME, MEMORY_FORMATS, QSCHEME_BY_NAME, STRIDED
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR

_CONSTANTS: Final[Mapping[str, Any]] = {
    **{name: d.number for name, d in {**DTYPE_BY_NAME, **DTYPE_ALIASES}.items()},
    **{name: scheme.number for name, scheme in QSCHEME_BY_NAME.items()},
    **MEMORY_FORMATS, "strided": STRIDED, "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
}  # fmt: skip
PREFIXED: Final = {"special": "special_", "linalg": "linalg_", "fft": "fft_"}
"""Sub-namespaces whose operators carry a prefix."""
SUB_NAMESPACES: Final = frozenset({
    "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn", "torch.jit",
    "torch.special", "torch.linalg", "torch.fft", "torch._C", "torch._C._nn", "torch._C._linalg", "torch._C._fft",
    "torch._C._special", "torch._C._VariableFunctions", "torch.ops", "torch.ops.aten", "torch.ops.prim",
    "torch.autograd", "torch.autograd.grad_mode", "torch.functional", "torch.autograd.profiler", "torch.profiler",
    "torch.amp", "torch.amp.autocast_mode", "torch.cuda", "torch.cuda.amp", "torch.cpu", "torch.cpu.amp",
})  # fmt: skip
"""Namespaces of operators; the attributes of other modules are Python's values."""
SPECIAL_FORMS: Final = {
    "torch.jit.annotate": "annotate", "torch.jit.isinstance": "isinstance", "torch.jit.fork": "fork",
    "torch.jit._fork": "fork", "torch.jit._awaitable": "awaitable",
}  # fmt: skip
RENAMED: Final = {
    "torch.jit.wait": "aten::wait", "torch.jit._wait": "aten::wait",
    "torch.jit._unwrap_optional": "aten::_unwrap_optional",
    "torch.jit._awaitable_wait": "prim::awaitable_wait", "torch.jit._awaitable_nowait": "prim::awaitable_nowait",
    "torch.jit.is_scripting": "aten::is_scripting",
    "torch.special.expit": "aten::special_expit", "torch._assert": "aten::_assert",
    "torch._segment_reduce": "aten::segment_reduce", "torch.autograd.backward": "aten::backward",
    "torch.autograd.grad": "aten::grad",
}  # fmt: skip


class Namespace(SugaredValue):
    """A Python module."""

    __slots__ = ()
    kind = "python value of type 'module'"

    def as_value(self, b: Builder, range: SourceRange) -> Any:
        raise not_a_value(self.kind, range, "name something in it")

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        raise CompileError("Expected a single top-level function", range, hints=("a module cannot be called",))


class TorchNamespace(Namespace):
    """`torch`, `torch.nn.functional` and so on; if `strict`, operators that are no functions there are refused."""

    __slots__ = ("path", "strict")

    def __init__(self, path: str = "torch", *, strict: bool = False) -> None:
        self.path, self.strict = path, strict

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        path = f"{self.path}.{name}"
        if self.path == "torch" and name in _CONSTANTS:
            return ConstantValue(_CONSTANTS[name])
        if self.path == "torch" and name in _CLASSES:
            return _CLASSES[name]
        if path in SUB_NAMESPACES:
            return self.inner(name)
        if self.path == "torch.ops":
            return OperatorNamespace(name)
        if path in SPECIAL_FORMS:
            return SpecialForm(SPECIAL_FORMS[path])
        if path in RENAMED:
            return BuiltinFunction(RENAMED[path])
        found = b.library(path) or self.python_value(b, name, range)
        operator = self.operator(name)
        if found is None and self.strict and not has_name(self.path, name, operator):
            known = (each for each in table.names() if each.startswith("aten::"))
            names = [each for each in (each[6:] for each in known) if has_name(self.path, each, f"aten::{each}")]
            text = f"module '{self.path}': object has no attribute {name}"
            raise CompileError(text, range, hints=did_you_mean(name, [*names, *_CONSTANTS, *library.names()]))
        return found or BuiltinFunction(operator)

    def inner(self, name: str) -> TorchNamespace:
        """A namespace in this one."""
        return TorchNamespace(f"{self.path}.{name}", strict=self.strict)

    def python_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        """The sugared value that a program in Python has under that name, if it is written in Python."""
        return None

    def operator(self, name: str) -> str:
        """The operator that `name` is in this namespace."""
        last = self.path.rpartition(".")[2].lstrip("_")
        if last == "prim":
            return f"prim::{name}"
        plain, prefixed = f"aten::{name}", f"aten::{PREFIXED.get(last, '')}{name}"
        return plain if table.overloads(plain) and not table.overloads(prefixed) else prefixed


class OperatorNamespace(SugaredValue):
    """The namespaces of archived code: `torch.add` is `aten::add`, `ops.prim.min` is `prim::min`."""

    __slots__ = ("namespace",)
    kind = "module"

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace

    def describe(self) -> str:
        return f"module '{self.namespace or 'ops'}'"

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if not self.namespace:
            return OperatorNamespace(name)
        return BuiltinFunction(f"{self.namespace}::{name}")


def _takes_numbers(operator: str) -> bool:
    """True if there is such an operator, and not for tensors alone."""
    return any(entry.schema.arguments[0].type is not TENSOR for entry in table.overloads(operator))


_CLASSES: Final[dict[str, SugaredValue]] = {**CONSTRUCTORS, "device": DeviceClass()}
"""Classes of `torch` that are called."""


class MathNamespace(Namespace):
    """Python's `math`."""

    __slots__ = ()

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        value = getattr(math, name, None)
        if isinstance(value, float):
            return ConstantValue(value)
        operator = "aten::" + {"remainder": "mathremainder"}.get(name, name)
        if callable(value):
            if not _takes_numbers(operator):
                raise unsupported_builtin(value, range)
            return BuiltinFunction(operator)
        known = [each for each in dir(math) if not each.startswith("_")]
        raise CompileError(f"module 'math': object has no attribute {name}", range, hints=did_you_mean(name, known))
