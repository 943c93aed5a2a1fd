"""Helpers of statements: what is alike shares one, names from outside are parameters."""

from __future__ import annotations

from engine.fuser.ir.kernel import Buffer, For, Let, Load, Name, Scalar, Store, apply, index
from engine.fuser.ir.kernel_text import parse
from engine.fuser.ir.outlining import Outliner, bound_names, expanded, free_parameters, nameless, renamed


def _doubled(source: str, target: str, count: str, i: str, value: str) -> For:
    element = Load(source, (Name(i, "i64"),), "f32")
    body = (
        Let(value, apply("add", element, element)),
        Store(target, (Name(i, "i64"),), Name(value, "f32")),
    )
    return For(i, index(0), Name(count, "i64"), body)


_BUFFERS = dict.fromkeys(("x", "y", "z"), "f32")


def test_parameters_are_what_is_not_bound() -> None:
    body = [_doubled("x", "y", "n", "i", "v")]
    assert [*bound_names(body)] == ["i", "v"]
    assert free_parameters(body, _BUFFERS) == [
        Scalar("n", "i64"), Buffer("x", "f32", None), Buffer("y", "f32", None, access="inout"),
    ]  # fmt: skip


def test_pieces_that_differ_in_names_share_a_helper() -> None:
    outliner = Outliner(_BUFFERS)
    first = outliner.piece("a", [_doubled("x", "y", "n", "i", "v")])
    second = outliner.piece("b", [_doubled("y", "z", "m", "j", "w")])
    assert first.helper is second.helper and outliner.used == {"a": 2}
    other = outliner.piece("c", [_doubled("x", "x", "n", "i", "v")])
    assert other.helper is not first.helper


def test_renaming_and_expanding() -> None:
    (loop,) = renamed([_doubled("x", "y", "n", "i", "v")], {"x": "z", "i": "k", "n": "m"})
    assert loop == _doubled("z", "y", "m", "k", "v")
    (loop,) = expanded([loop], "y", lambda store: [Store("x", store.indices, store.value)] * 2)
    assert isinstance(loop, For) and [type(each) for each in loop.body] == [Let, Store, Store]


def test_kernels_that_differ_in_names_have_one_text_and_others_have_not() -> None:
    text = "def {0}(n: i64, {1}: Out[f32[n]]):\n    for {2} in range(n):\n        {1}[{2}] = {3}(f32(2.0))\n"
    first = nameless(parse(text.format("first", "x", "i", "exp")))
    assert nameless(parse(text.format("second", "target", "k", "exp"))) == first
    assert nameless(parse(text.format("first", "x", "i", "log"))) != first
    swapped = "def first(n: i64, m: i64, x: Out[i64[n]]):\n    x[0] = {0} - {1}\n"
    assert nameless(parse(swapped.format("n", "m"))) != nameless(parse(swapped.format("m", "n")))
