"""PYTORCH_JIT_TYPE_VERBOSITY: what graphs and logs tell of types, level by level."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.ir import type_verbosity
from engine.ir.parser import parse_ir
from engine.ir.type_verbosity import set_type_verbosity, verbosity_of
from engine.lang.errors import CompileError

HEADS = {
    0: "graph(%a,\n      %b,\n      %t,\n      %o,\n      %d,\n      %e,\n      %l):",
    1: (
        "graph(%a : Float(2, 3),\n      %b : Float(*, *),\n      %t : (Float(2), int),\n      %o : Float(2)?,\n"
        "      %d : Dict(str, Float(2)),\n      %e : Double(),\n      %l : Float(2)[]):"
    ),
    2: (
        "graph(%a : Float(2, 3, strides=[3, 1]),\n      %b : Float(*, *),\n      %t : (Float(2, strides=[1]), int),\n"
        "      %o : Float(2, strides=[1])?,\n      %d : Dict(str, Float(2, strides=[1])),\n      %e : Double(),\n"
        "      %l : Float(2, strides=[1])[]):"
    ),
    3: (
        "graph(%a : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu),\n"
        "      %b : Float(*, *, requires_grad=0, device=cpu),\n"
        "      %t : (Float(2, strides=[1], device=cpu), int),\n      %o : Float(2, strides=[1], device=cpu)?,\n"
        "      %d : Dict(str, Float(2, strides=[1])),\n      %e : Double(requires_grad=0, device=cpu),\n"
        "      %l : Float(2, strides=[1])[]):"
    ),
}
TEXT = HEADS[3] + "\n  %1 : int = prim::Constant[value=1]()\n  %2 : Long() = aten::add(%a, %b, %1)\n  return (%2)\n"


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_verbosity, "_CURRENT", type_verbosity._Current())


@pytest.mark.parametrize("level", HEADS)
def test_each_level_tells_more(level: int) -> None:
    graph = parse_ir(TEXT)
    set_type_verbosity(level)
    head, _, body = str(graph).partition("):\n  ")
    assert f"{head}):" == HEADS[level]
    assert body.startswith("%1 : int = prim::Constant" if level else "%1 = prim::Constant")
    assert str(next(iter(graph.nodes()))) == ("%1 : int" if level else "%1") + " = prim::Constant[value=1]()"


@pytest.mark.parametrize(("text", "level"), [(None, 3), ("", 3), ("0", 0), ("1", 1), (" 2 ", 2), ("7", 3), ("-1", 0)])
def test_the_variable(text: str | None, level: int) -> None:
    assert verbosity_of({} if text is None else {"PYTORCH_JIT_TYPE_VERBOSITY": text}) == level


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(CompileError, match="PYTORCH_JIT_TYPE_VERBOSITY is 'much'"):
        verbosity_of({"PYTORCH_JIT_TYPE_VERBOSITY": "much"})


def test_graphs_and_logs_obey_the_environment() -> None:
    program = (
        "from engine.ir.parser import parse_ir\nfrom engine.passes.pipeline import run_pass\n"
        "g = parse_ir('graph(%x : Float(2, device=cpu)):\\n  %1 : Tensor = aten::neg(%x)\\n  return (%x)\\n')\n"
        "run_pass('dce', g)\nprint(g)\n"
    )
    wishes = {"PYTORCH_JIT_TYPE_VERBOSITY": "0", "PYTORCH_JIT_LOG_LEVEL": ">dce"}
    run = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **wishes}, capture_output=True, text=True, check=True
    )
    assert run.stdout == "graph(%x):\n  return (%x)\n\n"
    assert "%1 = aten::neg(%x)" in run.stderr
    assert " : " not in run.stderr
