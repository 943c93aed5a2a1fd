"""`torch.ops`: operators by namespace and name, and by overload: `torch.ops.aten.add.Tensor`.

In: a namespace, an operator's name, an overload's name.  Out: callables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from engine.aten.dispatch import calls, table
from engine.aten.dispatch.op import Op
from engine.executor.calls.call import Boundary
from engine.lang.errors import ArgumentError, did_you_mean


class OpOverload:
    """One overload of one operator."""

    def __init__(self, entry: Op) -> None:
        self._entry, self._schema = entry, entry.schema

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return calls.call_overload(self._entry, args, kwargs)
        except ArgumentError:
            if (error := _mismatch([self._entry], args, kwargs)) is not None:
                raise error from None
            raise

    def name(self) -> str:
        return self._entry.qualified_name

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self._entry.name.replace('::', '.')}', overload='{self._entry.overload or 'default'}')>"
        )


class OpOverloadPacket:
    """All overloads of one operator; a call uses the one that fits the arguments."""

    def __init__(self, name: str) -> None:
        self.__name__ = name.partition("::")[2]
        self._name = name
        self.torch_path = f"torch.ops.{name.replace('::', '.')}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._called(args, kwargs)
        except ArgumentError:
            if (error := _mismatch(table.overloads(self._name), args, kwargs)) is not None:
                raise error from None
            raise

    def _called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        *first, last = table.overloads(self._name)
        if self._name.startswith("aten::"):
            with suppress(ArgumentError):  # strings, lists and numbers have overloads, too
                return calls.call_function(self.__name__, args, kwargs)
        for entry in first:
            try:
                return calls.call_overload(entry, args, kwargs)
            except ArgumentError:
                continue
        return calls.call_overload(last, args, kwargs)

    def overloads(self) -> list[str]:
        return [entry.overload or "default" for entry in table.overloads(self._name)]

    def __getattr__(self, overload: str) -> OpOverload:
        entry = table.find(self._name if overload == "default" else f"{self._name}.{overload}")
        if entry is None:
            hint = (
                "" if overload.startswith("_") else "".join(f"; {h}" for h in did_you_mean(overload, self.overloads()))
            )
            raise AttributeError(f"The underlying op of '{self._name}' has no overload name '{overload}'{hint}")
        return OpOverload(entry)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._name.replace('::', '.')}')>"


def _mismatch(entries: Sequence[Op], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ArgumentError | None:
    """The error that says of each overload why it does not take the arguments; None if one does by its schema."""
    found: list[ArgumentError] = []
    for entry in entries:
        try:
            Boundary(entry.schema).inputs(args, kwargs)
        except ArgumentError as error:
            found.append(error)
        else:
            return None
    if len(found) == 1:
        return found[0]
    told = "\n\n".join(error.message for error in found)
    hints = dict.fromkeys(hint for error in found for hint in error.hints)
    return ArgumentError(
        f"Overloaded torch operator invoked from Python failed to match any schema:\n{told}", hints=hints
    )


class OpNamespace:
    """The operators of one namespace, such as `torch.ops.aten`; those that were asked for are its attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name in ("__origin__", "__self__"):  # asked of whatever might be a type or a method
            raise AttributeError(f"Invalid attribute '{name}' for '_OpNamespace' '{self.name}'")
        qualified = f"{self.name}::{name}"
        if not table.overloads(qualified):
            known = (each.partition("::")[2] for each in table.names() if each.startswith(f"{self.name}::"))
            hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, known))
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'{hint}")
        found = OpOverloadPacket(qualified)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return [each.partition("::")[2] for each in table.names() if each.startswith(f"{self.name}::")]


_OpNamespace = OpNamespace


def forget(name: str) -> None:
    """Look the operator up again when it is next asked for: it is gone, or is another one now."""
    namespace, _, own = name.partition("::")
    found = globals().get(namespace)
    if isinstance(found, OpNamespace):
        vars(found).pop(own, None)


def load_library(path: str) -> None:
    """Refused: libraries of operators are built on PyTorch's C++.  Raises OSError."""
    raise OSError(
        f"{path}: operators in C++ are PyTorch's own to load; a library that has them in Python may do without"
    )


def get_operation(name: str) -> tuple[OpOverloadPacket, list[str]]:
    """The operator as a function, and the names of its overloads.  Raises ArgumentError for an unknown one."""
    found = table.overloads(name)
    if not found:
        raise ArgumentError(f"No such operator {name}", hints=did_you_mean(name, table.names()))
    return OpOverloadPacket(name), [entry.overload for entry in found]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    made = globals()[name] = OpNamespace(name)
    return made
