"""Two ways to run one call, compared: a function that was compiled, and the interpreter.

In: the function, the code that says what it has to do, the arguments.  Out: the interpreter's result, and the first
difference as text.  What both may write to is put back in between: arguments and all that they hold, the generators of
random numbers, the modes of the thread.  What the function prints is not shown.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, Final

import numpy as np

from engine.aten.kernels.random import Generator
from engine.aten.values import xp
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.debugging.undo import keep_modes, keep_random, keep_reachable
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.verifying import NOT_TAKEN
from engine.lang.records import dataclass

TOLERANCES: Final[Mapping[int, tuple[float, float]]] = {8: (1e-8, 1e-10), 4: (1e-4, 1e-5), 2: (2e-2, 2e-2)}
"""The parts of an element, and of the greatest one of its tensor, that may be other, by the bytes of a real number."""


def compared(run: Callable[..., Any], code: Code, args: Sequence[Any]) -> tuple[Any, str]:
    """The interpreter's result of the call, and how `run` differs from it, empty if it does not; `NOT_TAKEN` where
    `run` gives that.  Raises what the interpreter raises."""
    inputs = args[: len(code.graph.inputs)]
    kept = [*keep_reachable(inputs), keep_random(), keep_modes()]
    kept += [keep_random(each) for each in inputs if isinstance(each, Generator)]
    found: Any = None
    failure = ""
    try:
        with redirect_stdout(io.StringIO()):
            result = run(*args)
        if result is NOT_TAKEN:
            return NOT_TAKEN, ""
        found = shown((result, inputs))
    except Exception as error:
        failure = f"it raises {type(error).__name__}: {error}"
    finally:
        for each in reversed(kept):
            each.restore()
    wanted = InterpreterState(code).run(*inputs)
    return wanted, failure or next(differences(found, shown((wanted, inputs)), ""), "")


# ------------------------------------------------------------------ values as they are now


@dataclass(frozen=True, slots=True)
class _ShownTensor:
    """A tensor as it was: its elements, and how they lay in memory."""

    elements: Any
    strides: tuple[int, ...]
    requires_grad: bool


def shown(value: Any) -> Any:
    """A copy of the value as plain tuples and arrays, which later writes do not change."""
    return _Shown().of(value)


class _Shown:
    """Copies of values, each object once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def of(self, value: Any) -> Any:
        """The copy: a `_ShownTensor`, a tuple of what is inside, or the value itself."""
        if isinstance(value, Tensor):
            return _ShownTensor(value.array.copy(), value.array.strides, value.requires_grad)
        if not isinstance(value, (list, tuple, dict, Object)):
            return value
        if id(value) in self._seen:
            return ...
        self._seen.add(id(value))
        inside = value.slots if isinstance(value, Object) else value.items() if isinstance(value, dict) else value
        return tuple(map(self.of, [*inside]))


def differences(found: Any, wanted: Any, place: str) -> Iterator[str]:
    """The differences of two copies, at places as `[0][1]`: of the result first, then of the arguments."""
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        if len(found) != len(wanted):
            yield f"{_named(place)} has {len(found)} parts, not {len(wanted)}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif isinstance(wanted, _ShownTensor) and isinstance(found, _ShownTensor):
        yield from (f"{_named(place)} {text}" for text in _of_tensors(found, wanted))
    elif type(found) is not type(wanted):
        yield f"{_named(place)} is a {type(found).__name__}, not a {type(wanted).__name__}"
    elif isinstance(wanted, (int, str, bytes, float, complex)) and not _are_near(np.asarray(found), np.asarray(wanted)):
        yield f"{_named(place)} is {found!r}, not {wanted!r}"


def _named(place: str) -> str:
    """`[0]` is the result, `[1]` the arguments."""
    kind, rest = ("an argument", place[3:]) if place.startswith("[1]") else ("the result", place[3:])
    return f"{kind} ({rest})" if rest else kind


def _of_tensors(found: _ShownTensor, wanted: _ShownTensor) -> Iterator[str]:
    a, b = found.elements, wanted.elements
    if a.dtype != b.dtype:
        yield f"has dtype {a.dtype}, not {b.dtype}"
    elif a.shape != b.shape:
        yield f"has sizes {[*a.shape]}, not {[*b.shape]}"
    elif not _are_near(a, b):
        yield f"differs: {_greatest(a, b)}"
    elif _matter(found, a) != _matter(wanted, b) and _has_no_gaps(wanted):
        yield f"has strides {[*found.strides]} in bytes, not {[*wanted.strides]}"
    elif found.requires_grad != wanted.requires_grad:
        yield f"{'requires' if found.requires_grad else 'does not require'} grad"


def _are_near(a: Any, b: Any) -> bool:
    """True of equal numbers and of floats that are as near as kernels come."""
    if b.dtype not in xp.INEXACT:
        return bool(np.array_equal(a, b))
    wide = np.complex128 if b.dtype in xp.COMPLEX else np.float64
    relative, greatest = TOLERANCES[xp.PART_OF.get(b.dtype, b.dtype).itemsize]
    x, y = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
    sizes = np.abs(y[np.isfinite(y)])
    least = greatest * float(sizes.max(initial=0.0))
    return bool(np.allclose(x, y, rtol=relative, atol=max(least, greatest * 1e-3), equal_nan=True))


def _greatest(a: Any, b: Any) -> str:
    """The place where two arrays differ most."""
    if a.dtype not in xp.REAL | xp.COMPLEX:
        return f"{int(np.sum(a != b))} of {a.size} elements"
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.complex128) - b.astype(np.complex128))
    at = np.unravel_index(int(np.argmax(np.nan_to_num(apart, nan=np.inf))), a.shape)
    return f"{a[at]} at {[*map(int, at)]}, not {b[at]}"


def _matter(shown: _ShownTensor, array: Any) -> tuple[int, ...]:
    """The strides of dimensions in which there is more than one element."""
    return (
        tuple(stride for stride, size in zip(shown.strides, array.shape, strict=True) if size > 1) if array.size else ()
    )


def _has_no_gaps(shown: _ShownTensor) -> bool:
    """True if the elements fill a piece of memory; of others kernels make results that do."""
    array, step = shown.elements, shown.elements.itemsize
    for stride, size in sorted(zip(shown.strides, array.shape, strict=True)):
        if size > 1:
            if stride != step:
                return False
            step *= size
    return True
