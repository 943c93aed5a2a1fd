"""The operator table: one entry per operator, and everything reads it.

An entry is written once, in `ops/<family>.py`, and carries one body, or a `composite` beside it:

    op("aten::exp(Tensor self) -> Tensor", scalar="exp(self)", dtype="float", variants="method inplace out",
       gradient={"self": "grad * result"})
    op("aten::mm(Tensor self, Tensor mat2) -> Tensor", kernel=mm, variants="method out", gradient={...})
    op("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", python=append, variants="method")
    op("aten::square(Tensor self) -> Tensor", composite="self.pow(2)", variants="method inplace out")

In: schema text, a body, facts.  Out: `Op`, found by name.  `Op.run(*args)` takes every argument of the
schema in order and returns the result (a tuple when the schema has several, None when it has none).
Schemas are parsed and families imported (`families`) when first asked for, so that importing the engine stays cheap.
Entries of one name stand in the order of `FAMILIES`, and that is the order in which overloads are tried.

Note [Families come whole]
The rows of a family are its own while its module is imported, and join the table together when that is done: by one
statement, which no interrupt and no other thread finds half done.  Rows of an import that failed are not there; they
are made again with the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from operator import attrgetter
from typing import Any, Final

from engine.aten.dispatch import families
from engine.aten.dispatch.compile import compile_op
from engine.aten.dispatch.op import Op
from engine.aten.kernels.refusals import Refusal
from engine.lang.errors import SchemaError
from engine.lang.locks import lock
from engine.lang.records import dataclass


@dataclass(slots=True)
class _Family:
    """Rows and facts that the import of a family has registered so far; `names` are the globals of its module."""

    names: dict[str, Any] | None
    rows: dict[str, Op] = field(default_factory=dict)
    overloads: dict[str, list[Op]] = field(default_factory=dict)
    """The rows by their operators' names."""
    facts: list[Callable[[], None]] = field(default_factory=list)
    """Facts for rows of other families."""


_by_name: dict[str, tuple[Op, ...]] = {}
"""Entries in the order in which they are tried."""
_by_qualified_name: dict[str, Op] = {}
_unread: families.Index | None = None
"""Names of which not all families are imported, with their places; None before the first search."""
_to_come: Final[dict[int, _Family]] = {}
"""Families that are not in the table yet, by their places.  See Note [Families come whole]."""
_publishing: Final = lock()
"""Held for a moment, never while modules are imported."""
_reading: Final = lock()
"""Held while the index is read or made."""
NEW: Final[list[Callable[[Op], None]]] = []
"""Listeners called for each entry registered later."""


def op(text: str, *, variants: str = "", **facts: Any) -> Op:
    """Register an operator (and its in-place and out forms, if `variants` names them); see the module's top.

    Raises SchemaError when the name and overload are taken or there is not exactly one body.
    """
    if "functional" in facts:
        facts = _inherited(facts["functional"]) | facts
    work = families.family_at_work()
    entry = Op(text, compiler=compile_op, family=work.place, variants=frozenset(variants.split()), **facts)
    bodies = [each for each in (entry.scalar, entry.kernel, entry.python, entry.functional) if each is not None]
    if len(bodies) != 1 and not (entry.composite and not bodies):
        raise SchemaError(f"{entry.qualified_name} has {len(bodies)} bodies, and needs one")
    made = [entry]
    for variant, derived_text in derived_texts(entry):
        kinds = entry.variants & {"method", variant}
        facts = _inherited(entry)
        made.append(Op(derived_text, compiler=compile_op, family=work.place, functional=entry, variants=kinds, **facts))
    if work.place == families.LAST:
        _add_alone(made)
    else:
        _add(made, work)
    return entry


_INHERITED: Final = ("dtype", "keeps", "shape", "nondeterministic", "data_dependent", "activation")


def _inherited(entry: Op) -> dict[str, Any]:
    """The facts that in-place and out forms share with the operator that computes their results."""
    return {name: getattr(entry, name) for name in _INHERITED}


