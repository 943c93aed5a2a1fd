"""Random tensors.  In: sizes, parameters, perhaps a generator.  Out: arrays from the generator's stream."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.devices import philox
from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.dispatch.wrapping import overwrite, store_out
from engine.aten.kernels import shapes
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.random import Generator, generator
from engine.aten.kernels.rules import broadcast_shapes, c_name, no_kernel
from engine.aten.ops.creation import FORMAT, OPTIONS, check_device, check_size
from engine.aten.ops.shape import expand
from engine.aten.values import xp
from engine.aten.values.promotion import default_dtype, result_type, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

Draw = Callable[[Generator, tuple[int, ...], xp.NumpyDtype], Array]
INT_OPTIONS: Final = OPTIONS.replace("dtype=None", "dtype=4")


def _uniform(source: Generator, shape: tuple[int, ...], d: xp.NumpyDtype) -> Array:
    if d in xp.COMPLEX:
        return _pairs(source.uniform((*shape, 2), xp.PART_OF[d]), d)
    if d not in xp.FLOATING:
        raise no_kernel("check_uniform_bounds", d)
    return source.uniform(shape, wide(d)).astype(d, copy=False)


def _normal(source: Generator, shape: tuple[int, ...], d: xp.NumpyDtype) -> Array:
    """Of variance 1; a complex number's parts have half of it each."""
    if d in xp.COMPLEX:
        return _pairs(source.normal((*shape, 2), xp.PART_OF[d]) * np.sqrt(0.5).astype(xp.PART_OF[d]), d)
    if 0 in shape:
        return np.empty(shape, d)
    if d not in xp.FLOATING:
        raise no_kernel("normal_kernel_cpu", d)
    return source.normal(shape, d)


def _pairs(parts: Array, d: xp.NumpyDtype) -> Array:
    """Real and imaginary parts side by side, as complex numbers."""
    return np.ascontiguousarray(parts).view(d).reshape(parts.shape[:-1])


