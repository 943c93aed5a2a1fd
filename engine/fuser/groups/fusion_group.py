"""A fusion group while it is lowered: its sizes, its stages, and what its values are made of.

In: descriptions of tensors (`schedule.Value`).  Out: descriptions of what operators make of them; `Group.keep` has one
computed once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.fuser.groups.extents import Extent, Extents
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.schedule import Body, Indices, Scheduler, Stage, Value
from engine.fuser.groups.strategy import HOST, Strategy
from engine.fuser.ir.kernel import (
    BOOL,
    Constant,
    Expression,
    If,
    Let,
    Load,
    Name,
    Return,
    Statement,
    all_expressions,
    index,
)
from engine.fuser.ir.numeric_functions import NUMPY
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema

TYPES: Final[dict[np.dtype[Any], str]] = {np.dtype(found): type for type, found in NUMPY.items()}
"""numpy's dtypes -> the types of elements; what is missing stays with numpy."""
DTYPES: Final = {type: d for d, type in TYPES.items()}

Lowered = Any
"""A `Value`; an expression of a number; a constant; or a list of these."""


@dataclass(eq=False, slots=True)
class Group:
    """The state that the handlers of nodes share."""

    extents: Extents = field(default_factory=Extents)
    stages: list[Stage] = field(default_factory=list)
    samples: dict[Value, Tensor] = field(default_factory=dict)
    """A tensor of one element for each value, of the same dtype and rank."""
    numbers: dict[Expression, float] = field(default_factory=dict)
    """Numbers that calls give, with those of the example."""
    ranges: dict[Expression, Extent] = field(default_factory=dict)
    """Numbers of steps of loops, which go from 0 to before these."""
    strategy: Strategy = HOST

    def keep(self, value: Value) -> Value:
        """The value from memory (or registers), computed once."""
        if value.stage is not None and not value.stage.is_reduction:
            return value
        stage = Stage(
            value.name, value.type, value.shape, value.stages, element=lambda body, at: body.element(value, at)
        )
        self.stages.append(stage)
        kept = Value(
            value.name, value.type, value.shape, lambda body, at: body.stage(stage, at), (stage,), stage, value.is_moved
        )
        if value in self.samples:
            self.samples[kept] = self.samples[value]
        return kept

    def kept_if_costly(self, value: Value) -> Value:
        """The value, kept if that is less work than to compute it again."""
        return self.keep(value) if value.shape and self._is_costly(value) else value

    def leave_if(self, name: str, wrong: Value) -> Stage:
        """The stage that ends the kernel if the element, of a tensor without dimensions, is true: the program then runs
        without it, and has its error.  What reads it comes after it."""
        if self.ranges or self.strategy.is_threaded:
            raise Unsupported("loops that may end early")
        kept = self.keep(wrong)

        def loops(scheduler: Scheduler) -> Iterator[Statement]:
            assert kept.stage is not None
            yield If(Load(scheduler.buffer_of(kept.stage), (index(0),), BOOL), (Return(index(REFUSED)),))

        stage = Stage(name, BOOL, (), kept.stages, loops=loops)
        self.stages.append(stage)
        return stage

    def trial(self, value: Value) -> tuple[Body, Expression]:
        """The statements of an element, and the element; raises Unsupported."""
        body = Body(Scheduler(self.extents, ()), ())
        return body, value.at(body, tuple(Name(f"i{d}", "i64") for d in range(len(value.shape))))

    def _is_costly(self, value: Value) -> bool:
        """True if an element takes more than a few simple functions."""
        body, last = self.trial(value)
        steps = [last, *(s.value for s in body.statements if isinstance(s, Let))]
        found = [e for step in steps for e in all_expressions(step)]
        return len(body.statements) > _SIMPLE or any(getattr(e, "function", "") in _LONG for e in found)


REFUSED: Final = 1
"""The code of a kernel whose arguments are a mistake of the program."""
_SIMPLE: Final = 8
"""The number of steps that are rather done again than kept."""
_LONG: Final = frozenset("exp expm1 exp2 log log1p log2 log10 tanh sigmoid erf erfc sin cos tan pow".split())


@dataclass(eq=False, slots=True)
class Operands(Mapping[str, Lowered]):
    """The operands of an operator by name, which remember those that were looked at.

    Note [Looked at]
    A handler describes a call of its operator by the operands that it looks at.  One that it did not look at has to be
    what it is by default: else the call means something that the handler does not know of, and is left to the
    operator itself (`unknown`).  So an argument that an operator learns makes no kernel wrong.
    """

    given: Mapping[str, Lowered]
    looked_at: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Lowered:
        if name not in self.given:
            raise Unsupported(f"an overload that has no '{name}'")
        self.looked_at.add(name)
        return self.given[name]

    def get(self, name: str, default: Any = None) -> Lowered:
        return self[name] if name in self.given else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __contains__(self, name: object) -> bool:
        return name in self.given

    def with_others(self, others: Mapping[str, Lowered]) -> Operands:
        """The same with further operands, or others of these names; what is looked at there counts here, too."""
        return Operands({**self.given, **others}, self.looked_at)

    def without_effect(self, *names: str) -> None:
        """Count these as looked at: they change no element of this result, whatever they are."""
        self.looked_at.update(names)

    def unknown(self, schema: FunctionSchema) -> str | None:
        """The name of an operand that nobody looked at and that is not what it is by default."""
        return next((a.name for a in schema.arguments if a.name not in self.looked_at and self._tells(a)), None)

    def _tells(self, argument: Argument) -> bool:
        value = self.given[argument.name]
        is_default = argument.has_default and type(value) is type(argument.default) and value == argument.default
        return value is not None and not is_default and argument.name not in NUMBERS_STAY


NUMBERS_STAY: Final = frozenset(
    "cudnn_enabled benchmark deterministic allow_tf32 implicit copy non_blocking pin_memory device layout sparse "
    "sparse_grad scale_grad_by_freq self_is_result".split()
)
"""Arguments that change no element of a result: how it is computed, where (guarded by the tensors), what becomes of its
gradient."""

Handler = Callable[[Group, str, Operands, Any], Lowered]
Choose = Callable[[Indices], Indices]
"""From the indices of a result to those of what it shows."""


def shown(value: Value, name: str, shape: Sequence[Extent], choose: Choose) -> Value:
    """The elements of another value, in another arrangement."""
    return Value(
        name,
        value.type,
        tuple(shape),
        lambda body, at: body.element(value, choose(at)),
        value.stages,
        None,
        value.is_moved,
    )


def elements(body: Body, value: Value, indices: Indices, extents: Extents) -> Expression:
    """The value's element where the result has `indices`: broadcast."""
    own = indices[len(indices) - len(value.shape) :]
    zero = index(0)
    places = tuple(zero if _is_one(extent, extents) else at for at, extent in zip(own, value.shape, strict=True))
    return body.element(value, places)


def _is_one(extent: Extent, extents: Extents) -> bool:
    found = extents.canonical(extent).size
    return isinstance(found, Constant) and found.value == 1


def stages_of(values: Iterable[Value]) -> tuple[Stage, ...]:
    """All stages that some values are computed from."""
    return tuple(dict.fromkeys(stage for value in values for stage in value.stages))