def describe(names: str, *, refuses: Refusal | None = None, **facts: Any) -> None:
    """Add facts to rows that are registered already, for facts that several rows of a family share.

    A name without overload means all overloads so far; one that ends with a dot, that without a name.  Raises
    SchemaError for a name that no row has, and for one of which the family has no row itself: who asks for the name
    would not know of its facts.
    """
    work = families.family_at_work()
    for name in names.split():
        rows = registered(f"aten::{name.partition('.')[0]}")
        exact = f"aten::{name.removesuffix('.')}"
        found = [row for row in rows if row.qualified_name == exact] if "." in name else rows
        if not found or all(row.family != work.place for row in rows):
            raise SchemaError(f"there is no operator aten::{name} to describe")
        for entry in found:
            tell = partial(_describe, entry, refuses, facts)
            if entry.family == work.place:
                tell()
            else:
                _coming(work).facts.append(tell)


def _describe(entry: Op, refuses: Refusal | None, facts: dict[str, Any]) -> None:
    if refuses is not None:
        entry.refuses = (*entry.refuses, refuses)
    for fact, value in facts.items():
        setattr(entry, fact, value)


_OWN: Final = frozenset({"method", "function"})
"""Variants that are ways to call the entry itself."""


def derived_texts(entry: Op) -> Iterator[tuple[str, str]]:
    """Schema texts of the in-place and out forms that an entry asks for."""
    if not entry.variants or entry.variants <= _OWN:
        return
    head, _, rest = entry.text.partition("(")
    arguments, _, _ = rest.rpartition(") -> ")
    name, _, overload = head.partition(".")
    inplace, out = _variant(entry, "inplace"), _variant(entry, "out")
    if inplace is not None:
        written = arguments.replace("Tensor self", "Tensor(a!) self", 1)
        target = inplace or overload
        yield "inplace", f"{name}_{'.' + target if target else ''}({written}) -> Tensor(a!)"
    if out is not None:
        star = "" if "*, " in arguments else "*, "
        comma = ", " if arguments else ""
        target = out or (f"{overload}_out" if overload else "out")
        yield "out", f"{name}.{target}({arguments}{comma}{star}Tensor(a!) out) -> Tensor(a!)"


def out_form(entry: Op, overload: str, names: str, *, named: bool = True) -> Op:
    """Register the form of an operator with several results that writes them into the tensors `names`.

    `named` tells whether its results carry the names that the operator's own have.
    """
    arguments = entry.text.partition("(")[2].rpartition(") -> ")[0]
    star = "" if "*, " in arguments else "*, "
    marks = [f"Tensor({letter}!)" for letter in "abcdefg"]
    written = ", ".join(f"{mark} {name}" for mark, name in zip(marks, names.split(), strict=False))
    results = entry.text.rpartition(") -> ")[2].strip("()").split(", ")
    labels = ["".join(result.partition(" ")[1:]) if named else "" for result in results]
    returned = ", ".join(f"{mark}{label}" for mark, label in zip(marks, labels, strict=False))
    returned = f"({returned})" if len(labels) > 1 else returned
    return op(f"{entry.name}.{overload}({arguments}, {star}{written}) -> {returned}", functional=entry)


def _variant(entry: Op, wanted: str) -> str | None:
    """None if the entry has no such variant, else the overload that it names for it (`out:dtype_out`), or ""."""
    for variant in entry.variants:
        kind, _, overload = variant.partition(":")
        if kind == wanted:
            return overload
    return None


def overloads(name: str) -> Sequence[Op]:
    """The operators of that name (`aten::add`) in the order they are tried; empty when there are none."""
    if _unread is None or name in _unread.places:
        _read(name)
    return _by_name.get(name, ())


def registered(name: str) -> Sequence[Op]:
    """Those of the family that is being imported and of the families before it, for families that build on others."""
    work = families.family_at_work()
    if _unread is not None:
        _publish(families.import_families(place for place in _unread.places.get(name, ()) if place < work.place))
    own = _coming(work).overloads.get(name, ()) if work.place < families.LAST else ()
    before = (entry for entry in _by_name.get(name, ()) if entry.family <= work.place)
    return (*before, *own)


def find(qualified_name: str) -> Op | None:
    """The operator `aten::add.Tensor`, or None."""
    name = qualified_name.partition(".")[0]
    if _unread is None or name in _unread.places:
        _read(name)
    return _by_qualified_name.get(qualified_name)


def first_name(name: str) -> str:
    """The name of the operator that programs with this name are compiled to; in-place names follow the others."""
    stem = name.removesuffix("_")
    found = next((entry.alias_of for entry in overloads(stem) if entry.alias_of), stem)
    return found + name[len(stem) :]


def names() -> list[str]:
    """All names there are, sorted."""
    return sorted({*_by_name, *_to_read().places})


