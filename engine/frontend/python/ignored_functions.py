"""Functions that stay in Python: those marked `@torch.jit.ignore` and `@torch.jit.unused`.

In: such a function, and a program that calls it.  Out: a `prim::PythonOp` node that holds the function; for an
unused one the program raises instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.frontend.matching.schema_match import Actual, Call, match_schema
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.ir.graph import Value
from engine.lang.errors import NotSupportedError
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, Type

MODIFIER: Final = "_torchscript_modifier"
"""The attribute of a Python function that has its modifier: "ignore", "unused", "export", …"""
IGNORED: Final = ("ignore", "unused")
_NO_NAME: Final = "<python_value>"
"""The name in schemas of a callable that has none."""
_UNUSED: Final = "This Python function is annotated to be ignored and cannot be run"

Annotation = Callable[[Any], Type]
"""Annotation -> its type."""


def modifier_of(function: Any) -> str | None:
    found: str | None = getattr(function, MODIFIER, None)
    return found


class PythonFunction(SugaredValue):
    """A Python function, or with `self_value` a method of that object."""

    __slots__ = ("function", "schema", "self_value")
    kind = "python function"

    def __init__(self, function: Callable[..., Any], annotation: Annotation, self_value: Value | None = None) -> None:
        self.function, self.self_value = function, self_value
        self.schema = _schema(function, annotation, self_value)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        bound = [] if self.self_value is None else [Actual(self.self_value, range, "self")]
        matched = match_schema(b.graph, self.schema, Call([*bound, *args], kwargs, None, range))
        result = self.schema.returns[0].type
        if modifier_of(self.function) == "unused":
            b.insert("prim::RaiseException", [b.constant(_UNUSED, range), b.constant(None, range)], range)
            return SimpleValue(b.value("prim::Uninitialized", [], result, range))
        node = b.node("prim::PythonOp", matched.inputs, [result], range)
        node.set_attr("name", self.schema.name).set_attr("function", self.function)
        return SimpleValue(node.output)


def _schema(function: Callable[..., Any], annotation: Annotation, self_value: Value | None) -> FunctionSchema:
    """The schema of the annotations; an argument or result without one is a tensor."""
    forward = getattr(function, "forward", None)
    signature = inspect.signature(forward if inspect.ismethod(forward) else function)

    def type_of(hint: Any) -> Type:
        return TENSOR if hint is inspect.Signature.empty else annotation(hint)

    arguments = []
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise NotSupportedError(
                f"'{function.__name__}' takes a variable number of arguments; name them all",
                hints=("a List, Tuple or Dict can hold any number",),
            )
        of_self = index == 0 and self_value is not None
        type = self_value.type if of_self and self_value is not None else type_of(parameter.annotation)
        default = NO_DEFAULT if parameter.default is parameter.empty else parameter.default
        arguments.append(Argument(name, type, default, kwarg_only=parameter.kind is parameter.KEYWORD_ONLY))
    returns = (Argument("", type_of(signature.return_annotation)),)
    name = getattr(function, "__name__", _NO_NAME)
    return FunctionSchema(name, arguments=tuple(arguments), returns=returns)