def filler(name: str, draw: Draw) -> None:
    """Register `name` with its generator, out= and like forms."""

    def plain(size: Sequence[int], dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Array:
        return seeded(size, None, dtype, layout, device, pin_memory)

    def seeded(size: Sequence[int], source: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Array:
        check_device(device)
        d = default_dtype() if dtype is None else xp.numpy_dtype(dtype)
        return draw(generator(source), check_size(size, d), d)

    def seeded_out(size: Sequence[int], source: Any, out: Tensor) -> Tensor:
        store_out(out, draw(generator(source), check_size(size), out.array.dtype))
        return out

    def seeded_like(self: Array, source: Any, dtype: Any, layout: Any, device: Any, pin: Any, fmt: Any) -> Array:
        check_device(device)
        return draw(generator(source), self.shape, self.dtype if dtype is None else xp.numpy_dtype(dtype))

    def seeded_like_out(self: Tensor, source: Any, memory_format: Any, out: Tensor) -> Tensor:
        return seeded_out(self.array.shape, source, out)

    _register(f"{name}(SymInt[] size, *, {OPTIONS}) -> Tensor", kernel=plain, shape=shapes.created, dtype="default")
    _register(f"{name}.generator(SymInt[] size, *, Generator? generator, {OPTIONS}) -> Tensor", kernel=seeded,
              shape=shapes.created, dtype="default")  # fmt: skip
    _register(f"{name}.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
              python=lambda size, out: seeded_out(size, None, out), shape=shapes.created, dtype="default")  # fmt: skip
    _register(f"{name}.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
              python=seeded_out, shape=shapes.created, dtype="default")  # fmt: skip
    _register(f"{name}_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor",
              kernel=lambda self, *options: seeded_like(self, None, *options), shape="self")  # fmt: skip
    _register(f"{name}_like.generator(Tensor self, *, Generator? generator, {OPTIONS}, {FORMAT}) -> Tensor",
              kernel=seeded_like, shape="self")  # fmt: skip
    _register(f"{name}_like.out(Tensor self, *, {FORMAT}, Tensor(a!) out) -> Tensor(a!)",
              python=lambda self, memory_format, out: seeded_like_out(self, None, memory_format, out),
              shape="self")  # fmt: skip
    _register(f"{name}_like.generator_out(Tensor self, *, Generator? generator, {FORMAT}, Tensor(a!) out) "
              "-> Tensor(a!)",
              python=seeded_like_out, shape="self")  # fmt: skip


def _register(text: str, **facts: Any) -> None:
    """Gradients of random operators: zero for tensors that are filled or that parametrize the distribution."""
    formula = "None" if "_like" in text else "zeros_like(grad)"
    given = [] if "(a!) out" in text else re.findall(r"Tensor(?:\(a!\))? (\w+)", text.partition(" -> ")[0])
    facts.setdefault("gradient", dict.fromkeys(given, formula))
    op(f"aten::{text}", nondeterministic=True, **facts)


filler("rand", _uniform)
filler("randn", _normal)

# ------------------------------------------------------------------ whole numbers


def _integers(low: int, high: int, size: Sequence[int], source: Any, d: xp.NumpyDtype) -> Array:
    if low >= high:
        raise OperatorError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if d in xp.COMPLEX:
        raise OperatorDtypeError("check_random_bounds handles only integral, floating-point and boolean types")
    largest = 1 if d == xp.BOOL else int(np.iinfo(d).max) if d in xp.INTEGERS else None
    if largest is not None and not (low <= largest and high - 1 <= largest):
        bound = "from" if low > largest else "to - 1"
        raise OperatorError(f"{bound} is out of bounds for {c_name(d)}")
    return generator(source).integers(check_size(size, d), low, high).astype(d)


def _randint(has_low: bool, has_generator: bool) -> None:
    """Register one of randint's forms, and its out= form."""
    overload = "_".join(["low"] * has_low + ["generator"] * has_generator)
    head = "SymInt low, " * has_low + "SymInt high, SymInt[] size, *"
    source_text = ", Generator? generator" * has_generator

    def split(args: tuple[Any, ...]) -> tuple[int, int, Sequence[int], Any, tuple[Any, ...]]:
        low, rest = (args[0], args[1:]) if has_low else (0, args)
        source, more = (rest[2], rest[3:]) if has_generator else (None, rest[2:])
        return low, rest[0], rest[1], source, more

    def kernel(*args: Any) -> Array:
        low, high, size, source, (dtype, _layout, device, _pin) = split(args)
        check_device(device)
        return _integers(low, high, size, source, default_dtype() if dtype is None else xp.numpy_dtype(dtype))

    def into(*args: Any) -> Tensor:
        low, high, size, source, (out,) = split(args)
        store_out(out, _integers(low, high, size, source, out.array.dtype))
        target: Tensor = out
        return target

    dot, out = ("." if overload else ""), (f"{overload}_out" if overload else "out")
    _register(f"randint{dot}{overload}({head}{source_text}, {INT_OPTIONS}) -> Tensor", kernel=kernel,
              shape=shapes.created)  # fmt: skip
    _register(f"randint.{out}({head}{source_text}, Tensor(a!) out) -> Tensor(a!)", python=into, shape=shapes.created)


for _has_low in (False, True):
    for _has_generator in (False, True):
        _randint(_has_low, _has_generator)


def _permutation(n: int, source: Any, d: xp.NumpyDtype) -> Array:
    if n < 0:
        raise OperatorError(f"n must be non-negative, got {n}")
    if d not in xp.REAL:
        raise no_kernel("randperm", d)
    check_memory((n,), d)
    return generator(source).permutation(n).astype(d)


def randperm(n: int, source: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Array:
    check_device(device)
    return _permutation(n, source, xp.INT64 if dtype is None else xp.numpy_dtype(dtype))


def randperm_out(n: int, source: Any, out: Tensor) -> Tensor:
    store_out(out, _permutation(n, source, out.array.dtype))
    return out


_register(f"randperm(SymInt n, *, {INT_OPTIONS}) -> Tensor", kernel=lambda n, *options: randperm(n, None, *options))
_register(f"randperm.generator(SymInt n, *, Generator? generator, {INT_OPTIONS}) -> Tensor", kernel=randperm)
_register("randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)", python=lambda n, out: randperm_out(n, None, out))
_register("randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
          python=randperm_out)  # fmt: skip

# ------------------------------------------------------------------ distributions


def _draw_bernoulli(shape: tuple[int, ...], d: xp.NumpyDtype, p: Any, source: Any) -> Array:
    if isinstance(p, np.ndarray):
        p = _probabilities(p, shape, d)
    elif d in xp.COMPLEX:
        raise no_kernel("bernoulli_scalar_cpu_", d)
    elif not 0 <= p <= 1:
        raise OperatorError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return generator(source).bernoulli(shape, p).astype(d)


def _probabilities(p: Array, shape: tuple[int, ...], d: xp.NumpyDtype) -> Array:
    if math.prod(shape) and d in xp.COMPLEX:
        raise no_kernel("bernoulli_tensor_cpu_self_", d)
    if math.prod(shape) and p.dtype not in xp.FLOATING:
        raise no_kernel("bernoulli_tensor_cpu_p_", p.dtype)
    spread = expand(p if p.dtype.itemsize == 8 else p.astype(xp.FLOAT32, copy=False), shape, False)
    wrong = p[~((p >= 0) & (p <= 1))]
    if wrong.size:
        raise OperatorError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
            hints=(f"probabilities are between 0 and 1; among these is {float(wrong[0]):g}",),
        )
    return spread if math.prod(shape) else np.zeros(shape)


def bernoulli(self: Array, source: Any) -> Array:
    return _draw_bernoulli(self.shape, self.dtype, self, source)


def bernoulli_p(self: Array, p: Any, source: Any) -> Array:
    return _draw_bernoulli(self.shape, self.dtype, p, source)


def in_place(draw: Callable[..., Array]) -> Callable[..., Tensor]:
    """The form of a draw that overwrites the tensor, in the order in which its elements lie in memory."""

    def body(self: Tensor, *args: Any) -> Tensor:
        array = self.array
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]) if array.shape[axis] > 1 else 0)
        given = [expand(a.array, array.shape, False).transpose(axes) if isinstance(a, Tensor) else a for a in args]
        overwrite(self, draw(array.transpose(axes), *given).transpose(np.argsort(axes)))
        return self

    return body


