"""Statements of kernels, what LLVM makes of them, and the lines of the program that they are from."""

from __future__ import annotations

import pytest

import engine
import engine.torch as torch
from engine.executor.plans.explanation import KernelExplanation
from engine.fuser.backend import tiering

POINTWISE = """def f(x, y):
    h = torch.tanh(x)
    z = h * y + x
    return torch.relu(z)
"""
REDUCTION = """def f(x, y):
    h = torch.tanh(x)
    z = h * y
    m = torch.softmax(z, 1)
    return m.sum(1)
"""
PRODUCT = """def f(x, y):
    h = torch.tanh(x)
    return torch.relu(h @ y)
"""


def kernels_of(text: str) -> list[KernelExplanation]:
    unit, mode = torch.jit.CompilationUnit(text), tiering.mode()
    tiering.set_mode("eager")
    try:
        for _ in range(2):
            unit.f(torch.ones(64, 64), torch.ones(64, 64))
        return [each for plan in engine.explain(unit.f).plans for group in plan.groups for each in group.kernels]
    finally:
        tiering.set_mode(mode)


@pytest.mark.parametrize("text", [POINTWISE, REDUCTION], ids=["pointwise", "reduction"])
def test_every_statement_has_code_and_a_line_of_the_program(text: str) -> None:
    (kernel,) = kernels_of(text)
    lines, listings = kernel.lines(), kernel.listings
    statements = {*range(1, len(kernel.text.splitlines()) + 1)}
    assert lines.program.keys() == statements
    everything = {*range(2, len(text.splitlines()) + 1)}
    assert {each.number for found in lines.program.values() for each in found} == everything
    assert {each.number for each in lines.program[2]} == everything  # the loop around all
    texts = {kernel.text.splitlines()[at - 1].split()[0] for at in lines.around}
    assert texts == {"def", "for"} and {1, 2} <= lines.around
    for listing in (listings.before, listings.after, listings.assembly):
        own = {*listing.lines} - {0}
        folded = lines.folded(own)
        assert own | {line for found in folded.values() for line in found} == statements
        assert folded.keys() <= own
    assert {*listings.before.lines} - {0} == statements


def test_values_are_from_their_lines() -> None:
    (kernel,) = kernels_of(POINTWISE)
    program = kernel.lines().program
    by_text = {text.strip(): program[at] for at, text in enumerate(kernel.text.splitlines(), 1)}
    numbers = {text.partition(" = ")[0]: {each.number for each in found} for text, found in by_text.items()}
    assert numbers["h_1"] == {2} and numbers["z_1"] == {3} and numbers["out[j0j1]"] == {4}
    assert numbers["x_1_"] == {2, 3}  # an element of an argument is from what reads it


def test_an_element_that_is_an_operand_is_in_what_reads_it() -> None:
    (kernel,) = kernels_of(POINTWISE)
    lines = kernel.lines()
    text = kernel.text.splitlines()
    at, product = (
        next(i for i, each in enumerate(text, 1) if each.strip().startswith(name)) for name in ("y_1_ =", "v4 =")
    )
    assert lines.folded({*range(1, len(text) + 1)} - {at}) == {product: [at]}
    assert lines.folded({*range(1, len(text) + 1)}) == {}


def test_loops_of_a_product_are_from_its_line() -> None:
    (kernel,) = kernels_of(PRODUCT)
    program = kernel.lines().program
    helpers = [at for at, each in enumerate(kernel.text.splitlines(), 1) if "muladd(" in each]
    assert helpers and all({each.number for each in program[at]} == {3} for at in helpers)


@pytest.mark.parametrize("text", [POINTWISE, REDUCTION], ids=["pointwise", "reduction"])
def test_ptx_leads_to_the_program(text: str) -> None:
    (kernel,) = kernels_of(text)
    found = kernel.on_gpu("sm_90")
    lines, listing = kernel.lines(found), found.listing()
    own = {*listing.lines} - {0}
    assert {each.number for line in own for each in lines.program[line]} == {*range(2, len(text.splitlines()) + 1)}
