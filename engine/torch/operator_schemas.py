"""Schemas of operators from the annotations of Python functions.

In: a function, and the names of the arguments that it writes to.  Out: a schema's text without a name:
`(Tensor(a0!) x, SymInt n=3) -> Tensor`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.lang import scalars

_SIMPLE: Final[dict[Any, str]] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", scalars.dtype: "ScalarType",
    scalars.device: "Device",
}  # fmt: skip
_NUMBER: Final = frozenset({int, float, bool})
_RESULTS: Final = frozenset({"Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar"})


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """The schema of the function.  Raises ValueError for what no schema has; `mutates_args` are names, or "unknown"."""
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except (NameError, TypeError) as error:
        raise ValueError(f"infer_schema(func): an annotation cannot be read: {error}") from None
    unknown = mutates_args == "unknown"
    written: Sequence[str] = () if unknown else tuple(mutates_args)
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError('infer_schema(func, mutates_args=...): a sequence of names, or "unknown"')
    if missing := [name for name in written if name not in signature.parameters]:
        raise ValueError(f"infer_schema(func): mutates_args names {missing}, which are no arguments of it")
    parts: list[str] = []
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"infer_schema(func): arguments need names: '{parameter}' is not supported")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        text = _argument(name, hints.get(name))
        if name in written or (unknown and text.startswith("Tensor")):
            if not text.startswith("Tensor"):
                raise ValueError(f"infer_schema(func): argument '{name}' is no tensor, and cannot be written to")
            text = f"Tensor(a{index}!){text.removeprefix('Tensor')}"
        parts.append(f"{text} {name}{_default(name, parameter.default)}")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(hints.get('return', inspect.Parameter.empty))}"


def _argument(name: str, hint: Any) -> str:
    if hint is None:
        raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
    text = _spelled(hint)
    if text is None:
        raise ValueError(
            f"infer_schema(func): Parameter {name} has unsupported type {hint}. The valid types are Tensor, int, "
            "float, bool, str, torch.dtype, torch.device, numbers, and lists and Optionals of them"
        )
    return text


def _spelled(hint: Any) -> str | None:
    """The type in a schema, None for one that no schema has."""
    if isinstance(hint, type) and issubclass(hint, Tensor):
        return "Tensor"
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin in (list, tuple, *_SEQUENCES) and args and (origin is not tuple or args[1:] == (...,)):
        inner = _spelled(args[0])
        return None if inner is None else f"{inner}[]"
    return None


def _union(args: tuple[Any, ...]) -> str | None:
    rest = [each for each in args if each is not type(None)]
    inner = "Scalar" if len(rest) > 1 and _NUMBER.issuperset(rest) else _spelled(rest[0]) if len(rest) == 1 else None
    return inner if inner is None or len(rest) == len(args) else f"{inner}?"


_SEQUENCES: Final = tuple({typing.get_origin(typing.Sequence[int]), Sequence})


def _default(name: str, value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if value is None or isinstance(value, (bool, int, float)):
        return f"={value}"
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, (scalars.dtype, scalars.device)):
        return f'="{value}"' if isinstance(value, scalars.device) else f"={str(value).removeprefix('torch.')}"
    raise ValueError(
        f"infer_schema(func): Parameter {name} has a default that no schema has: {value!r}; give it None, or a number, "
        "a string, a dtype or a device"
    )


def _returned(hint: Any) -> str:
    if hint in (None, type(None)):
        return "()"
    if hint is inspect.Parameter.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    if typing.get_origin(hint) is tuple and ... not in typing.get_args(hint):
        return f"({', '.join(map(_returned, typing.get_args(hint)))})"
    text = _spelled(hint)
    if text not in _RESULTS:
        raise ValueError(f"infer_schema(func): Return has unsupported type {hint}.")
    return text