def normal_like(self: Array, mean: float, std: float, source: Any) -> Array:
    if std < 0:
        raise OperatorError(f"normal expects std >= 0.0, but found std {std}")
    drawn = _normal(generator(source), self.shape, self.dtype)
    return (drawn.astype(wide(self.dtype)) * std + mean).astype(self.dtype)


def normal(mean: Any, std: Any, source: Any) -> Array:
    if isinstance(std, np.ndarray) and std.dtype in xp.COMPLEX:
        raise OperatorError("normal expects standard deviation to be non-complex")
    if np.any(np.asarray(std) < 0):
        raise OperatorError("normal expects all elements of std >= 0.0")
    d = result_type(v for v in (mean, std) if isinstance(v, np.ndarray))
    shape = broadcast_shapes(np.shape(mean), np.shape(std))
    drawn = _normal(generator(source), shape, d).astype(wide(d))
    return np.asarray(drawn * std + mean).astype(d)


def normal_sized(
    mean: float, std: float, size: Sequence[int], source: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Array:
    check_device(device)
    d = default_dtype() if dtype is None else xp.numpy_dtype(dtype)
    return normal_like(np.empty(check_size(size), d), mean, std, source)


def normal_sized_out(mean: float, std: float, size: Sequence[int], source: Any, out: Tensor) -> Tensor:
    store_out(out, normal_like(np.empty(check_size(size), out.array.dtype), mean, std, source))
    return out


def uniform(self: Array, low: float, high: float, source: Any) -> Array:
    if low > high:
        raise OperatorError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    drawn = _uniform(generator(source), self.shape, wide(self.dtype) if self.dtype in xp.FLOATING else self.dtype)
    return (drawn * (high - low) + low).astype(self.dtype)


def integers(self: Array, low: int, high: int | None, source: Any) -> Array:
    """Whole numbers of [low, high); without `high`, up to the largest that the dtype holds."""
    end = _beyond(self.dtype) if high is None else high
    if low >= end:
        raise OperatorError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={end}")
    return generator(source).integers(self.shape, low, end).astype(self.dtype)


def _beyond(d: xp.NumpyDtype) -> int:
    """One more than the largest whole number up to which a dtype has them all."""
    if d in xp.FLOATING:
        return int(2 ** (int(xp.limits(d).nmant) + 1)) + 1
    return 2 if d == xp.BOOL else int(np.iinfo(d).max) + 1


def multinomial(self: Array, num_samples: int, replacement: bool, source: Any) -> Array:
    if self.dtype not in xp.FLOATING:
        raise OperatorError(f"multinomial only supports floating-point dtypes for input, got: {xp.ir_name(self.dtype)}")
    if self.ndim not in (1, 2):
        raise OperatorError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise OperatorError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self.shape[-1]:
        raise OperatorError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = np.atleast_2d(self.astype(np.float64))
    if replacement or num_samples == 1:
        _check_weights(weights)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise OperatorError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(axis=1) <= 0).any():
        raise OperatorError("invalid multinomial distribution (sum of probabilities <= 0)")
    picked = (_with_replacement if replacement else _without_replacement)(weights, num_samples, generator(source))
    return picked.reshape(*self.shape[:-1], num_samples)


