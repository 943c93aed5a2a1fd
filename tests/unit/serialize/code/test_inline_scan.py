"""Which nodes are written inside the expression that uses them."""

import pytest

from engine.ir.parser import parse_ir
from engine.serialize.code.inline_scan import inlined_nodes


def inlined(text):
    graph = parse_ir(text)
    found = set()
    inlined_nodes(graph.block, found)
    return [node.kind.partition("::")[2] for node in graph.all_nodes() if node in found]


def graph(*lines, inputs="%x.1 : int"):
    return "\n  ".join([f"graph({inputs}):", *lines])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["%1 : int = aten::neg(%x.1)", "%2 : int = aten::abs(%1)", "return (%2)"], ["neg", "abs"]),
        # used twice
        (["%1 : int = aten::neg(%x.1)", "%2 : int = aten::add(%1, %1)", "return (%2)"], ["add"]),
        # named by the author, and not merely returned
        (["%y.1 : int = aten::neg(%x.1)", "%2 : int = aten::abs(%y.1)", "return (%2)"], ["abs"]),
        (["%y.1 : int = aten::neg(%x.1)", "return (%y.1)"], ["neg"]),
        # not evaluated in the order of the arguments
        (
            ["%1 : int = aten::neg(%x.1)", "%2 : int = aten::abs(%x.1)", "%3 : int = aten::sub(%2, %1)", "return (%3)"],
            ["abs", "sub"],
        ),
        # a constant is written anywhere
        (
            ["%1 : int = prim::Constant[value=1]()", "%2 : int = aten::add(%x.1, %1)", "return (%2)"],
            ["Constant", "add"],
        ),
        # a type test would refine twice
        (["%1 : bool = prim::isinstance[types=[int]](%x.1)", "return (%1)"], []),
        # a statement stands between
        (
            [
                "%1 : int = aten::neg(%x.1)",
                "%2 : int, %3 : int = aten::f(%x.1)",
                "%4 : int = aten::add(%1, %2)",
                "return (%4)",
            ],
            ["add"],
        ),
    ],
)
def test_what_is_inlined(lines, expected):
    assert inlined(graph(*lines)) == expected


def test_what_a_loop_starts_from_is_not():
    lines = [
        "%1 : bool = prim::Constant[value=1]()",
        "%2 : int = aten::neg(%x.1)",
        "%3 : int = aten::abs(%x.1)",
        "%4 : int = prim::Loop(%3, %1, %2)",
        "  block0(%i : int, %y : int):",
        "    %5 : int = aten::add(%y, %i)",
        "    -> (%1, %5)",
        "return (%4)",
    ]
    assert inlined(graph(*lines)) == ["Constant", "abs", "add"]
