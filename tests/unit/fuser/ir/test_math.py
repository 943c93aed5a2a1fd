"""Functions that are written in kernel IR: their errors, their special values, and that loops with them are vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from engine.fuser.backend import machine
from engine.fuser.ir import math as written
from engine.fuser.ir.kernel import (
    FLOATS,
    FUNCTIONS,
    WHOLE,
    Buffer,
    For,
    Kernel,
    Load,
    Name,
    Scalar,
    Store,
    apply,
    index,
)

pytest.importorskip("llvmlite")
Array = npt.NDArray[Any]
N, INDEX = Name("n", "i64"), Name("i", "i64")
DTYPES: Final[dict[str, Any]] = {
    "f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u8": np.uint8,
}  # fmt: skip


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(lambda x: function(float(x)), otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


REFERENCES: Final[dict[str, Callable[..., Array]]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sigmoid": _sigmoid, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": _each(math.erf), "erfc": _each(math.erfc), "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan2": np.arctan2,
    "pow": np.power,
}  # fmt: skip
WRITTEN: Final = [(name, type) for name in REFERENCES for type in FLOATS if written.function(name, type) is not None]
NEAR_X: Final = ("expm1", "log1p", "tanh", "sinh", "asinh", "atanh", "erf", "asin", "atan", "sin", "tan")
"""Functions that are about x near 0; all but the first two are odd."""


def kernel_of(name: str, type: str) -> Kernel:
    """A loop that applies the function to buffers."""
    inputs = [Buffer(each, type, (N,)) for each in "xy"[: FUNCTIONS[name].operands]]
    value = apply(name, *(Load(each.name, (INDEX,), type) for each in inputs))
    body = For("i", index(0), N, (Store("out", (INDEX,), value),), kind="vector")
    return Kernel(f"{name}_loop", (Scalar("n", "i64"), *inputs, Buffer("out", type, (N,), access="out")), (body,))


def applied(name: str, *operands: Array) -> Array:
    """The function of arrays, as machine code."""
    type = next(each for each, dtype in DTYPES.items() if operands[0].dtype == dtype)
    out = np.empty_like(operands[0])
    assert machine.callable_kernel(kernel_of(name, type))(out.size, *operands, out) == 0
    return out


def specials(dtype: Any) -> list[float]:
    facts = np.finfo(dtype)
    found = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, float(facts.max), float(facts.tiny), float(facts.smallest_subnormal)]
    return [*found, *(-each for each in found), math.inf, -math.inf, math.nan]


def samples(type: str, seed: int, count: int = 20_000) -> Array:
    """Numbers of all sizes, of common sizes, near 1, within the range of exp, and special ones."""
    facts, rng = np.finfo(DTYPES[type]), np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(np.log10(float(facts.smallest_subnormal)), np.log10(float(facts.max)), count)
    ranges = [rng.uniform(-end, end, count) for end in (1, 3, 30, 110 if type == "f32" else 750)]
    near_one = 1 + rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-16, -1, count)
    found = np.concatenate([sizes * rng.choice([-1, 1], count), *ranges, near_one, specials(DTYPES[type])])
    return found.astype(DTYPES[type])


def operands_of(name: str, type: str) -> list[Array]:
    if FUNCTIONS[name].operands == 1:
        return [samples(type, 0)]
    rng = np.random.default_rng(2)
    pairs = np.meshgrid(*(np.array(specials(DTYPES[type])),) * 2)
    common = (rng.uniform(0, 20, 20_000), rng.uniform(-30, 30, 20_000))
    every = (samples(type, 0), rng.permutation(samples(type, 1)))
    return [
        np.concatenate([a, p.ravel(), c]).astype(DTYPES[type]) for a, p, c in zip(every, pairs, common, strict=True)
    ]


@pytest.mark.parametrize(("name", "type"), WRITTEN)
def test_errors_and_special_values(name: str, type: str) -> None:
    operands = operands_of(name, type)
    found = applied(name, *operands)
    wide = np.float64 if type == "f32" else np.longdouble
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](*(each.astype(wide) for each in operands))
        expected = exact.astype(DTYPES[type])
        is_finite = np.isfinite(expected) & np.isfinite(found)
        ulps = np.abs(found.astype(wide) - exact)[is_finite] / np.spacing(np.abs(expected[is_finite]))
    of_reference = 1 if wide == np.longdouble and name in ("erf", "erfc") else 0  # which has only f64
    assert ulps.max() <= (2 if type == "f32" else 4) + of_reference
    np.testing.assert_array_equal(found[~is_finite], expected[~is_finite])
    is_zero = (expected == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[is_zero]), np.signbit(expected[is_zero]))


@pytest.mark.parametrize(("name", "type"), [each for each in WRITTEN if each[0] in NEAR_X])
def test_near_zero_functions_are_x(name: str, type: str) -> None:
    tiny = (10.0 ** np.random.default_rng(0).uniform(-40, -12, 1000)).astype(DTYPES[type])
    tiny *= 1 if type == "f32" else 1e-8
    slope = 2 / math.sqrt(math.pi) if name == "erf" else 1.0
    np.testing.assert_array_max_ulp(applied(name, tiny), (tiny * slope).astype(tiny.dtype), 2)
    x = samples(type, 3)
    if name not in ("expm1", "log1p"):
        np.testing.assert_array_equal(applied(name, -x), -applied(name, x))


@pytest.mark.parametrize("type", FLOATS)
def test_results_stay_within_their_ranges(type: str) -> None:
    x = samples(type, 4)
    x = x[~np.isnan(x)]
    for name, low, high in (("tanh", -1, 1), ("erf", -1, 1), ("sigmoid", 0, 1), ("erfc", 0, 2), ("exp", 0, math.inf)):
        found = applied(name, x)
        assert low <= found.min() <= found.max() <= high


@pytest.mark.parametrize("type", [*FLOATS, *WHOLE])
def test_division_rounds_down_as_pythons(type: str) -> None:
    rng = np.random.default_rng(5)
    if type in FLOATS:
        x, y = (rng.choice([*rng.uniform(-9, 9, 99), 0.5, 1, 2, -3, 0.1], 5000).astype(DTYPES[type]) for _ in range(2))
    else:
        facts = np.iinfo(DTYPES[type])
        ends = [facts.max, facts.min, 1, 2, 3, 5, facts.max // 2]
        x, y = (rng.choice(np.array(ends, DTYPES[type]), 5000) for _ in range(2))
        y = np.where(y == 0, DTYPES[type](7), y)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    np.testing.assert_array_equal(applied("mod", x, y), np.array([a % b for a, b in pairs]).astype(x.dtype))
    np.testing.assert_array_equal(applied("floordiv", x, y), np.array([a // b for a, b in pairs]).astype(x.dtype))


@pytest.mark.parametrize(("name", "type"), WRITTEN)
def test_loops_are_vectorized(name: str, type: str) -> None:
    kernel = kernel_of(name, type)
    code = machine.compile_program(machine.program(kernel))
    lanes = [f"<{width} x {'float' if type == 'f32' else 'double'}>" for width in (2, 4, 8, 16)]
    assert any(f"store {each}" in code.llvm_after for each in lanes)


def test_what_is_not_written_is_a_primitive_or_the_librarys() -> None:
    for name in REFERENCES.keys() | {"lgamma", "fmod", "floordiv", "mod"}:
        for type in FLOATS:
            assert (written.function(name, type) is None) == ((name, type) in written.LIBM)
    assert written.function("add", "f32") is None
