"""Functions that stay in Python: those marked `@torch.jit.ignore` and `@torch.jit.unused`.

In: such a function, and a program that calls it.  Out: a `prim::PythonOp` node that holds the function; for an
unused one the program raises instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from engine.frontend.matching.schema_match import Actual, Call, match_schema
from engine.frontend.names.resolve import Resolver
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.python.modifiers import DROPPED, modifier_of
from engine.frontend.python.trees import commented_types
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import SimpleValue
from engine.frontend.syntax.views import Decl
from engine.ir.graph import Value
from engine.lang.errors import CompileError
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, Type

_NO_NAME: Final = "<python_value>"
"""The name in schemas of a callable that has none."""
_UNUSED: Final = "This Python function is annotated to be ignored and cannot be run"


class Annotations(Resolver, Protocol):
    """The names that the function sees; `annotation` gives the type of an annotation that Python has evaluated."""

    def annotation(self, hint: Any) -> Type: ...


class PythonFunction(SugaredValue):
    """A Python function, or with `self_value` a method of that object."""

    __slots__ = ("function", "names", "self_value")
    kind = "python function"

    def __init__(self, function: Callable[..., Any], names: Annotations, self_value: Value | None = None) -> None:
        self.function, self.names, self.self_value = function, names, self_value

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        bound = [] if self.self_value is None else [Actual(self.self_value, range, "self")]
        schema = self._schema([*bound, *args])
        matched = match_schema(b.graph, schema, Call([*bound, *args], kwargs, None, range))
        result = schema.returns[0].type
        if modifier_of(self.function) in DROPPED:
            b.insert("prim::RaiseException", [b.constant(_UNUSED, range), b.constant(None, range)], range)
            return SimpleValue(b.value("prim::Uninitialized", [], result, range))
        node = b.node("prim::PythonOp", matched.inputs, [result], range)
        node.set_attr("name", schema.name).set_attr("function", self.function)
        return SimpleValue(node.output)

    def _schema(self, given: Sequence[Actual]) -> FunctionSchema:
        """The schema of the annotations for so many positional arguments; what has none is a tensor.

        Annotations are Python's, or where there are none, those of type comments.
        """
        forward = getattr(self.function, "forward", None)
        function = forward if inspect.ismethod(forward) else self.function
        signature = inspect.signature(function)
        name = getattr(self.function, "__name__", _NO_NAME)
        parameters = list(signature.parameters.values())
        if self.self_value is not None and not parameters:
            raise CompileError(f"method '{name}' does not have a self argument", hints=(f"write def {name}(self)",))
        types, result = self._types(signature, function)
        arguments: list[Argument] = []
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = range(len(given) - len(arguments))
                arguments += [Argument(f"{parameter.name}_{i}", TENSOR) for i in rest]
            elif parameter.kind is not parameter.VAR_KEYWORD:
                default = NO_DEFAULT if parameter.default is parameter.empty else parameter.default
                type, by_name = types.get(parameter.name, TENSOR), parameter.kind is parameter.KEYWORD_ONLY
                arguments.append(Argument(parameter.name, type, default, kwarg_only=by_name))
        if self.self_value is not None:
            arguments[0] = replace(arguments[0], type=self.self_value.type)
        return FunctionSchema(name, arguments=tuple(arguments), returns=(Argument("", result),))

    def _types(self, signature: inspect.Signature, function: Callable[..., Any]) -> tuple[dict[str, Type], Type]:
        """The types of parameters by name, and that of the result."""
        empty, annotation = inspect.Signature.empty, self.names.annotation
        found = {
            each.name: annotation(each.annotation)
            for index, each in enumerate(signature.parameters.values())
            if each.annotation is not empty and not (index == 0 and self.self_value is not None)
        }
        result = signature.return_annotation
        if found or result is not empty or (written := commented_types(function)) is None:
            return found, TENSOR if result is empty else annotation(result)
        reader = TypeReader(self.names)
        params = [each for each in Decl(written).params if each.annotation is not None]
        returns = Decl(written).returns
        types = {each.name: reader.read(each.annotation) for each in params if each.annotation is not None}
        return types, TENSOR if returns is None else reader.read(returns)