def methods() -> Sequence[str]:
    """Names of the operators of the families that are methods, without `aten::`."""
    return _to_read().methods


def entries() -> list[Op]:
    """Every entry, in order of registration within each family."""
    for name in tuple(_to_read().places):
        _read(name)
    return sorted(_by_qualified_name.values(), key=_FAMILY)


_FAMILY: Final = attrgetter("family")


def _add_alone(made: Sequence[Op]) -> None:
    """Let rows of no family join the table at once."""
    for entry in made:
        overloads(entry.name)  # families come first
    with _publishing:
        _to_come.pop(families.LAST, None)
        _add(made, families.family_at_work())
        _publish([families.LAST])


def _add(made: Iterable[Op], work: families.Work) -> None:
    """Register rows, which join the table with those beside them."""
    own = _coming(work)
    for entry in made:
        if own.rows.setdefault(entry.qualified_name, entry) is not entry:
            raise _twice(entry)
        own.overloads.setdefault(entry.name, []).append(entry)


def _twice(entry: Op) -> SchemaError:
    return SchemaError(f"operator {entry.qualified_name} is registered twice")


def _coming(work: families.Work) -> _Family:
    """The rows of the family at work, none at first; those of an import of its module that failed are dropped."""
    found = _to_come.get(work.place)
    if found is None or found.names is not work.names:
        found = _to_come[work.place] = _Family(work.names)
    return found


def _publish(places: Iterable[int]) -> None:
    """Let the rows of these families, whose imports are done, join the table."""
    with _publishing:
        coming = {place: family for place in places if (family := _to_come.get(place)) is not None}
        for family in coming.values():
            for tell in family.facts:
                tell()
        if coming:
            _join([row for family in coming.values() for row in family.rows.values()])
        for place in coming:
            del _to_come[place]


def _join(added: Sequence[Op]) -> None:
    """Let these rows join the table: all, or none where a name is taken."""
    global _by_name, _by_qualified_name
    with _publishing:
        by_name, by_qualified_name = dict(_by_name), dict(_by_qualified_name)
        for entry in added:
            if by_qualified_name.setdefault(entry.qualified_name, entry) is not entry:
                raise _twice(entry)
            others = [each for each in by_name.get(entry.name, ()) if each is not entry]
            by_name[entry.name] = tuple(sorted((*others, entry), key=_FAMILY)) if others else (entry,)
        for entry in added:
            for tell in NEW:
                tell(entry)
        _by_name, _by_qualified_name = by_name, by_qualified_name


def withdraw(entry: Op) -> None:
    """Take a registered operator out of the table.  Plans that were made with it keep it."""
    global _by_name, _by_qualified_name
    with _publishing:
        others = tuple(each for each in _by_name[entry.name] if each is not entry)
        by_name = {**_by_name, entry.name: others}
        if not others:
            del by_name[entry.name]
        _by_qualified_name = {name: each for name, each in _by_qualified_name.items() if each is not entry}
        _by_name = by_name


def read_families(names: Iterable[str]) -> None:
    """Import these families, whose rows join the table together."""
    _publish(families.import_families(families.FAMILIES.index(name) for name in names))


def _read(name: str) -> None:
    """Import the families that have rows of this name."""
    unread = _to_read()
    wanted = unread.places.get(name, ())
    done = families.import_families(wanted)
    _publish(done)
    if len(done) == len(wanted):
        unread.places.pop(name, None)


_NOTHING: Final = families.Index({}, [])


def _to_read() -> families.Index:
    """The names of which families are still to be imported, and the methods of all."""
    global _unread
    if _unread is not None:
        return _unread
    if families.family_at_work().place < families.LAST:
        return _NOTHING  # an import that another thread waits for, perhaps while it makes the index
    with _reading:
        if _unread is None:
            _unread = families.saved_index() or _made_index()
    return _unread


def _made_index() -> families.Index:
    """The index of all families, which are imported; nothing is left to read."""
    for place in range(families.LAST):
        _publish(families.import_families([place]))
    rows = _by_name.items()
    places = {name: sorted({entry.family for entry in found}) for name, found in rows}
    methods = [name for name, found in rows if any("method" in entry.variants for entry in found)]
    index = families.Index(places, [name.removeprefix("aten::") for name in methods])
    families.save_index(index)
    return families.Index({}, index.methods)
