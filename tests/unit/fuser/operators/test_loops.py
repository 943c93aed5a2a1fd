"""Loops as machine code do what the same functions do in Python."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine.aten.stepwise import (
    choosing,
    converting,
    convolving,
    cumulative,
    filtering,
    normalizing,
    pooling,
    products,
    sampling,
    scattering,
    selecting,
)
from engine.aten.stepwise import language as written
from engine.aten.stepwise.language import COMPILER, Buffer, Loop, double, floor, like, loop, nearest, root, whole
from engine.fuser.backend import machine, tiering
from engine.fuser.groups.from_loop import Unreadable, kernel_of
from engine.fuser.operators import loops, slots

FLOAT = np.float32


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tiering.wait()
    monkeypatch.setattr(tiering, "mode", lambda: "eager")
    monkeypatch.setattr(written, "LEAST", 1)
    monkeypatch.setattr(COMPILER, "request", slots.entry_for)


def numbers(*shape: int, seed: int = 0, d: Any = FLOAT) -> np.ndarray[Any, Any]:
    """Some that are equal, some that are special."""
    found = np.random.default_rng(seed).normal(0, 3, shape).round(1).astype(d)
    if np.dtype(d).kind == "f":
        found.reshape(-1)[::17] = np.nan
    return found


def plain(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(FLOAT)


def places(below: int, *shape: int, low: int = 0, seed: int = 5) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, below, shape)


def zeros(*shape: int, d: Any = FLOAT) -> np.ndarray[Any, Any]:
    return np.zeros(shape, d)


_PLANES = (6, 3, 7, 6, 9, 8, 4, 7, 1, 1, 3, 2, 2, 1, 1, 1)
"""6 planes of 3 channels, 7 x 6 with one row and column around; kernels of 3 x 2 in steps of (2, 1): 4 x 7 places."""
_WINDOWS = (2, 7, 9, 3, 2, 2, 3, 1, 1, 4, 4)
"""2 planes of 7 x 9, windows of 3 x 2 in steps of (2, 3) with one row and column around: 4 x 4 of them."""
_STEPS = (6, 3, 7, 5, 9, 8, 4, 3, 1, 1, 3, 3, 2, 2, 1, 1)
_WIDER = (6, 3, 7, 6, 9, 8, 7, 3, 1, 1, 3, 3, 1, 2, 1, 1)
EXACT: dict[str, tuple[Loop, Callable[[], tuple[Any, ...]]]] = {
    "sums": (cumulative.sums, lambda: (plain(2, 5, 3), zeros(2, 5, 3), zeros(3, d=float), 2, 5, 3)),
    "products": (cumulative.products, lambda: (plain(2, 5, 3), zeros(2, 5, 3), zeros(3, d=float), 2, 5, 3)),
    "row_sums": (cumulative.row_sums, lambda: (plain(6, 9), zeros(6, 9), zeros(1, d=float), 6, 9)),
    "row_sums of whole numbers": (
        cumulative.row_sums, lambda: (places(9, 6, 9), zeros(6, 9, d=int), zeros(1, d=int), 6, 9)),
    "row_products": (cumulative.row_products, lambda: (plain(6, 9), zeros(6, 9), zeros(1, d=float), 6, 9)),
    "row_maxima": (cumulative.row_maxima, lambda: (numbers(3, 70), zeros(3, 70), zeros(3, 70, d=int), 3, 70)),
    "row_minima": (cumulative.row_minima, lambda: (numbers(3, 70), zeros(3, 70), zeros(3, 70, d=int), 3, 70)),
    "maxima": (cumulative.maxima, lambda: (numbers(2, 9, 4), zeros(2, 9, 4), zeros(2, 9, 4, d=int), 2, 9, 4)),
    "minima": (cumulative.minima, lambda: (numbers(2, 9, 4), zeros(2, 9, 4), zeros(2, 9, 4, d=int), 2, 9, 4)),
    "overdriven": (filtering.overdriven, lambda: (
        plain(3, 40), plain(3, 40, seed=1), plain(3), plain(3, seed=1), zeros(3, 40), 3, 40)),
    "add_rows": (
        scattering.add_rows, lambda: (plain(2, 4, 3), places(4, 5, low=-4), plain(2, 5, 3), 2, 4, 5, 3, -4)),
    "add_rows outside": (scattering.add_rows, lambda: (plain(2, 4, 3), places(5, 9), plain(2, 9, 3), 2, 4, 9, 3, 0)),
    "put_rows": (
        scattering.put_rows, lambda: (plain(2, 4, 3), places(4, 5, low=-4), plain(2, 5, 3), 2, 4, 5, 3, -4, 1)),
    "put_rows outside": (scattering.put_rows, lambda: (plain(2, 4, 3), places(4, 5) - 1, plain(1), 2, 4, 5, 3, 0, 0)),
    "put_each": (scattering.put_each, lambda: (plain(2, 4, 3), places(4, 2, 5, 3), plain(2, 5, 3), 2, 4, 5, 3, 1)),
    "put_each of one": (scattering.put_each, lambda: (plain(2, 4, 3), places(4, 2, 5, 3), plain(1), 2, 4, 5, 3, 0)),
    "put_chosen": (
        scattering.put_chosen, lambda: (plain(30), places(2, 30).astype(np.bool_), plain(30, seed=1), 30, 30)),
    "put_chosen of few": (
        scattering.put_chosen, lambda: (plain(30), places(2, 30).astype(np.bool_), plain(3, seed=1), 30, 3)),
    **{
        f"reduce_each {how} {includes}": (scattering.reduce_each, lambda how=how, includes=includes: (
            numbers(2, 4, 3), places(4, 2, 5, 3), numbers(2, 5, 3), 2, 4, 5, 3, how, includes))
        for how in range(4) for includes in range(2)
    },
    "average_each": (scattering.average_each, lambda: (
        plain(2, 4, 3), places(4, 2, 5, 3), plain(2, 5, 3), zeros(24, d=int), 2, 4, 5, 3, 0)),
    "greatest": (pooling.greatest, lambda: (
        numbers(2, 7, 9), zeros(2, 4, 4), zeros(2, 4, 4, d=int), 2, 7, 9, 3, 2, 2, 3, 1, 1, 4, 4)),
    "averages": (pooling.averages, lambda: (plain(2, 7, 9), zeros(2, 4, 4), *_WINDOWS, 1)),
    "averages without padding": (pooling.averages, lambda: (plain(2, 7, 9), zeros(2, 4, 4), *_WINDOWS, 0)),
    "averages_back": (
        pooling.averages_back, lambda: (plain(2, 4, 4), plain(2, 7, 9), zeros(2, 7, 9), *_WINDOWS, 1)),
    "put_back": (pooling.put_back, lambda: (plain(2, 5), plain(2, 9), places(9, 2, 5), zeros(2, 9), 2, 5, 9)),
    "put_back outside": (pooling.put_back, lambda: (plain(2, 5), plain(2, 9), places(12, 2, 5), zeros(2, 9), 2, 5, 9)),
    "padded": (pooling.padded, lambda: (plain(2, 3, 4), zeros(2, 6, 3), 2, 3, 4, 1, -2, 6, 3, 0.5)),
    "short_rows": (normalizing.short_rows, lambda: (
        plain(4, 5), plain(5), plain(5, seed=1), zeros(4, 5), zeros(4), zeros(4), 4, 5, 1, 1, 1e-5)),
    "short_rows_backward": (normalizing.short_rows_backward, lambda: (
        plain(4, 5), plain(4, 5, seed=1), plain(5), zeros(4, 5), zeros(5), zeros(5), 4, 5, 1, 1e-5)),
    "summed_rows": (scattering.summed_rows, lambda: (plain(5, 3), places(4, 5), zeros(4, 3), 4, 5, 3, 2)),
    "add_each": (scattering.add_each, lambda: (plain(2, 4, 3), places(4, 2, 5, 3), plain(2, 5, 3), 2, 4, 5, 3)),
    "add_each outside": (
        scattering.add_each, lambda: (plain(2, 4, 3), places(6, 2, 5, 3), plain(2, 5, 3), 2, 4, 5, 3)),
    "take_each": (scattering.take_each, lambda: (plain(2, 4, 3), places(4, 2, 5, 3), zeros(2, 5, 3), 2, 4, 5, 3)),
    "take_each outside": (
        scattering.take_each, lambda: (plain(2, 4, 3), places(4, 2, 5, 3, low=-2), zeros(2, 5, 3), 2, 4, 5, 3)),
    "sum_bags": (
        scattering.sum_bags, lambda: (plain(9, 4), places(9, 12), np.array([0, 5, 5, 12]), zeros(3, 4), 3, 4)),
    "sum_weighted_bags": (
        scattering.sum_weighted_bags,
        lambda: (plain(9, 4), places(9, 12), np.array([0, 5, 5, 12]), plain(12), zeros(3, 4), 3, 4)),
    "swap_each": (scattering.swap_each, lambda: (np.arange(50), places(1 << 32, 49), 50)),
    **{
        f"{way.function.__name__} of {name}": (way, lambda of=of, results=results, rest=rest: (
            of(2, 150, 3), *results(), zeros(300), zeros(300, d=int), 2, 150, 3, *rest))
        for name, of in (("numbers", lambda *sizes: numbers(*sizes).round(1)), ("few", lambda *s: plain(*s).round()))
        for way, results, rest in (
            (selecting.sorted_rows, lambda: (zeros(900), zeros(900, d=int)), (0,)),
            (selecting.sorted_rows, lambda: (zeros(900), zeros(900, d=int)), (1,)),
            (selecting.kth_of_rows, lambda: (zeros(6), zeros(6, d=int)), (11,)),
            (selecting.kth_that_is_there, lambda: (zeros(6), zeros(6, d=int)), (70,)),
            (selecting.medians, lambda: (zeros(6), zeros(6, d=int)), ()),
            (selecting.first_of_rows, lambda: (zeros(12), zeros(12, d=int)), (2, 1)),
            (selecting.first_of_rows, lambda: (zeros(120), zeros(120, d=int)), (20, 0)),
            (selecting.first_of_rows, lambda: (zeros(600), zeros(600, d=int)), (100, 1)),
        )
    },
    **{
        f"class_losses {reduction}": (choosing.class_losses, lambda reduction=reduction: (
            plain(2, 5, 3), places(5, 2, 3), zeros(6), 2, 5, 3, reduction, 1))
        for reduction in range(3)
    },
    "class_losses outside": (choosing.class_losses, lambda: (plain(2, 5), places(9, 2), zeros(2), 2, 5, 1, 0, 1)),
    **{
        f"class_slopes {reduction}": (choosing.class_slopes, lambda reduction=reduction: (
            plain(2, 3), plain(2, 5, 3), places(5, 2, 3), zeros(2, 5, 3), 2, 5, 3, reduction, 1))
        for reduction in range(3)
    },
    "sorted_places": (selecting.sorted_places, lambda: (
        numbers(4, 9), zeros(36, d=int), zeros(18), zeros(18, d=int), zeros(36), 4, 9, 1, 1)),
    "median_of_all": (selecting.median_of_all, lambda: (
        numbers(36), zeros(1), zeros(36), zeros(36, d=int), zeros(1, d=int), 1, 36, 1)),
    "stable_places": (selecting.stable_places, lambda: (
        plain(4, 9).round(), np.sort(plain(4, 9).round())[:, 3].copy(), zeros(4, d=int), 4, 9, 1, 3)),
    "in_pixels": (sampling.in_pixels, lambda: (plain(20, 2), zeros(20), zeros(20), 20, 5, 4, 0)),
    "in_pixels, aligned": (sampling.in_pixels, lambda: (plain(20, 2), zeros(20), zeros(20), 20, 5, 4, 1)),
    "around": (
        sampling.around,
        lambda: (plain(20) * 4, plain(20, seed=1) * 4, zeros(4, 20, d=int), zeros(4, 20), 20, 5, 4)),
    "corner_sums": (
        sampling.corner_sums,
        lambda: (plain(2, 3, 6), places(6, 4, 2, 5, low=-1), plain(4, 2, 5), zeros(2, 3, 5), 2, 3, 6, 4, 5)),
    "corners_back": (
        sampling.corners_back,
        lambda: (plain(2, 3, 5), places(6, 4, 2, 5, low=-1), plain(4, 2, 5), zeros(2, 3, 6), 2, 3, 6, 4, 5)),
    "corner_products": (
        sampling.corner_products,
        lambda: (plain(2, 3, 5), plain(2, 3, 6), places(6, 4, 2, 5, low=-1), zeros(4, 2, 5), 2, 3, 6, 4, 5)),
    "blended": (
        sampling.blended,
        lambda: (plain(2, 6, 3), places(5, 9), places(5, 9, seed=1), plain(9), plain(9, seed=1), zeros(2, 9, 3),
                 2, 6, 9, 3)),
    "blended, next to each other": (
        sampling.blended,
        lambda: (plain(4, 6), places(5, 9), places(5, 9, seed=1), plain(9), plain(9, seed=1), zeros(4, 9),
                 4, 6, 9, 1)),
    "whole_products": (
        products.whole_products, lambda: (places(99, 2, 3, 4), places(99, 2, 4, 5), zeros(2, 3, 5, d=int), 2, 3, 4, 5)),
    "convert to half": (converting.convert, lambda: (numbers(90) * FLOAT(1e-3), zeros(90, d=np.float16), 90)),
    "convert to bfloat16": (converting.convert, lambda: (plain(90), zeros(90, d=ml_dtypes.bfloat16), 90)),
    "convert from bfloat16": (converting.convert, lambda: (plain(90).astype(ml_dtypes.bfloat16), zeros(90), 90)),
}  # fmt: skip
CLOSE: dict[str, tuple[Loop, Callable[[], tuple[Any, ...]]]] = {
    "recursive": (filtering.recursive, lambda: (plain(4, 40), plain(2, 3) * FLOAT(0.3), zeros(4, 42), 4, 2, 40, 3)),
    "each_plane": (
        convolving.each_plane, lambda: (plain(6, 7, 6), plain(3, 3, 2), zeros(6, 4, 7), zeros(9, 8), *_PLANES)),
    "planes_and_bias": (convolving.planes_and_bias, lambda: (
        plain(6, 7, 6), plain(3, 3, 2), plain(3), zeros(6, 4, 7), plain(9, 8), *_PLANES, 1)),
    "each_plane, in steps": (
        convolving.each_plane, lambda: (plain(6, 7, 5), plain(3, 3, 3), zeros(6, 4, 3), zeros(9, 8), *_STEPS)),
    "each_plane, wider": (
        convolving.each_plane, lambda: (plain(6, 7, 6), plain(3, 3, 3), zeros(6, 7, 3), zeros(9, 8), *_WIDER)),
    "spread_each_plane": (
        convolving.spread_each_plane, lambda: (plain(6, 4, 7), plain(3, 3, 2), zeros(6, 7, 6), zeros(9, 8), *_PLANES)),
    "kernels_of_planes": (
        convolving.kernels_of_planes, lambda: (plain(6, 4, 7), plain(6, 7, 6), zeros(3, 3, 2), zeros(9, 8), *_PLANES)),
    "rows_backward": (
        normalizing.rows_backward,
        lambda: (plain(4, 9), plain(4, 9, seed=1), plain(9), zeros(4, 9), zeros(9), zeros(9), 4, 9, 1, 1e-5)),
    "groups_forward": (
        normalizing.groups_forward,
        lambda: (plain(2, 6, 5), plain(6), plain(6, seed=1), zeros(2, 6, 5), 4, 2, 3, 5, 1, 1, 1e-5)),
    "channels_forward": (
        normalizing.channels_forward,
        lambda: (plain(4, 3, 5), plain(3), plain(3, seed=1), zeros(3), zeros(3), zeros(4, 3, 5), zeros(3), zeros(3),
                 4, 3, 5, 1, 1, 1, 1, 1, 0.25, 1e-5)),
    "channels_backward": (
        normalizing.channels_backward,
        lambda: (plain(4, 3, 5), plain(4, 3, 5, seed=1), plain(3), zeros(3), zeros(3), zeros(4, 3, 5), zeros(3),
                 zeros(3), 4, 3, 5, 1, 1, 1e-5)),
    "groups_backward": (
        normalizing.groups_backward,
        lambda: (plain(2, 6, 5), plain(2, 6, 5, seed=1), plain(6), zeros(2, 6, 5), zeros(6), zeros(6),
                 4, 2, 3, 5, 1, 1e-5)),
    "rows_multiplied": (products.rows_multiplied, lambda: (plain(4, 9), zeros(4), 4, 9)),
    "distances": (products.distances, lambda: (plain(2, 3, 9), plain(2, 4, 9, seed=1), zeros(2, 3, 4), 2, 3, 4, 9, 0)),
    "distances, squares": (
        products.distances, lambda: (plain(2, 3, 9), plain(2, 4, 9, seed=1), zeros(2, 3, 4), 2, 3, 4, 9, 1)),
}  # fmt: skip


def in_python(function: Loop, args: tuple[Any, ...]) -> tuple[int, list[np.ndarray[Any, Any]]]:
    """What it returns and what its arrays hold afterwards."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    flat = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in given]
    with np.errstate(all="ignore"):
        returned = function(*flat)
    return returned or 0, [a for a in given if isinstance(a, np.ndarray)]


