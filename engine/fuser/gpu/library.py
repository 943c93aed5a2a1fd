"""Functions of the C library's mathematics, for a GPU, which has no such library.

In: a module that calls them.  Out: their bodies in the module, but for those that are `REFUSED`.

Note [Remainders]
`fmod` takes the divisor times the greatest power of two that fits off what is left, until nothing fits.  Each
subtraction is exact, as its operands are within a factor of two; in f64 so are the multiples of every f32.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, Final

from engine.fuser.backend.llvm_numbers import Value, ir
from engine.fuser.ir.math import LIBM

_MANTISSA: Final = 52
_BIAS: Final = 1023


def define(made: Any) -> None:
    """Give a body to each function that is called and can have one."""
    for symbol, write in _BODIES.items():
        function = made.globals.get(symbol)
        if function is not None:
            function.linkage = "internal"
            write(function, ir().IRBuilder(function.append_basic_block("entry")))


def _fmod(function: Any, b: Any) -> None:
    lib, (x, y) = ir(), function.args
    double = lib.DoubleType()
    head, body, done, wrong = (function.append_basic_block() for _ in range(4))
    absolute = b.module.declare_intrinsic("llvm.fabs", [double])
    begin, divisor = (b.call(absolute, [b.fpext(each, double)]) for each in (x, y))
    is_finite = b.fcmp_ordered("<", begin, lib.Constant(double, inf))
    b.cbranch(b.and_(is_finite, b.fcmp_ordered(">", divisor, lib.Constant(double, 0.0))), head, wrong)
    entry = b.block

    b.position_at_end(head)
    left = b.phi(double)
    left.add_incoming(begin, entry)
    b.cbranch(b.fcmp_ordered(">=", left, divisor), body, done)

    b.position_at_end(body)
    left.add_incoming(b.fsub(left, _greatest_multiple(b, left, divisor)), body)
    b.branch(head)

    b.position_at_end(done)
    single = lib.FloatType()
    copysign = b.module.declare_intrinsic("llvm.copysign", [single], lib.FunctionType(single, [single, single]))
    b.ret(b.call(copysign, [b.fptrunc(left, single), x]))
    b.position_at_end(wrong)
    b.ret(lib.Constant(single, nan))


def _greatest_multiple(b: Any, left: Value, divisor: Value) -> Value:
    """The divisor times the greatest power of two that gives no more than is left; there is at least the divisor."""
    lib = ir()
    double, whole = lib.DoubleType(), lib.IntType(64)
    exponents = (b.lshr(b.bitcast(each, whole), whole(_MANTISSA)) for each in (left, divisor))
    power = b.shl(b.add(b.sub(*exponents), whole(_BIAS)), whole(_MANTISSA))
    multiple = b.fmul(divisor, b.bitcast(power, double))
    half = b.fmul(multiple, lib.Constant(double, 0.5))
    return b.select(b.fcmp_ordered(">", multiple, left), half, multiple)


_BODIES: Final[dict[str, Callable[[Any, Any], None]]] = {"fmodf": _fmod}
REFUSED: Final = LIBM - {("fmod", "f32")}
"""The functions that have none, with the types of their operands."""
