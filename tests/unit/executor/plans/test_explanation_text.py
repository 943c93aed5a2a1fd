"""Explanations as a text: what calls did, and the facts about each plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

import engine
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import KernelExplanation
from engine.executor.plans.explanation_text import measured, plan_title
from engine.executor.plans.fusion import Kernel
from engine.fuser.backend import machine, tiering
from engine.ir.graph import Graph

if TYPE_CHECKING:
    from engine.executor.plans.lowered import Lowered

with_llvm = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")
TEXT: Final = """
def f(x, w):
    h = torch.relu(x @ w)
    return h.mean() + torch.nonzero(h).sum()
"""
_NUMBER: Final = re.compile(r"\d+(\.\d+)?(e-?\d+)? (ns|µs|ms|s)\b")


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plan is on disk, and calls wait for kernels."""
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def masked(found: object) -> str:
    """The text with `#` for times and for how many passes there are, less those that took longest."""
    text = re.sub(r"^ +\w+ #\n", "", _NUMBER.sub("#", str(found)), flags=re.MULTILINE)
    return re.sub(r"\d+ in #; \d+ changed", "# in #; # changed", text)


def profiled() -> Any:
    """A function with a plan from a profile, a guard of which has failed once."""
    f = engine.CompilationUnit(TEXT).f
    x, w = engine.ones(3, 4), engine.ones(4, 2)
    executor_of(f._function).profile_next()
    for first in (x, x, engine.ones(7, 4), x):
        f(first, w)
    return f


@with_llvm
def test_a_page_tells_what_ran_and_what_has_no_kernel() -> None:
    assert masked(engine.explain(profiled())) == PAGE


PAGE: Final = """\
f: 4 calls looked for a plan, 1 plan was made, 1 run was profiled
  until call 1: #, 1 by the interpreter
  until call 4: #, 3 by the plan with kernels; the plan was made in #
f(x: Float(*, *), w: Float(*, *))
  made       in #, as code for Python
  passes     # in #; # changed the graph, 4 of them took longest:
  guards     x Float(3, 4), w Float(4, 2), torch.nonzero(h) Long(6, 2); 6 uses need none
  failed     x, line 3: expected Float(3, 4), got Float(7, 4)
  kernel     f_1: lines 3–4, compiled in #
  kernel     f_2: line 4, compiled in #
  no kernel  nonzero (line 4): no kernel holds it
  cost       # in all; used by 2 later calls
more: .plans, each with its graph, source, passes, guards, and groups with their kernels"""


@with_llvm
def test_a_page_tells_gradients() -> None:
    f = engine.CompilationUnit(TEXT).f
    for _ in range(2):
        f(engine.ones(3, 4).requires_grad_(), engine.ones(4, 2))
    assert "  gradient     f_1: line 3, for x, 2 values captured (56 B)\n" in masked(engine.explain(f))
    assert "  no gradient  nonzero (line 4): what it gives depends on elements\n" in masked(engine.explain(f))


def test_a_function_that_has_not_run_has_no_plan() -> None:
    f = engine.CompilationUnit(TEXT).f
    assert str(engine.explain(f)) == "f: 0 calls looked for a plan, 0 plans were made"


def test_earlier_plans_are_counted() -> None:
    f = engine.CompilationUnit(TEXT).f
    for rank in range(2, 7):
        f(engine.ones([4] * rank), engine.ones(4, 2))
    text = str(engine.explain(f))
    assert text.count("\nf(x: ") == 3
    assert "\n2 earlier plans: .plans has all\n" in text


@pytest.mark.parametrize(
    ("function", "arguments", "shown"),
    [
        ("m.forward", "(x: int)", "m.forward(x: int)"),
        ("x + 1", "(x: int)", "x + 1  for (x: int)"),
        ("1 + 1", "()", "1 + 1"),
    ],
)
def test_titles(function: str, arguments: str, shown: str) -> None:
    assert plan_title(function, arguments) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.0, ""), (0.314, "0.31 times the time without it"), (1.34, "not used: 1.3 times the time without it")],
)
def test_what_was_measured_of_calls_beside_those_without_a_kernel(ratio: float, shown: str) -> None:
    kernel = Kernel(cast("Lowered", None), (), 0.1, ratio)
    assert measured(KernelExplanation(0.1, kernel, lambda: None, Graph())) == shown
