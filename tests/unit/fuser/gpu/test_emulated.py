"""Shapes of launches: what they are chosen for, and that each gives the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser.gpu import emulated, teams
from engine.fuser.gpu import prepared as preparing
from engine.fuser.gpu.prepared import numbers_of, prepared
from engine.fuser.gpu.shapes import Shape, shape_of_rows
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.ir.kernel_text import parse
from engine.fuser.stubs.binding import Binding, Result, TensorArgument
from tests.unit.fuser.gpu_kernels import arrays_of, binding_of, check, emulate
from tests.unit.fuser.kernels_of_groups import tensor

pytestmark = pytest.mark.skipif(not emulated.is_possible(), reason="the C library has no contexts")

SHAPES = [
    Shape(64, team, is_across, in_shared, is_narrow)
    for team, is_across, in_shared, is_narrow in product((1, 4, 32, 64), (False, True), (False, True), (False, True))
]
SOFTMAX = "x: torch.softmax(x * 2, -1) + x.sum(-1, True)"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_gives_the_same(shape: Shape) -> None:
    x = tensor(9, 70)
    binding = binding_of(SOFTMAX, x)
    numbers = numbers_of(binding, [x.array])
    ready = prepared(binding, numbers)
    (step,) = ready.steps
    step = replace(step, shape=shape, blocks=2, room=1 << 16)
    out = np.zeros((9, 70), np.float32)
    emulated.run(replace(ready, steps=(step,)), {binding.arguments[0].name: x.array, "out": out}, numbers)
    expected = torch.softmax(x * 2, -1) + x.sum(-1, True)
    np.testing.assert_allclose(out, expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "length", "is_across", "team"),
    [(16384, 1024, False, 32), (16, 1024, False, 128), (1, 8192, False, 1024), (100000, 6, False, 1),
     (4096, 4096, True, 32), (1 << 20, 64, True, 1), (40, 300, True, 32)],
)  # fmt: skip
def test_teams(rows: int, length: int, is_across: bool, team: int) -> None:
    shape = shape_of_rows(rows, length, is_across=is_across)
    assert (shape.team, shape.threads % 32, shape.threads % shape.team) == (team, 0, 0)


DTYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: Any) -> None:
    x, y = tensor(3, 37, dtype=dtype), tensor(37, dtype=dtype, seed=1)
    tolerance = 4e-3 if dtype is np.float16 else 1e-6
    check("x, y: (x + y, x * y, x == y)", x, y, others=[[tensor(8, 64, dtype=dtype), tensor(64, dtype=dtype)]],
          tolerance=tolerance)  # fmt: skip
    check("x: (x.sum(1), (x > 0).all(0))", x, tolerance=tolerance)
    if dtype is not np.bool_:
        check("x: (x.amax(1), x.amin(0), x.argmax(1))", x, tolerance=tolerance)


@pytest.mark.parametrize("shape", [(3, 50), (6, 4), (32, 64)])
def test_bfloat16(shape: tuple[int, ...]) -> None:
    x = tensor(*shape).to(torch.bfloat16)
    check("x: (x * 2 + 1, x.sum(1), torch.softmax(x, -1))", x, tolerance=2e-2)


def test_vectors_are_used_where_addresses_allow() -> None:
    """Rows of 64 are read four by four, but not where the first element is between."""
    base = tensor(4 * 64 + 1)
    aligned, between = base[:256].view(4, 64), base[1:].view(4, 64)
    for x in (aligned, between):
        check("x, y: x * y + 1", x, tensor(64))
        check("x: x.sum(1)", x)


def test_remainders_are_exact() -> None:
    x = torch.tensor([5.5, -5.5, 1e30, 3e38, -7.25, 1e-40, 0.0, -0.0, np.inf, np.nan, 1.0, 3.0])
    y = torch.tensor([2.0, 2.0, 3.0, 1e-38, np.inf, 3e-42, 1.0, 2.0, 2.0, 1.0, 0.0, -0.7])
    check("x, y: (torch.fmod(x, y), x % y)", x, y, tolerance=0.0)


@pytest.mark.parametrize("text", ["x: torch.sin(x) * 2", "x: torch.pow(x, 2.3) + 1"])
def test_functions_without_an_expression_in_64_bits_are_refused(text: str) -> None:
    check(text, torch.abs(tensor(4, 5)))
    with pytest.raises(NotFused, match="the C library's"):
        binding_of(text, torch.abs(tensor(4, 5, dtype=np.float64)))


def test_libraries_keep_their_operators() -> None:
    with pytest.raises(NotFused, match="library"):
        binding_of("x: (x @ x).relu()", tensor(4, 4))


def test_large_reductions_are_done_in_parts() -> None:
    x = torch.abs(tensor(40000))
    ready = check("x: (x * 2).sum()", x, others=[[torch.abs(tensor(9))]], tolerance=1e-4)[0]
    assert len(ready.steps) == 2 and ready.steps[0].blocks > 1
    check("x: x.sum(0)", torch.abs(tensor(5000, 7)), tolerance=1e-4)
    check("x: x.argmin()", tensor(20000))


def test_long_rows_are_kept_outside_of_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "SHARED_ROOM", 500)
    (ready,) = check("x: torch.softmax(x, -1)", tensor(70, 300), tolerance=1e-4)
    assert [step.shape.in_shared for step in ready.steps] == [False]


def test_threads_at_different_barriers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team of half a warp's lanes that waits alone."""
    text = emulated._for_host

    def broken(given: str) -> str:
        return text(given).replace(
            "%other = xor i32 %tid, %distance",
            """%other = xor i32 %tid, %distance
  %odd = trunc i32 %tid to i1
  br i1 %odd, label %more, label %on
more:
  call void @"emulated.wait"(i32 2)
  br label %on
on:""",
        )

    monkeypatch.setattr(emulated, "_for_host", broken)
    with pytest.raises(emulated.Diverged):
        emulate(binding_of("x: x.sum(1) * 3.25", tensor(5, 77)), [tensor(5, 77)])