def _check_weights(weights: Array) -> None:
    if (weights < 0).any():
        raise OperatorError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(weights).all():
        raise OperatorError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")


def _with_replacement(weights: Array, count: int, source: Generator) -> Array:
    cumulated = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    drawn = source.uniform((weights.shape[0], count), xp.FLOAT64)
    below = np.asarray(drawn[:, :, np.newaxis] >= cumulated[:, np.newaxis, :])
    return np.asarray(below.sum(axis=2)).astype(np.int64)


def _without_replacement(weights: Array, count: int, source: Generator) -> Array:
    """The indices of the largest weight / exponential draw: each is picked in proportion to its weight."""
    exponential = -np.log1p(-source.uniform(weights.shape, xp.FLOAT64))
    order = -(weights / exponential)
    if count * 8 > order.shape[1]:
        return np.argsort(order, axis=1, kind="stable")[:, :count].astype(np.int64)
    first = np.sort(np.argpartition(order, count - 1, axis=1)[:, :count], axis=1)
    by_order = np.argsort(np.take_along_axis(order, first, 1), axis=1, kind="stable")
    return np.take_along_axis(first, by_order, 1).astype(np.int64, copy=False)


_GEN: Final = "*, Generator? generator=None"


def filling(name: str, overload: str, arguments: str, fill: Callable[..., Tensor]) -> None:
    """Register `name_`, which fills its tensor, and the forms that fill another of its sizes: a new one, or `out`."""
    dot = f".{overload}" if overload else ""
    into = f"{overload}_out" if overload else "out"
    given = ", ".join(part for part in (arguments, _GEN) if part)

    def filled(self: Tensor, *rest: Any) -> Tensor:
        return fill(Tensor(self.array.copy()), *rest)

    def filled_out(self: Tensor, *rest: Any) -> Tensor:
        out: Tensor = rest[-1]
        store_out(out, filled(self, *rest[:-1]).array)
        return out

    _register(f"{name}_{dot}(Tensor(a!) self, {given}) -> Tensor(a!)", python=fill, variants="method")
    _register(f"{name}{dot}(Tensor self, {given}) -> Tensor", python=filled)
    _register(f"{name}.{into}(Tensor self, {given}, Tensor(a!) out) -> Tensor(a!)", python=filled_out)


