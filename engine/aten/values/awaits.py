"""Calls that are made when their results are first needed: the values of `torch.jit._awaitable` and its type `Await`.

In: a function of nothing, or a value.  Out: an `Await`, whose `wait` gives the result.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import Any, ClassVar

from engine.lang.errors import ArgumentError


class Await:
    """A call that is made when its result is first needed; `args` are what it will be given.

    In Python the result's attributes are the await's, too; a program knows the type of the result and waits for it.
    """

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def __init__(
        self, compute: Callable[[], Any], args: tuple[Any, ...] = (), fn: Callable[..., Any] | None = None
    ) -> None:
        self._compute, self._args, self._fn = compute, args, fn
        self._results: list[Any] = []

    @classmethod
    def of(cls, value: Any) -> Await:
        """An await whose result is there."""
        made = cls(lambda: value, (value,))
        made.wait()
        return made

    def wait(self) -> Any:
        """The result; the call is made once."""
        if not self._results:
            self._results.append(self._compute())
        return self._results[0]

    def converted(self, convert: Callable[[Any], Any]) -> Await:
        """The await of `convert(result)`."""
        return Await(lambda: convert(self.wait()), self._args, self._fn)

    def fn(self) -> Callable[..., Any]:
        """The Python function that it calls.  Raises ArgumentError where a result was given, or a program's call."""
        if self._fn is None:
            raise ArgumentError("this Await calls no function of Python")
        return self._fn

    def args(self) -> tuple[Any, ...]:
        return self._args

    def is_nowait(self) -> bool:
        """True if the result was given instead of a call."""
        return self._fn is None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.wait(), name)
