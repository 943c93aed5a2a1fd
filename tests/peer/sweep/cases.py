"""Cases of the sweep: every overload of the operators listed, its arguments crossed with dtypes and numbers.

In: the operator table.  Out: cases `(form, expression, arguments)` for `answers`.
"""

from __future__ import annotations

import itertools
import keyword
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import registered
from engine.lang.schema import NO_DEFAULT, Argument
from engine.lang.types import NUMBER, ListType, OptionalType, TensorType
from tests.peer.sweep.answers import DTYPES

Case = tuple[str, str, tuple[str, ...]]

NUMBERS: Final = (
    "3", "-2", "0", "300", "2**31", "2**63-1", "-2**63", "0.1", "2.5", "-0.5", "0.0", "1e30", "1e300", "math.inf",
    "math.nan", "True", "False", "(0.1+2j)", "(3+0j)", "1e300j",
)  # fmt: skip
"""Numbers of every kind, and those at the ends of dtypes."""
FEW_NUMBERS: Final = ("3", "-2", "2.5", "0.1", "True", "(0.1+2j)")

ENDS: Final = ("3", "-2", "0", "300", "0.1", "2.5", "-0.5", "math.inf", "math.nan", "1e30", "True", "(0.1+2j)")
"""Ends of ranges, none of which fills the memory."""

POINTWISE: Final = (
    "abs neg sign exp expm1 exp2 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh erf erfc sigmoid floor ceil round trunc frac positive isnan isinf isfinite "
    "logical_not bitwise_not nan_to_num clamp clamp_min clamp_max add sub mul div rsub true_divide floor_divide "
    "remainder fmod pow atan2 maximum minimum lerp addcmul addcdiv where masked_fill bitwise_and bitwise_or "
    "bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ logical_and logical_or logical_xor "
    "eq ne lt le gt ge isclose allclose equal is_nonzero "
    "relu relu6 leaky_relu prelu elu selu celu gelu silu mish hardtanh hardsigmoid hardswish softplus softmax "
    "log_softmax glu log_sigmoid threshold"
).split()
REDUCTIONS: Final = (
    "sum mean prod max min amax amin argmax argmin any all var std var_mean std_mean norm linalg_vector_norm "
    "logsumexp cumsum cumprod sort argsort topk bincount"
).split()
SHAPES: Final = (
    "view reshape flatten squeeze unsqueeze transpose permute movedim expand expand_as broadcast_to "
    "view_as reshape_as size stride dim numel storage_offset contiguous is_contiguous clone detach alias select slice "
    "narrow split chunk unbind unfold cat stack repeat tile repeat_interleave flip roll index_select index_add "
    "index_copy index_fill gather scatter scatter_add masked_select masked_scatter nonzero one_hot bucketize "
    "searchsorted slice_scatter select_scatter diag diag_embed"
).split()
CREATORS: Final = (
    "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full arange linspace logspace eye "
    "scalar_tensor fill to type_as copy item"
).split()

VALUES_OF_NAMES: Final = {
    "dim": ("0",), "dims": ("[0]",), "size": ("[64]",), "shape": ("[64]",), "sizes": ("[8, 8]",), "dim0": ("0",),
    "dim1": ("-1",), "source": ("0",), "destination": ("0",), "start": ("1",), "length": ("2",), "index": ("0",),
    "split_size": ("3",), "split_sizes": ("[3, 61]",), "split_with_sizes": ("[3, 61]",), "chunks": ("2",),
    "dimension": ("0",), "step": ("1",), "repeats": ("2",), "shifts": ("2",), "k": ("1",), "decimals": ("1", "-1"),
    "rounding_mode": ("'floor'", "'trunc'"), "steps": ("5", "6", "1"), "n": ("2",), "m": ("3",), "dtype": DTYPES,
    "end": ("4",), "keepdim": ("True",), "memory_format": ("memory_format=torch.contiguous_format",),
    "stable": ("True",), "reduce": ("'add'",), "unbiased": ("False",), "high": ("5",),
}  # fmt: skip
"""What stands for arguments that are neither tensors nor numbers, by their names."""


def listed_operators() -> list[Op]:
    """The overloads of the operators listed, but `out` forms and overloads that programs cannot choose."""
    names = [*POINTWISE, *REDUCTIONS, *SHAPES, *CREATORS]
    found = [op for name in names for op in registered(f"aten::{name}")]
    found += [op for name in POINTWISE for op in registered(f"aten::{name}_")]
    return [op for op in found if op.overload != "Tensor_list" and _of_tensors(op)]


def _of_tensors(op: Op) -> bool:
    """True unless it is an `out` form, or gives no tensors and takes none."""
    arguments = op.schema.arguments
    if any(a.alias and a.kwarg_only for a in arguments):
        return False
    return any("Tensor" in str(a.type) for a in [*arguments, *op.schema.returns])


def expressions_of(op: Op) -> Iterator[tuple[str, list[str]]]:
    """Calls of the operator: texts, and what each variable in them stands for (`tensor` or `number`)."""
    required = [a for a in op.schema.arguments if a.default is NO_DEFAULT]
    if op.name == "aten::repeat":
        return  # a method that takes its sizes in many ways
    if op.name in ("aten::sort", "aten::argsort") and op.overload != "stable":
        return  # nothing defines where equal values go
    extra = [a for a in op.schema.arguments if a.default is not NO_DEFAULT and _bare(a) is NUMBER]
    if op.name == "aten::elu":
        extra = extra[:1]  # the function in torch.nn has no others
    typed = [a for a in op.schema.arguments if a.default is not NO_DEFAULT and a.name == "dtype"]
    yield from _calls(op, required)
    for each in extra:
        yield from _calls(op, [*required, each])
    if typed:
        yield from _calls(op, [*required, *typed])


