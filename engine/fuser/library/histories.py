"""Histories: how the calls of an operator's forms are recorded, in words of 64 bits that stubs read.

In: operators that are recorded for the first time, and their forms.  Out: for each form a row of the addresses of
`words.HISTORY` words, by which of its tensors require grad, a bit for each; zero where Python records.  What the words
say is the plan of the node that `autograd.specialised_recording` would make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from engine.aten.autograd.formula import Read
from engine.aten.autograd.specialised_recording import plan_of
from engine.aten.dispatch.op import Op
from engine.fuser.backend import cpython_abi
from engine.fuser.library.descriptors import Words
from engine.fuser.library.forms import Form
from engine.fuser.library.words import HISTORY, KEPT, KEPT_KIND, KIND, RECORDING_TENSORS
from engine.lang.records import dataclass
from engine.lang.schema import NO_DEFAULT

RECORDING: Final = (
    "serve_pointwise", "serve_along", "serve_shaped", "serve_looked_up", "serve_gathered", "serve_shown",
    "serve_converted",
)  # fmt: skip
"""The stubs that record."""
TENSORS: Final = tuple(name for name, number in KIND.items() if number <= KIND["TRUTHS"] or number >= KIND["WHOLES"])
"""The kinds of arguments of these that are tensors."""


@dataclass(slots=True)
class _Rows:
    """Rows by operator and form, which stubs read for as long as the process lives, and what they lead to."""

    rows: dict[tuple[str, str], Words] = field(default_factory=dict)
    histories: list[Words] = field(default_factory=list)


_ROWS: Final = _Rows()


def row_of(op: Op, form: Form) -> Words | None:
    """The row of a form, zeros until the operator is recorded; None where stubs do not record it."""
    if op.functional is not None or op.python is not None:  # what is recorded are writes, or calls of other operators
        return None
    if form.stub not in RECORDING:
        return None
    return _ROWS.rows.setdefault((op.qualified_name, repr(form.given)), np.zeros(2**RECORDING_TENSORS, np.int64))


def fill(op: Op, forms: Sequence[Form]) -> None:
    """Let stubs record calls of these forms."""
    for form in forms:
        row = row_of(op, form)
        if row is None or row.any():
            continue
        for pattern, history in _histories(op, form):
            _ROWS.histories.append(history)
            row[pattern] = history.ctypes.data


def _histories(op: Op, form: Form) -> Iterator[tuple[int, Words]]:
    tensors = [i for i, each in enumerate(form.given) if each.kind in TENSORS]
    if len(tensors) > RECORDING_TENSORS:
        return
    for pattern in range(1, 1 << len(tensors)):
        needed = tuple(place for bit, place in enumerate(tensors) if pattern >> bit & 1)
        history = _history(op, form, needed)
        if history is not None:
            yield pattern, history


def _history(op: Op, form: Form, needed: tuple[int, ...]) -> Words | None:
    """The words for calls of which these arguments require grad."""
    plan = plan_of(op, needed)
    if plan is None or len(plan.reads) > KEPT:
        return None
    words = np.zeros(HISTORY["ALL"], np.int64)
    words[HISTORY["PLAN"]] = cpython_abi.retain(plan)
    words[HISTORY["EDGES"]], words[HISTORY["KEPTS"]] = len(plan.formulas), len(plan.reads)
    for j, (formula, _) in enumerate(plan.formulas):
        words[HISTORY["EDGE"] + j] = formula.argument
    for j, read in enumerate(plan.reads):
        words[HISTORY["KEPTKIND"] + j] = KEPT_KIND[_kind(form, read)]
        words[HISTORY["KEPTPLACE"] + j] = -1 if read.is_result else read.place
        default = None if read.is_result else op.schema.arguments[read.place].default
        words[HISTORY["KEPTOBJECT"] + j] = cpython_abi.retain(None if default is NO_DEFAULT else default)
    return words


def _kind(form: Form, read: Read) -> str:
    if read.is_result:
        return "KEPTRESULT" if read.by_value else "KEPTRESULTFORM"
    kind = form.given[read.place].kind if read.place < len(form.given) else "SAME"
    if kind in TENSORS:
        return "KEPTTENSOR" if read.by_value else "KEPTFORM"
    return "KEPTLIST" if kind in ("AXES", "MANYINTS") else "KEPTGIVEN"
