"""Numbers in LLVM: types, constants, and those functions of numbers that are instructions.

In: `llvmlite.ir` values, through the `Emitter` of the function that they belong to (`to_llvm`).  Out: values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes

from engine.fuser.ir.kernel import BOOL, FLOATS, HALVES, POINTER, SIZES, VECTORS, WHOLE, lanes_of

if TYPE_CHECKING:
    from engine.fuser.backend.to_llvm import Emitter

Value = Any
"""An `llvmlite.ir` value."""


@cache
def ir() -> Any:
    """The module `llvmlite.ir`, imported when first needed."""
    return import_module("llvmlite.ir")


def type_of(name: str) -> Any:
    """The LLVM type in which values of a type are computed with."""
    lib = ir()
    if name == POINTER:
        return lib.PointerType()
    if name == BOOL:
        return lib.IntType(1)
    if name in WHOLE:
        return lib.IntType(8 * SIZES[name])
    if name in VECTORS:
        element, lanes = VECTORS[name]
        return lib.VectorType(type_of(element), lanes)
    return {"f32": lib.FloatType, "f64": lib.DoubleType, "f16": lib.HalfType, "bf16": lambda: lib.IntType(16)}[name]()


def stored_type(name: str) -> Any:
    """The LLVM type of elements in memory, and of parameters."""
    return ir().IntType(8) if name == BOOL else type_of(name)


def constant(value: float, type: str) -> Value:
    """A constant as LLVM has it; of bf16 its bits."""
    lib = ir()
    if type == "bf16":
        return lib.IntType(16)(int(ml_dtypes.bfloat16(value).view("u2")))
    return lib.Constant(type_of(type), value if type in (*FLOATS, "f16") else int(value))


# ------------------------------------------------------------------ functions of numbers

Primitive = Callable[["Emitter", Sequence[Value], str, str], Value]
"""From an emitter, operands, their type and the type of the result."""


def _arithmetic(whole: str, real: str) -> Primitive:
    def emit(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
        if type in FLOATS or type in VECTORS:
            return getattr(e.builder, real)(*given, flags=e.flags)
        return getattr(e.builder, whole)(*given)

    return emit


def _comparison(sign: str) -> Primitive:
    def emit(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
        if type in FLOATS or type in VECTORS:
            return e.builder.fcmp_unordered(sign, *given) if sign == "!=" else e.builder.fcmp_ordered(sign, *given)
        compare = e.builder.icmp_unsigned if type in ("u8", BOOL) else e.builder.icmp_signed
        return compare(sign, *given)

    return emit


def _extreme(sign: str) -> Primitive:
    """The first operand if it compares so with the second, or is NaN."""

    def emit(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
        a, b = given
        found = e.builder.select(_comparison(sign)(e, given, type, BOOL), a, b)
        return e.builder.select(e.builder.fcmp_unordered("uno", a, a), a, found) if type not in WHOLE else found

    return emit


def _real(name: str) -> Primitive:
    return lambda e, given, type, result: e.intrinsic(name, type, *given)


def _built(name: str) -> Primitive:
    return lambda e, given, type, result: getattr(e.builder, name)(*given)


def _unsigned(signed: str, unsigned: str) -> Primitive:
    return lambda e, given, type, result: getattr(e.builder, unsigned if type == "u8" else signed)(*given)


def _negated(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
    return e.builder.fneg(*given) if type in FLOATS else e.builder.neg(*given)


def _absolute(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
    (x,) = given
    if type in FLOATS:
        return e.intrinsic("fabs", type, x)
    return x if type == "u8" else e.builder.select(e.builder.icmp_signed("<", x, x.type(0)), e.builder.neg(x), x)


def _bits(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
    return e.builder.bitcast(given[0], type_of(result))


def _select(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
    return e.builder.select(*given)


def _convert(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
    return converted(e, given[0], type, result)


def converted(e: Emitter, value: Value, type: str, result: str) -> Value:
    """The value in another type, see `kernel.FUNCTIONS`."""
    if type == result:
        return value
    if result in VECTORS:
        return _repeated(e, value, result)
    if type in HALVES:
        return converted(e, _widened(e, value, type), "f32", result)
    if result in HALVES:
        return _narrowed(e, value, type, result)
    if result == BOOL:
        zero = constant(0, type)
        return (
            e.builder.fcmp_unordered("!=", value, zero) if type in FLOATS else e.builder.icmp_signed("!=", value, zero)
        )
    if type in FLOATS:
        return _from_real(e, value, type, result)
    if result in FLOATS:
        return (e.builder.uitofp if type in ("u8", BOOL) else e.builder.sitofp)(value, type_of(result))
    if SIZES[result] < SIZES[type]:
        return e.builder.trunc(value, type_of(result))
    if type == BOOL or (SIZES[result] > SIZES[type] and type == "u8"):
        return e.builder.zext(value, type_of(result))
    return value if SIZES[result] == SIZES[type] else e.builder.sext(value, type_of(result))


def _repeated(e: Emitter, value: Value, result: str) -> Value:
    """A vector of this value."""
    lib, type = ir(), type_of(result)
    none = lib.Constant(type, lib.Undefined)
    first = e.builder.insert_element(none, value, lib.IntType(32)(0))
    return e.builder.shuffle_vector(first, none, lib.Constant(lib.VectorType(lib.IntType(32), lanes_of(result)), None))


def _zipped(start: int) -> Primitive:
    """Elements of two vectors by turns, from the first half or, where `start` is 1, from the second."""

    def emit(e: Emitter, given: Sequence[Value], type: str, result: str) -> Value:
        lanes, whole = lanes_of(type), ir().IntType(32)
        first = start * lanes // 2
        mask = [whole(place + other) for place in range(first, first + lanes // 2) for other in (0, lanes)]
        return e.builder.shuffle_vector(*given, ir().Constant(ir().VectorType(whole, lanes), mask))

    return emit


def _from_real(e: Emitter, value: Value, type: str, result: str) -> Value:
    if result in FLOATS:
        return (e.builder.fpext if result == "f64" else e.builder.fptrunc)(value, type_of(result))
    if result != "u8":
        return _cut(e, value, type, 8 * SIZES[result])
    return e.builder.call(e.declared(f"llvm.fptoui.sat.i8.{type}", [value.type], type_of(result)), [value])


def _cut(e: Emitter, value: Value, type: str, bits: int) -> Value:
    """The result of `llvm.fptosi.sat`, which LLVM gets number by number on x86-64."""
    whole, limit = ir().IntType(bits), value.type(2.0 ** (bits - 1))
    is_positive = e.builder.fcmp_ordered(">", value, value.type(0.0))
    end = e.builder.select(is_positive, whole(2 ** (bits - 1) - 1), whole(-(2 ** (bits - 1))))
    outside = e.builder.select(e.builder.fcmp_unordered("uno", value, value), whole(0), end)
    is_inside = e.builder.fcmp_ordered("<", e.intrinsic("fabs", type, value), limit)
    return e.builder.select(is_inside, e.builder.fptosi(value, whole), outside)


def _widened(e: Emitter, value: Value, type: str) -> Value:
    lib = ir()
    if type == "f16":
        return e.builder.fpext(value, lib.FloatType())
    high = e.builder.shl(e.builder.zext(value, lib.IntType(32)), lib.IntType(32)(16))
    return e.builder.bitcast(high, lib.FloatType())


def _narrowed(e: Emitter, value: Value, type: str, result: str) -> Value:
    lib = ir()
    value = converted(e, value, type, "f32")
    if result == "f16":
        _define_rounding_of_doubles(e.module)
        return e.builder.fptrunc(value, lib.HalfType())
    whole = lib.IntType(32)
    bits = e.builder.bitcast(value, whole)
    odd = e.builder.and_(e.builder.lshr(bits, whole(16)), whole(1))  # of two values equally near, the even one
    rounded = e.builder.add(e.builder.add(bits, whole(0x7FFF)), odd)
    is_nan = e.builder.fcmp_unordered("uno", value, value)
    kept = e.builder.select(is_nan, whole(0x7FC00000), rounded)
    return e.builder.trunc(e.builder.lshr(kept, whole(16)), lib.IntType(16))


def _define_rounding_of_doubles(module: Any) -> None:
    """Define the function that LLVM calls where it makes one step of two, from f64 through f32 to f16.

    The f32 between has its last bit set unless it is exact, so that the second step rounds as one alone would.
    """
    lib, name = ir(), "__truncdfhf2"
    if name in module.globals:
        return
    whole = lib.IntType(32)
    function = lib.Function(module, lib.FunctionType(lib.HalfType(), [lib.DoubleType()]), name)
    function.linkage = "weak"  # modules that are linked each have it
    (value,) = function.args
    builder = lib.IRBuilder(function.append_basic_block("entry"))
    near = builder.fptrunc(value, lib.FloatType())
    again = builder.fpext(near, lib.DoubleType())
    bits = builder.bitcast(near, whole)
    size = [builder.and_(builder.bitcast(each, lib.IntType(64)), lib.IntType(64)(2**63 - 1)) for each in (again, value)]
    is_beyond = builder.icmp_unsigned(">", *size)
    odd = builder.or_(builder.sub(bits, builder.zext(is_beyond, whole)), whole(1))
    is_exact = builder.fcmp_unordered("==", again, value)
    builder.ret(builder.fptrunc(builder.bitcast(builder.select(is_exact, bits, odd), lib.FloatType()), lib.HalfType()))


PRIMITIVES: Final[dict[str, Primitive]] = {
    "add": _arithmetic("add", "fadd"), "sub": _arithmetic("sub", "fsub"), "mul": _arithmetic("mul", "fmul"),
    "div": _arithmetic("", "fdiv"), "neg": _negated, "abs": _absolute, "minimum": _extreme("<"),
    "maximum": _extreme(">"), "quotient": _unsigned("sdiv", "udiv"), "rest": _unsigned("srem", "urem"),
    "shift_left": _built("shl"), "shift_right": _unsigned("ashr", "lshr"), "shift_right_logical": _built("lshr"),
    "bitand": _built("and_"), "bitor": _built("or_"), "bitxor": _built("xor"), "bitnot": _built("not_"),
    "eq": _comparison("=="), "ne": _comparison("!="), "lt": _comparison("<"), "le": _comparison("<="),
    "gt": _comparison(">"), "ge": _comparison(">="), "floor": _real("floor"), "ceil": _real("ceil"),
    "trunc": _real("trunc"), "round": _real("roundeven"), "sqrt": _real("sqrt"), "copysign": _real("copysign"),
    "fma": _real("fma"), "muladd": _real("fmuladd"), "zip_low": _zipped(0), "zip_high": _zipped(1),
    "select": _select, "convert": _convert, "bits_to_f32": _bits, "bits_of_f32": _bits,
    "bits_to_f64": _bits, "bits_of_f64": _bits,
}  # fmt: skip
