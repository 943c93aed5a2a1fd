"""Histories: how the calls of an operator's forms are recorded, in words of 64 bits that stubs read.

In: operators that are recorded for the first time, and their forms.  Out: for each form a row of the addresses of
`words.HISTORY` words, by which of the arguments through which gradients flow require grad, a bit for each; zero where
Python records.  What the words say is the plan of the node that `autograd.record` would make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from engine.aten.autograd.formula import NO_GRADIENT, Read
from engine.aten.autograd.record import Plan
from engine.aten.autograd.specialised_recording import plan_of
from engine.aten.dispatch.op import Op
from engine.fuser.backend import cpython_abi
from engine.fuser.library.descriptors import Recorded, Words
from engine.fuser.library.forms import Form
from engine.fuser.library.words import HISTORY, KEPT, KEPT_KIND, KIND, MOST_RESULTS, RECORDING_TENSORS
from engine.lang.records import dataclass
from engine.lang.schema import NO_DEFAULT

RECORDING: Final = (
    "serve_pointwise", "serve_along", "serve_shaped", "serve_looked_up", "serve_gathered", "serve_shown",
    "serve_converted", "serve_joined", "serve_looped",
)  # fmt: skip
"""The stubs that record."""
TENSORS: Final = tuple(
    name for name, number in KIND.items() if number <= KIND["TRUTHS"] or KIND["WHOLES"] <= number < KIND["OPTIONS"]
)
"""The kinds of arguments of these that are tensors."""


@dataclass(slots=True)
class _Rows:
    """Words that stubs read for as long as the process lives: rows by operator and form, and histories."""

    recorded: dict[tuple[str, str], Recorded] = field(default_factory=dict)
    histories: list[Words] = field(default_factory=list)


_ROWS: Final = _Rows()


def recorded(op: Op, form: Form) -> Recorded | None:
    """The histories of a form, none until the operator is recorded; None where stubs do not record it."""
    if op.functional is not None or not op.gradient:  # what is recorded are writes, or calls of other operators
        return None
    flows = [i for i, a in enumerate(op.schema.arguments) if op.gradient.get(a.name, NO_GRADIENT) != NO_GRADIENT]
    if form.stub not in RECORDING or len(flows) > RECORDING_TENSORS:
        return None
    key = op.qualified_name, repr(form.given[: len(op.schema.arguments)])
    if key not in _ROWS.recorded:
        _ROWS.recorded[key] = Recorded(np.zeros(2**RECORDING_TENSORS, np.int64), flows)
    return _ROWS.recorded[key]


def fill(op: Op, forms: Sequence[Form]) -> None:
    """Let stubs record calls of these forms."""
    for form in forms:
        found = recorded(op, form)
        if found is None or found.row.any():
            continue
        for pattern, history in _histories(op, form, found.flows):
            _ROWS.histories.append(history)
            found.row[pattern] = history.ctypes.data


def _histories(op: Op, form: Form, flows: Sequence[int]) -> Iterator[tuple[int, Words]]:
    for pattern in range(1, 1 << len(flows)):
        needed = tuple(place for bit, place in enumerate(flows) if pattern >> bit & 1)
        plan = plan_of(op, needed)
        if plan is not None and len(plan.reads) <= KEPT:
            yield pattern, _history(op, form, plan)


def _history(op: Op, form: Form, plan: Plan) -> Words:
    """The words for calls that have this plan."""
    words = np.zeros(HISTORY["ALL"], np.int64)
    words[HISTORY["PLAN"]] = cpython_abi.retain(plan)
    through = range(MOST_RESULTS) if plan.recipe.through is None else plan.recipe.through
    words[HISTORY["THROUGH"]] = sum(1 << place for place in through)
    words[HISTORY["EDGES"]], words[HISTORY["KEPTS"]] = len(plan.formulas), len(plan.reads)
    for j, (formula, _) in enumerate(plan.formulas):
        words[HISTORY["EDGE"] + j] = formula.argument
    for j, read in enumerate(plan.reads):
        words[HISTORY["KEPTKIND"] + j] = KEPT_KIND[_kind(form, read)]
        words[HISTORY["KEPTPLACE"] + j] = -1 - read.place if read.is_result else read.place
        default = None if read.is_result else op.schema.arguments[read.place].default
        words[HISTORY["KEPTOBJECT"] + j] = cpython_abi.retain(None if default is NO_DEFAULT else default)
    return words


def _kind(form: Form, read: Read) -> str:
    if read.is_result:
        return "KEPTRESULT" if read.by_value else "KEPTRESULTFORM"
    kind = form.given[read.place].kind if read.place < len(form.given) else "SAME"
    if kind in TENSORS:
        return "KEPTTENSOR" if read.by_value else "KEPTFORM"
    if kind == "LISTS":
        return "KEPTTENSORS" if read.by_value else "KEPTFORMS"
    return "KEPTLIST" if kind in ("AXES", "MANYINTS") else "KEPTGIVEN"
