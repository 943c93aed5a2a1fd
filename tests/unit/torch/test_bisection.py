"""The rewrite that breaks a program is found."""

import pytest

import engine
from engine.ir.graph import Graph
from engine.ir.rewrites import allowed
from engine.passes import pipeline
from engine.torch.jit.probing.bisection import Culprit, Failed, bisect

PROGRAM = """
def f(x, n: int):
    y = x - n
    z = 2 - y
    return (z * y, [n, 3], "a", 0.1)
"""


def swap_operands(graph: Graph) -> bool:
    """Is wrong about `aten::sub`, right about `aten::mul` of tensors."""
    changed = False
    for node in graph.all_nodes():
        if node.kind in ("aten::sub", "aten::mul", "aten::rsub") and allowed(node, "the same, swapped"):
            first, second = node.inputs[:2]
            if node.kind == "aten::mul" or not hasattr(first.type, "sizes") or hasattr(second.type, "sizes"):
                node.replace_input(0, second)
                node.replace_input(1, first)
            else:
                node.kind = "aten::add"
            changed = True
    return changed


def forget(graph: Graph) -> bool:
    """Asks nobody."""
    graph.block.replace_output(0, graph.inputs[0])
    return True


@pytest.fixture(autouse=True)
def _broken_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, find = {"swap_operands": swap_operands, "forget": forget}, pipeline.find_pass
    monkeypatch.setattr(pipeline, "find_pass", lambda name: broken.get(name) or find(name))


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    unit = engine.CompilationUnit(PROGRAM)
    assert engine.bisect(unit.f, (engine.ones(2), 3)) is None
    assert engine.bisect(unit.f, (engine.ones(2), 3), pipeline="inline,dce peephole") is None


def test_the_pass_and_the_rewrite_are_found() -> None:
    unit = engine.CompilationUnit("def f(x, y):\n    a = x * y\n    b = y * a\n    return b - x\n")
    found = bisect(unit.f, (engine.ones(2), engine.ones(2) * 3), pipeline=("inline", "swap_operands", "dce"))
    assert isinstance(found, Culprit)
    assert (found.pass_name, found.index, found.rewrite) == ("swap_operands", 1, 3)
    assert "aten::sub(%b" in found.node
    assert str(found.before) != str(found.after)
    assert [x.tolist() for x in (found.expected, found.result)] == [[8.0, 8.0], [-8.0, -8.0]]
    text = str(found)
    assert text.startswith(
        "rewrite 3 of pass 2, swap_operands, makes tensor([-8., -8.]) of tensor([8., 8.])\nReplacing"
    )
    assert "the same, swapped\nbefore:\ngraph(" in text
    assert str(unit.f.graph) == str(engine.CompilationUnit(
        "def f(x, y):\n    a = x * y\n    b = y * a\n    return b - x\n").f.graph)  # fmt: skip


def test_many_rewrites_are_searched_by_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.torch.jit.probing.bisection.MAX_TRIED_IN_ORDER", 0)
    lines = "".join(f"    x = x * y{' - y' if i == 5 else ''}\n" for i in range(20))
    unit = engine.CompilationUnit(f"def f(x, y):\n{lines}    return x\n")
    found = bisect(unit.f, (engine.ones(1), engine.ones(1) * 2), pipeline=["swap_operands"])
    assert found is not None
    assert found.rewrite == 7
    assert "aten::sub" in found.node


def test_a_pass_that_does_not_ask_is_found_as_a_whole() -> None:
    unit = engine.CompilationUnit("def f(x):\n    return x + 1\n")
    found = bisect(unit.f, (engine.ones(1),), pipeline=["dce", "forget"])
    assert found is not None
    assert (found.pass_name, found.rewrite, found.node) == ("forget", 0, "")
    assert str(found).startswith("pass 2, forget, makes")


def test_the_expected_result_may_be_told() -> None:
    unit = engine.CompilationUnit("def f(x):\n    return x + 1\n")
    assert bisect(unit.f, (engine.ones(1),), expected=engine.ones(1) * 2) is None
    found = bisect(unit.f, (engine.ones(1),), expected=engine.ones(1))
    assert found is not None
    assert found.index == -1
    assert str(found).startswith("before any pass the result is tensor([2.])")


def test_errors_and_broken_graphs_are_results() -> None:
    unit = engine.CompilationUnit("def f(x: int):\n    if x > 1:\n        raise ValueError('big')\n    return x\n")
    assert bisect(unit.f, (5,)) is None
    found = bisect(unit.f, (5,), pipeline=["eliminate_exceptions"])
    assert found is not None
    assert isinstance(found.expected, Failed)
    assert found.result == 5


def test_methods_and_modules() -> None:
    class Model(engine.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * 2 - 1

    model = engine.jit.script(Model())
    assert bisect(model, (engine.ones(1),)) is None
    found = bisect(model.forward, (engine.ones(1),), pipeline=["forget"])
    assert found is not None
    assert found.pass_name == "forget"
