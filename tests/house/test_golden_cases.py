"""Golden cases refuse passes that change what their programs do, and notes that they do not need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ir.graph import Graph
from engine.lang.types import TensorType
from engine.passes import pipeline
from tests.case_runner import aligned, parse_cases

CASES = Path(__file__).parent.parent / "cases"
TWICE = """\
[case twice]
[graph]
graph(%x : Tensor):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor = aten::neg(%1)
  return (%2)
"""
READ = """\
[case a_read_behind_a_write]
[graph]
graph(%x : Tensor,
      %y : Tensor):
  %1 : Tensor = aten::relu_(%x)
  %2 : Tensor = aten::neg(%y)
  return (%2)
"""
RAISES = """\
[case it_raises]
[source]
def f(n: int):
    if n < 5:
        raise ValueError("small")
    return n
"""


def problems(text: str) -> list[str]:
    """What the runner says of the one case."""
    (case,) = parse_cases(text)[1]
    return case.check()


def _hands_back_its_argument(graph: Graph) -> bool:
    """-(-x) → x"""
    outer = graph.outputs[0].node
    outer.output.replace_all_uses_with(outer.input.node.input)
    for node in (outer, outer.input.node):
        node.destroy()
    return True


def _reads_before_the_write(graph: Graph) -> bool:
    """relu_(x); -y → -y; relu_(x), as if they could not be one tensor."""
    write, read = graph.nodes()
    read.move_before(write)
    return True


def _claims_sizes(graph: Graph) -> bool:
    """x : Tensor → x : Tensor(7, 7), of any tensor."""
    graph.outputs[0].type = TensorType(sizes=(7, 7))
    return True


@pytest.mark.parametrize(
    ("unsound", "text", "after", "said"),
    [
        (_hands_back_its_argument, TWICE, "graph(%x : Tensor):\n  return (%x)", "and gives"),
        (
            _reads_before_the_write,
            READ,
            "graph(%x : Tensor,\n      %y : Tensor):\n  %2 : Tensor = aten::neg(%y)\n"
            "  %1 : Tensor = aten::relu_(%x)\n  return (%2)",
            "and gives",
        ),
        (
            _claims_sizes,
            TWICE,
            TWICE.partition("[graph]\n")[2].replace("%2 : Tensor", "%2 : Tensor(7, 7)"),
            "types are untrue",
        ),
    ],
)
def test_a_case_refuses_an_unsound_pass_whose_graph_it_expects(
    monkeypatch: pytest.MonkeyPatch, unsound: Callable[[Graph], bool], text: str, after: str, said: str
) -> None:
    find = pipeline.find_pass
    monkeypatch.setattr(pipeline, "find_pass", lambda name: unsound if name == "unsound" else find(name))
    assert not problems(f"{text}[unchanged after dce]\n")
    (problem,) = problems(f"{text}[after unsound]\n{after}\n")
    assert "after unsound" in problem and said in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{TWICE}[not compared: nobody tried]\n[unchanged after dce]\n", "the case needs no [not compared]"),
        (f"{TWICE}[raises]\n[unchanged after dce]\n", "the case needs no [raises]"),
        (f"{RAISES}[inputs n=7]\n[unchanged after dce]\n", "the case needs no [inputs]"),
        (f"{TWICE}[inputs y=1]\n[unchanged after dce]\n", "there is no input y"),
        (f"{TWICE}[inputs x='text']\n[unchanged after dce]\n", "all fail"),
        (f"{RAISES}[inputs n={{1, 2}}]\n[unchanged after dce]\n", "all fail: Error: small"),
    ],
)
def test_notes_that_do_not_fit_are_told(text: str, said: str) -> None:
    (problem,) = problems(text)
    assert said in problem


@pytest.mark.parametrize("note", ["[inputs n={1, 2}]\n[raises]\n", ""])
def test_errors_that_a_program_raises_are_compared(note: str) -> None:
    assert not problems(f"{RAISES}{note}[unchanged after dce]\n")
    assert problems(f"{RAISES}{note}[unchanged after eliminate_exceptions]\n")


def test_nearly_all_cases_with_passes_are_run() -> None:
    cases = [case for path in CASES.rglob("*.case") for case in parse_cases(path.read_text(encoding="utf-8"))[1]]
    exempt = [bool(case.notes.reason) for case in cases if case.orders]
    assert sum(exempt) < 0.07 * len(exempt)


def test_a_difference_is_shown_line_by_line() -> None:
    wanted = "graph():\n" + "".join(f"  %{number} : int = f()\n" for number in range(9)) + "  return (%8)"
    assert aligned(wanted, wanted.replace("return (%8)", "return (%7)")) == (
        "- expected, + found\n"
        "  ...\n"
        "    %6 : int = f()\n"
        "    %7 : int = f()\n"
        "    %8 : int = f()\n"
        "-   return (%8)\n"
        "?            ^\n"
        "+   return (%7)\n"
        "?            ^"
    )
