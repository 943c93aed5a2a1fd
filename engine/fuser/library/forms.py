"""Forms: the calls of operators that the library serves, as data.

In: what `rows` finds when the library is made.  Out: `Form`s, as lines of text that lie in the library, one for each
operator, and back.  What serves calls reads them without knowing how row functions come about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from engine.aten.dispatch.op import Op
from engine.lang.records import dataclass
from engine.lang.schema import Argument

Kind = Literal[
    "TENSORS", "POINTS", "TRUTHS", "NUMBERS", "SETTINGS", "SAME", "EQUAL", "UNREAD", "REALS", "AXIS", "AXES",
    "LASTSIZES", "KEEPS", "LISTS", "WORDS", "INDEX", "BOUND", "MANYINTS", "TARGETS", "WHOLES", "VECTORS", "TABLES",
    "INDICES", "RANKED", "STEPPED", "TURNED", "ROWED", "SHOWN", "LIKE", "NUMBERED", "NAMED", "BLOCKS", "MAYBES",
    "STATES", "CHANGED", "OPTIONS",
]  # fmt: skip
"""See `words.KIND`."""
LINES: Final = "lines_"
"""The beginning of the symbol of the lines of a part; they begin with one that is empty, and end with a zero."""
OPERANDS: Final = ("TENSORS", "POINTS", "TRUTHS", "NUMBERS", "SETTINGS")
"""The kinds of operands."""


@dataclass(frozen=True, slots=True)
class Given:
    """The kind of an argument, and the value that it has to have."""

    kind: Kind
    value: Any = None

    @property
    def is_operand(self) -> bool:
        return self.kind in OPERANDS


@dataclass(frozen=True, slots=True)
class Entry:
    """A function: its symbol, the type of its result, and roughly the nanoseconds that it takes for 1024 elements."""

    symbol: str
    result: str
    work: int


@dataclass(frozen=True, slots=True)
class Form:
    """Calls whose arguments are these.

    `fewest`: the arguments that calls have to give; the others have their defaults.  `asked`: the operands that decide
    how the result lies, none where that is in C order.  `entries`: functions by the type of the operands; of those that
    go along a dimension, by the word of a descriptor that they belong to, and the type.  `stub`: its symbol; `axis`,
    `is_stacked`, `may_copy`, `is_mixing`: see `words.DESCRIPTOR`; `is_reduced`: of each result.  `function`: the symbol
    of a view's; `rank`: the dimensions of a table, 0 for any; `pair`: the operators that give the two results.
    `results`: the type of each result of a loop, "" for that of the operands.  `first_of`: the operator whose first
    result is all that callers get, and whose history is theirs.  `work`: that of calls without `entries`, roughly, as
    theirs.
    """

    given: tuple[Given, ...]
    fewest: int
    asked: tuple[int, ...]
    entries: Mapping[str, Entry]
    stub: str = "serve_pointwise"
    axis: int = -1
    is_reduced: Sequence[bool] = (False,)
    is_stacked: bool = False
    may_copy: bool = False
    is_mixing: bool = False
    function: str = ""
    rank: int = 0
    pair: Sequence[str] = ()
    results: Sequence[str] = ()
    first_of: str = ""
    work: int = 0

    @property
    def operands(self) -> int:
        """The number of operands."""
        return sum(each.is_operand for each in self.given)


def fewest(op: Op, given: Sequence[Given]) -> int:
    """The arguments that calls have to give: those that are no defaults, and those before them."""
    return max(i + 1 for i, each in enumerate(given) if not _may_be_missing(op.schema.arguments[i], each))


def _may_be_missing(argument: Argument, given: Given) -> bool:
    """True if the argument's default is what the form takes."""
    if given.kind in ("KEEPS", "UNREAD", "INDEX", "BOUND"):
        return argument.has_default
    is_fixed = given.kind in ("SAME", "EQUAL", "WORDS")
    return is_fixed and argument.has_default and repr(argument.default) == repr(given.value)  # 1, 1.0, True differ


_PLAIN: Final = Form((), 0, (), {})
_FACTS: Final = (
    "stub", "axis", "is_reduced", "is_stacked", "may_copy", "is_mixing", "function", "rank", "pair", "results",
    "first_of", "work",
)  # fmt: skip
"""Facts of forms that lines tell where they are not those of most."""


def line(name: str, forms: Iterable[Form]) -> str:
    """The line of an operator."""
    rows = [
        [
            [[each.kind, each.value] for each in form.given],
            form.fewest,
            form.asked,
            {type: [each.symbol, each.result, each.work] for type, each in form.entries.items()},
            {fact: value for fact in _FACTS if (value := getattr(form, fact)) != getattr(_PLAIN, fact)},
        ]
        for form in forms
    ]
    return f"{name}\t{json.dumps(rows, separators=(',', ':'))}\n"


def lines_of(texts: Iterable[bytes]) -> dict[str, list[bytes]]:
    """The lines of the texts of parts, by operator."""
    found: dict[str, list[bytes]] = {}
    for text in texts:
        for each in text.splitlines():
            name, _, forms = each.partition(b"\t")
            found.setdefault(name.decode(), []).append(forms)
    return found


def read(lines: Iterable[bytes]) -> list[Form]:
    """The forms in the lines of an operator, each with the row functions that it has in any part.

    Forms that take the same are for other sizes; the first one of a part goes with the first one of another.
    """
    found: dict[tuple[str, int], list[Any]] = {}
    for line in lines:
        before: dict[str, int] = {}
        for row in json.loads(line):
            taken = repr(row[0])  # in which 1, 1.0 and True differ
            known = found.setdefault((taken, before.setdefault(taken, 0)), row)
            if known is not row:
                known[3] |= row[3]
            before[taken] += 1
    return [
        Form(
            tuple(Given(kind, value) for kind, value in given),
            fewest,
            tuple(asked),
            {type: Entry(*entry) for type, entry in entries.items()},
            **facts,
        )
        for given, fewest, asked, entries, facts in found.values()
    ]
