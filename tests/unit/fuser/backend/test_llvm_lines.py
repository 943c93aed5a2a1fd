"""Texts of LLVM say which statement their lines are from, and are otherwise the texts of the code that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import engine.torch as torch
from engine.fuser.backend import machine
from engine.fuser.backend.listings import Listings
from engine.fuser.gpu import ptx
from engine.fuser.gpu.prepared import numbers_of, prepared
from engine.fuser.ir import kernel_text
from engine.fuser.ir.kernel import Kernel
from tests.unit.fuser.gpu_kernels import arrays_of, binding_of

ROWS = """def f(n: i64, m: i64, x: f32[n, m], out: Out[f32[n]]):
    for i in parallel(n):
        room = allocate(f32[m])
        total: f32 = 0.0
        for j in vector(m):
            a = exp(x[i, j])
            room[j] = a
            total = reduce(add, a)
        out[i] = total * room[0]
"""
CALLS = """def first(n: i64, x: f32[n]):
    if n > 0:
        if x[0] > 0.0:
            return 1
    return 2

def f(n: i64, x: f32[n], out: Out[f32[n]]):
    s: i64 = first(n, address(x[0]))
    if s == 2:
        return s
    i: i64 = 0
    while i < n:
        out[i] = x[i] + 1.0
        i = i + 1
"""
KERNELS = {name: kernel_text.parse(text) for name, text in {"rows": ROWS, "calls": CALLS}.items()}
GROUPS = [
    "x: torch.tanh(x) * x + 1.0",
    "x: (x * x).sum(1)",
    "x: torch.softmax(x, 1) * 2.0",
    "x: x.t().contiguous() + 1",
]


def plain(text: str) -> list[str]:
    """The lines of a text, without what is there to find callers."""
    apart = (".cfi_", ".file")
    return [each.rstrip() for each in text.splitlines() if each.strip() and not each.strip().startswith(apart)]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=[*KERNELS])
def test_the_texts_are_those_of_the_code_that_runs(kernel: Kernel) -> None:
    found, code = Listings(kernel), machine.compile_program(machine.program(kernel))
    assert plain(found.before.text) == plain(code.llvm_before)
    assert plain(found.after.text) == plain(code.llvm_after)
    assert plain(found.assembly.text) == plain(code.assembly)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=[*KERNELS])
def test_code_that_runs_has_no_lines(kernel: Kernel) -> None:
    assert "!dbg" not in str(machine.program(kernel).write())
    assert "!dbg" in Listings(kernel)._text


def test_instructions_are_from_their_statements() -> None:
    found = Listings(KERNELS["rows"])
    for listing, wanted in ((found.before, "fmul float"), (found.after, "fmul float"), (found.assembly, "mulss")):
        rows = zip(listing.text.splitlines(), listing.lines, strict=True)
        assert [line for text, line in rows if wanted in text and line == 9], wanted
    assert {*found.before.lines} == {0, *range(1, 10)}
    assert {1, 2, 5, 6, 7, 8, 9} <= {*found.assembly.lines}


def test_helpers_have_lines_of_their_own() -> None:
    lines = {*Listings(KERNELS["calls"]).before.lines}
    assert lines == {0, *range(1, 6), *range(7, 15)}  # the sixth line is empty


@pytest.mark.parametrize("group", GROUPS)
def test_ptx_with_lines_is_ptx(group: str) -> None:
    x = torch.ones(64, 64)
    binding = binding_of(group, x)
    kernel = kernel_text.numbered(binding.kernel)
    numbers = numbers_of(binding, arrays_of([x]))
    plain_code, code = (prepared(replace(binding, kernel=each), numbers).code for each in (binding.kernel, kernel))
    listing = ptx.listing_of(code, "sm_90")
    assert plain(listing.text) == plain(ptx.ptx_of(plain_code, "sm_90"))
    assert ptx.llvm_of(plain_code) == ptx.llvm_of(code)
    statements = kernel_text.show(kernel).splitlines()
    assert all(at in listing.lines for at, text in enumerate(statements, 1) if "out[" in text or "tanh(" in text)