def test_a_missing_barrier_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one of the orders of threads, at the latest."""
    monkeypatch.setattr(teams.Team, "barrier", lambda self: None)
    with pytest.raises(AssertionError):
        check("x: x.sum(0) * 3.75", tensor(40, 70))


ONE_ROW = """
def total(x_size_0: i64, x: f32[...], out: Out[f32[...]]):
    first = allocate(f32[1])
    s: f32 = f32(0.0)
    for j in vector(x_size_0):
        s = reduce(add, x[j])
    first[0] = s
    t: f32 = f32(0.0)
    for j in vector(x_size_0):
        t = reduce(add, x[j] * first[0])
    out[0] = t
"""


@pytest.mark.parametrize("count", [20, 3000])
def test_all_threads_see_what_one_has_written_for_its_row(count: int) -> None:
    kernel = parse(ONE_ROW)
    binding = Binding(kernel, (TensorArgument("x", "f32", 1),), (Result("out", "f32", ()),))
    x = np.arange(count, dtype=np.float32) / count
    for backwards in (False, True):
        out, numbers = np.zeros(1, np.float32), numbers_of(binding, [x])
        ready = prepared(binding, numbers)
        emulated.run(ready, {"x": x, "out": out}, numbers, backwards=backwards)
        assert len(ready.steps) == 1 and ready.steps[0].shape.team > 1
        np.testing.assert_allclose(out[0], x.sum() ** 2, rtol=1e-5)


def test_arguments_of_other_sizes_have_other_shapes() -> None:
    binding = binding_of("x: torch.softmax(x, -1)", tensor(64, 100))
    shapes = []
    for x in (tensor(64, 100), tensor(64, 4)):
        ready = prepared(binding, numbers_of(binding, arrays_of([x])))
        shapes.append([step.shape.team for step in ready.steps])
    assert shapes[0] != shapes[1]


TRANSPOSED = ["x: (x.t() * 2).contiguous()", "x: x.t().contiguous() + x.t().exp()"]


@pytest.mark.parametrize("text", TRANSPOSED)
def test_what_is_read_across_is_done_in_tiles(text: str) -> None:
    shapes = ((40, 70), (32, 64), (5, 70), (17, 33), (64, 16))
    calls = [[tensor(*shape)] for shape in shapes]
    found = check(text, *calls[0], others=calls[1:])
    assert [step.shape.is_tiled for ready in found for step in ready.steps] == [True, True, False, True, True]


@pytest.mark.parametrize(("order", "is_tiled"), [("0, 2, 1", True), ("2, 0, 1", True), ("2, 1, 0", False)])
def test_tiles_among_other_dimensions(order: str, is_tiled: bool) -> None:
    (ready,) = check(f"x: (x.permute({order}) + 1).contiguous()", tensor(3, 33, 20))
    assert [step.shape.is_tiled for step in ready.steps] == [is_tiled]
