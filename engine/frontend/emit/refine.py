"""Refinement: the types of variables where a condition holds, and where it does not.

In: `x is None`, `isinstance(x, int)`, and conditions joined by `and`, `or` and `not`.  Out: the types
that the variables have where the condition holds, and where it does not.

    x : Optional[int]      x is not None          holds: x is an int        else: nothing new
                           not (x is not None)    holds: nothing new        else: x is an int
"""

from __future__ import annotations

from dataclasses import field

from engine.ir.graph import Value
from engine.lang.records import dataclass
from engine.lang.types import ANY, NONE, OptionalType, Type, UnionType, members_of, union_of

Types = dict[str, Type]


@dataclass(frozen=True, slots=True)
class Refinements:
    """Types of variables where a condition holds (`true`) and where it does not (`false`)."""

    true: Types = field(default_factory=dict)
    false: Types = field(default_factory=dict)

    def negated(self) -> Refinements:
        return Refinements(self.false, self.true)

    def both(self, other: Refinements) -> Refinements:
        """The refinements of `self and other`: both hold, or either does not."""
        return Refinements(_merged(self.true, other.true), _shared(self.false, other.false))

    def either(self, other: Refinements) -> Refinements:
        """The refinements of `self or other`."""
        return Refinements(_shared(self.true, other.true), _merged(self.false, other.false))


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition: its bool, its refinements, and its outcome where that is known while compiling."""

    value: Value
    refinements: Refinements = field(default_factory=Refinements)
    static: bool | None = None


def without_none(type: Type) -> Type | None:
    """The type without its None; None if the type has none or is nothing else."""
    if not isinstance(type, (OptionalType, UnionType)):
        return None
    rest = [member for member in members_of(type) if member is not NONE]
    return union_of(rest) if rest and len(rest) < len(members_of(type)) else None


def can_be_none(type: Type) -> bool | None:
    """True if values of the type are always None, False if never; None if they may be."""
    if type is NONE:
        return True
    return None if type is not ANY and NONE.is_subtype_of(type) else False  # never for Any, as in PyTorch


def _merged(first: Types, second: Types) -> Types:
    return {**first, **{name: type for name, type in second.items() if name not in first}}


def _shared(a: Types, b: Types) -> Types:
    return {name: type for name, type in a.items() if b.get(name) == type}
