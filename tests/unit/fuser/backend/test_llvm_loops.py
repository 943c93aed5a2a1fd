"""Loops whose iterations are independent become vectors without a look at where their memory lies."""

from __future__ import annotations

from engine.fuser.backend import machine
from engine.fuser.ir import kernel_text

_ROTATED = """def f(n: i64, x: InOut[f32[4, n]]):
    for i in {kind}(n):
        a = x[0, i]
        b = x[1, i]
        x[2, i] = a * b
        x[3, i] = a + b
"""


def _code(kind: str) -> str:
    kernel = kernel_text.parse(_ROTATED.format(kind=kind))
    return machine.compile_program(machine.program(kernel)).llvm_after


def test_independent_iterations_need_no_checks() -> None:
    plain, vector = _code("range"), _code("vector")
    assert "memcheck" in plain
    assert "memcheck" not in vector
    assert "x float>" in vector


def test_groups_are_of_one_loop_each() -> None:
    text = """def f(n: i64, x: InOut[f32[n]], y: InOut[f32[n]]):
    for i in vector(n):
        x[i] = x[i] + f32(1.0)
    for i in vector(n):
        y[i] = y[i] + x[i]
"""
    kernel = kernel_text.parse(text)
    before = machine.compile_program(machine.program(kernel)).llvm_before
    assert before.count("parallel_accesses") == 2
    assert before.count("distinct !{  }") == 2
