"""Functions with several declared signatures: which are taken, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import CompileError


def test_declarations_belong_to_the_function_that_follows() -> None:
    @torch.jit._overload
    def twice(x: int) -> int: ...

    @torch.jit._overload  # type: ignore[no-redef]
    def twice(x: str) -> str:  # noqa: F811
        pass  # type: ignore[return]

    def twice(x: Any) -> Any:  # type: ignore[no-redef]  # noqa: F811
        return x + x

    def both() -> Any:
        return twice(2), twice("ab")

    assert torch.jit.script(both)() == (4, "abab")
    before = twice

    def twice(x: float) -> float:  # type: ignore[no-redef]
        return x * 2.0

    def other() -> float:
        return twice(1.5)

    assert torch.jit.script(other)() == 3.0
    compiled = torch.jit._script._get_overloads(before)
    again = torch.jit._script._get_overloads(before)
    assert [len(compiled), *(a.graph is b.graph for a, b in zip(compiled, again, strict=True))] == [2, True, True]
    assert torch.jit._script._get_overloads(twice) is None


def test_defaults_are_those_of_the_function_where_they_fit() -> None:
    @torch.jit._overload
    def shown(x: int) -> int: ...

    @torch.jit._overload  # type: ignore[no-redef]
    def shown(x: str) -> str: ...  # noqa: F811

    def shown(x: Any = "none", more: int = 1) -> Any:  # type: ignore[no-redef]  # noqa: F811
        return x

    def program() -> Any:
        return shown(), shown(3), shown("a", 2)

    assert torch.jit.script(program)() == ("none", 3, "a")


def test_declarations_have_no_body() -> None:
    with pytest.raises(CompileError, match="can be the body of overload declaration"):

        @torch.jit._overload
        def wrong(x: str) -> str:
            return x + "0"


def test_a_declared_default_must_be_the_functions() -> None:
    @torch.jit._overload
    def power(x: int, n: int = 3) -> int: ...

    def power(x: Any, n: int = 2) -> Any:  # type: ignore[no-redef]  # noqa: F811
        return x**n

    def program() -> int:
        return power(2, 1)

    with pytest.raises(CompileError, match="must equal to the default parameter on the implementation function"):
        torch.jit.script(program)


def test_declarations_without_a_function_are_told() -> None:
    @torch.jit._overload
    def absent(x: int) -> int: ...

    def program() -> int:
        return absent(1)

    with pytest.raises(CompileError, match='Implementation for the function "absent" is missing'):
        torch.jit.script(program)