_register(f"bernoulli(Tensor self, {_GEN}) -> Tensor", kernel=bernoulli, variants="function method out",
          gradient={"self": "zeros_like(grad)"}, shape="self")  # fmt: skip
_register(f"bernoulli.p(Tensor self, float p, {_GEN}) -> Tensor", kernel=bernoulli_p, variants="function method",
          shape="self")  # fmt: skip
_register(f"bernoulli.Tensor(Tensor self, Tensor p, {_GEN}) -> Tensor", kernel=bernoulli_p,
          variants="function out:Tensor_out", shape="self")  # fmt: skip
_register(f"bernoulli_.float(Tensor(a!) self, float p=0.5, {_GEN}) -> Tensor(a!)", python=in_place(bernoulli_p),
          variants="method")  # fmt: skip
_register(f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, {_GEN}) -> Tensor(a!)", python=in_place(bernoulli_p),
          variants="method")  # fmt: skip
_register(f"bernoulli.float_out(Tensor self, float p=0.5, {_GEN}, Tensor(a!) out) -> Tensor(a!)", kernel=bernoulli_p,
          shape="self")  # fmt: skip
_register(f"normal.out(Tensor self, float mean=0., float std=1., {_GEN}, Tensor(a!) out) -> Tensor(a!)",
          kernel=normal_like)  # fmt: skip
_register(f"normal.Tensor_float(Tensor mean, float std=1., {_GEN}) -> Tensor", kernel=normal, variants="function out")
_register(f"normal.float_Tensor(float mean, Tensor std, {_GEN}) -> Tensor", kernel=normal, variants="function out")
_register(f"normal.Tensor_Tensor(Tensor mean, Tensor std, {_GEN}) -> Tensor", kernel=normal, variants="function out")
_register(f"normal.float_float(float mean, float std, SymInt[] size, {_GEN}, {OPTIONS}) -> Tensor",
          kernel=normal_sized)  # fmt: skip
_register(f"normal.float_float_out(float mean, float std, SymInt[] size, {_GEN}, Tensor(a!) out) -> Tensor(a!)",
          python=normal_sized_out)  # fmt: skip
_register(f"normal_(Tensor(a!) self, float mean=0., float std=1., {_GEN}) -> Tensor(a!)",
          python=in_place(normal_like), variants="method")  # fmt: skip
filling("uniform", "", "float from=0., float to=1.", in_place(uniform))
filling("random", "from", "int from, int? to", in_place(integers))
filling("random", "to", "int to", in_place(lambda self, to, source: integers(self, 0, to, source)))
filling("random", "", "", in_place(lambda self, source: integers(self, 0, None, source)))
_register(f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, {_GEN}) -> Tensor",
          kernel=multinomial, variants="function method out")  # fmt: skip


def manual_seed(seed: int) -> None:
    philox.restart(seed)
    generator().manual_seed(seed)


def new_generator(device: Any = None, seed: int | None = None) -> Generator:
    made = Generator("cpu" if device is None else device)
    return made if seed is None else made.manual_seed(seed)


def seed_generator(self: Generator, seed: int) -> Generator:
    return self.manual_seed(seed)


def seed_from_the_clock(self: Generator) -> int:
    return self.seed()


def initial_seed(self: Generator) -> int:
    return self.initial_seed()


op("aten::Generator(*, Device? device=None, int? seed=None) -> Generator", python=new_generator, side_effects=True)
op("aten::seed(Generator(a!) self) -> int", python=seed_from_the_clock, side_effects=True)
op("aten::initial_seed(Generator self) -> int", python=initial_seed, side_effects=True)
op("aten::manual_seed(int seed) -> ()", python=manual_seed, side_effects=True)
op("aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)", python=seed_generator,
   side_effects=True)  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "rand_like rand_like.generator randn_like randn_like.generator",
    layout="operands",
)

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("bernoulli.Tensor_out bernoulli.float_out normal.out", out_check=out_checks.check_same)
describe("multinomial.out", out_check=out_checks.only_same("multinomial expects {wanted} tensor out, got: {given}"))