def in_machine_code(function: Loop, args: tuple[Any, ...]) -> tuple[int | None, list[np.ndarray[Any, Any]]]:
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    returned = function.run(1 << 12, *given)
    return returned, [a for a in given if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", EXACT)
def test_exact_loops_give_the_same_bits(name: str) -> None:
    function, make = EXACT[name]
    (expected, wanted), (found, written_) = in_python(function, make()), in_machine_code(function, make())
    assert found == expected, loops.refused()
    for a, b in zip(written_, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CLOSE)
def test_loops_that_add_in_any_order_come_close(name: str) -> None:
    function, make = CLOSE[name]
    (expected, wanted), (found, written_) = in_python(function, make()), in_machine_code(function, make())
    assert found == expected, loops.refused()
    for a, b in zip(written_, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def all_loops() -> Iterator[tuple[str, Loop]]:
    for module in (
        choosing,
        converting,
        convolving,
        filtering,
        normalizing,
        pooling,
        products,
        sampling,
        cumulative,
        scattering,
        selecting,
    ):
        for name, value in vars(module).items():
            if isinstance(value, Loop) and value.function.__module__ == module.__name__:
                yield name, value


def test_each_loop_that_kernels_run_is_tried_here() -> None:
    tried = {function.function.__name__ for function, _ in (EXACT | CLOSE).values()}
    parts = {"is_after", "is_before", "swap", "ordered", "keep_first", "insert_in_order", "part_around_kth", "outside",
             "together", "copy_in", "copy_phase", "place_in", "add_line", "add_three_lines", "spread_line",
             "line_product", "members", "total_of", "squares_of", "mean_of", "spread_of", "stepwise_mean",
             "stepwise_spread", "channel_mean", "channel_variance"}  # fmt: skip
    assert {name for name, _ in all_loops()} == tried | parts


# ------------------------------------------------------------------ the language


def test_the_language() -> None:
    source = loop(of_all_kinds)
    x, small = plain(40) * 5, places(9, 40).astype(np.uint8)
    args = (x, small, places(2, 40).astype(np.bool_), zeros(40), 40, 1.5)
    (expected, wanted), (found, got) = in_python(source, args), in_machine_code(source, args)
    assert found == expected, loops.refused()
    np.testing.assert_array_equal(got[3], wanted[3])


def of_all_kinds(x: Buffer, small: Buffer, flags: Buffer, result: Buffer, count: int, factor: float) -> int:
    steps = 0
    for i in range(count - 1, -1, -1):
        if not flags[i] or (x[i] > 0 and small[i] != 3):
            continue
        value = abs(x[i]) + like(x, whole(small[i]) * 2) - like(x, factor)
        value = floor(value) if small[i] % 2 == 0 else nearest(value * 0.5)
        if value != value:
            break
        result[i] = root(value * value) + like(x, whole(double(value) / 3) + (i << 1) // 3 - (-i))
        steps += 1
    while steps > 7:
        steps -= 7
    return steps


def mixes(x: Buffer, y: Buffer, count: int) -> None:
    for i in range(count):
        x[i] = x[i] + y[i]


def calls_others(x: Buffer, count: int) -> None:
    for i in range(count):
        x[i] = len(x)


def powers(x: Buffer, count: int) -> None:
    for i in range(count):
        x[i] = x[i] ** 0.5


def takes_a_list(x: list[int], count: int) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "kinds", "words"),
    [
        (mixes, (np.float32, np.float64), "f32 is not converted to f64"),
        (calls_others, (np.float32,), "no len in loops"),
        (powers, (np.float32,), "no Pow of f32"),
        (takes_a_list, (np.float32,), "neither Buffer nor int nor float"),
        (mixes, (np.complex64, np.complex64), "no arrays of complex64"),
    ],
)
def test_what_is_no_loop_is_refused(function: Any, kinds: tuple[Any, ...], words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        kernel_of(Loop(function), tuple(map(np.dtype, kinds)))


# ------------------------------------------------------------------ when


def double_each(x: Buffer, count: int) -> None:
    for i in range(count):
        x[i] = x[i] * 2


def test_a_loop_is_compiled_once_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    made = Loop(double_each)
    x = plain(10)
    assert made.run(loops.WORTH - 1, x, 10) is None
    assert made.run(loops.WORTH, x, 10) is None
    tiering.wait()
    before = x.copy()
    assert made.run(1, x, 10) == 0
    np.testing.assert_array_equal(x, before * 2)


def test_one_that_differs_in_bits_is_compiled_at_a_fixed_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "background")
    made = Loop(double_each, any_order=True, is_alike=False)
    assert made.run(loops.WORTH - 1, plain(10), 10) is None
    assert made.run(1, plain(10), 10) == 0


def test_nothing_is_compiled_where_native_code_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "mode", lambda: "off")
    made = Loop(double_each)
    assert made.run(1 << 30, plain(10), 10) is None
    monkeypatch.setattr(COMPILER, "request", None)
    assert made.run(1 << 30, plain(10), 10) is None


def test_without_llvm_kernels_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: Any, **kwargs: Any) -> Any:
        raise machine.MachineError("no llvmlite")

    monkeypatch.setattr(machine, "compile_program", missing)
    made = Loop(double_each)
    assert made.run(1 << 12, plain(10), 10) is None
    assert made.run(1 << 12, plain(10), 10) is None
    assert loops.refused()["double_each", (np.dtype(FLOAT),)] == "no llvmlite"


def test_arrays_that_machine_code_cannot_read_are_left_to_numpy() -> None:
    made = Loop(double_each)
    assert made.run(1 << 12, plain(10, 2)[:, 0], 10) is None
    assert made.run(1 << 12, [1.0], 1) is None


def test_a_compiler_takes_the_slots_of_eager_calls() -> None:
    text = (
        "import engine.torch as torch\nfrom engine.aten.stepwise.language import COMPILER\n"
        "from engine.aten.values.hooks import HOOKS\ntorch.ones(2) + 1\n"
        "assert COMPILER.request is not None and HOOKS.native is not None\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