def _bare(argument: Argument) -> object:
    return argument.type.element if isinstance(argument.type, OptionalType) else argument.type


_LAYERS: Final = frozenset(
    "relu6 leaky_relu elu gelu silu mish hardtanh hardsigmoid hardswish softplus glu one_hot".split()
)
_HOMES: Final = {
    "linalg_vector_norm": "torch.linalg.vector_norm", "log_sigmoid": "torch.nn.functional.logsigmoid",
    "alias": "torch.ops.aten.alias", "slice": "torch.ops.aten.slice",
    **{name: f"torch.nn.functional.{name}" for name in _LAYERS},
}  # fmt: skip
"""What programs call operators that are no functions of torch."""


def _calls(op: Op, arguments: Sequence[Argument]) -> Iterator[tuple[str, list[str]]]:
    slots: list[str] = []
    choices: list[tuple[str, ...]] = []
    for argument in arguments:
        kind = "tensor" if isinstance(_bare(argument), TensorType) else "number" if _bare(argument) is NUMBER else ""
        type = argument.type
        if kind:
            choices.append((_spelled(argument, "abcdefg"[len(slots)], argument.default is not NO_DEFAULT),))
            slots.append(kind)
        elif isinstance(type, ListType) and isinstance(type.element, TensorType):
            choices.append((f"[{'abcdefg'[len(slots)]}, {'abcdefg'[len(slots) + 1]}]",))
            slots += ["tensor", "tensor"]
        else:
            values = VALUES_OF_NAMES.get(argument.name, ())
            values = tuple(f"torch.{v}" for v in values) if argument.name == "dtype" else values
            named = argument.default is not NO_DEFAULT
            choices.append(tuple(_spelled(argument, value, named) for value in values))
    for chosen in itertools.product(*choices):
        name = op.name.removeprefix("aten::")
        if op.functional is not None or op.variants == {"method"}:
            yield f"{chosen[0]}.{name}({', '.join(chosen[1:])})", slots
        else:
            yield f"{_HOMES.get(name, f'torch.{name}')}({', '.join(chosen)})", slots


def _spelled(argument: Argument, value: str, named: bool) -> str:
    named = (named or argument.kwarg_only) and not keyword.iskeyword(argument.name)
    return f"{argument.name}={value}" if named else value


OPERATORS: Final = (
    *(f"a {sign} b" for sign in "+ - * / // % ** == != < <= > >= & | ^ << >>".split()), "-a", "~a", "abs(a)",
)  # fmt: skip
CONVERSIONS: Final = (
    *(f"{maker}(a, dtype=torch.{d})" for maker in ("torch.tensor", "torch.as_tensor") for d in DTYPES),
    "torch.tensor(a)", "torch.as_tensor(a)", "torch.tensor([a])", "torch.tensor([a, 1])", "torch.tensor([1, a])",
    "torch.tensor([[a], [1.5]])",
    *(f"torch.tensor([a], dtype=torch.{d})" for d in DTYPES),
)  # fmt: skip
OF_TENSORS: Final = (
    *(f"a.to(torch.{d})" for d in DTYPES), "a.item()", "a.tolist()", "a.float()", "a.double()", "a.half()", "a.long()",
    "a.int()", "a.bool()", "a.bfloat16()", "a.type_as(b)", "a.copy_(b)", "torch.tensor([1]).to(a)",
)  # fmt: skip
WRITES: Final = ("a.fill_(b)", "a.copy_(b)")


def crossed(expression: str, slots: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The expression with everything that its variables may stand for."""
    tensors = slots.count("tensor")
    seen: list[Sequence[str]] = []
    place = 0
    for slot in slots:
        if slot == "number":
            seen.append(ENDS if "arange" in expression else FEW_NUMBERS if "number" in slots[: len(seen)] else NUMBERS)
            continue
        series = "x" if place == 0 else "y"
        seen.append([f"{series}:{d}:{n}" for d in DTYPES for n in "01"])
        place += 1
    for args in itertools.product(*seen):
        if tensors < 3 or _goes_together(args, slots):
            yield expression, args


def _goes_together(args: Sequence[str], slots: Sequence[str]) -> bool:
    """True for three tensors where the last is like the first or the second, and none is a number."""
    first, second, third, *_ = (a.split(":") for a, slot in zip(args, slots, strict=True) if slot == "tensor")
    return third[1] in (first[1], second[1]) and second[2] == third[2] == "1"


def programs() -> Iterator[tuple[str, list[str]]]:
    """Expressions and what their variables stand for."""
    for op in listed_operators():
        yield from expressions_of(op)
    for text in OPERATORS:
        for slots in (
            (["tensor", "tensor"], ["tensor", "number"], ["number", "tensor"]) if "b" in text[2:] else (["tensor"],)
        ):
            yield text, list(slots)
    for text in CONVERSIONS:
        yield text, ["number"]
    for text in OF_TENSORS:
        yield text, ["tensor", "tensor"] if "b" in text.split("(")[-1] else ["tensor"]
    for text in WRITES:
        yield text, ["tensor", "number"]


def chosen_cases(most: Mapping[str, int], seed: int = 0) -> list[Case]:
    """In each form, at most so many cases of each expression, chosen by chance."""
    return [case for form, count in most.items() for case in _chosen(form, count, random.Random(f"{form} {seed}"))]


def _chosen(form: str, most: int, chance: random.Random) -> Iterator[Case]:
    for expression, slots in dict.fromkeys((text, tuple(slots)) for text, slots in programs()):
        if form == "traced" and "tensor" not in slots:
            continue
        found = list(crossed(expression, slots))
        for text, args in found if len(found) <= most else chance.sample(found, most):
            yield form, text, args
