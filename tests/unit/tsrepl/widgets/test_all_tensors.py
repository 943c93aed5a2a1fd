"""Views and static pages of calls with tensors of every form: no dimensions, no elements, odd strides, every dtype."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from engine.fuser.backend import machine, tiering
from engine.lang.scalars import DTYPES
from tsrepl.magics.display import bundle
from tsrepl.session.commands import COMMANDS
from tsrepl.session.passing import gathered
from tsrepl.session.replies import ErrorReply, KernelRow, KernelsReply, Reply
from tsrepl.session.session import Session
from tsrepl.widgets import WIDGETS

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")

PROGRAM = """\
def f(x, y):
    return (x * y + x) * 2

def same(x, y):
    return (x == y) & (x != y)

def row(x, i):
    return x[i] * 2 + 1

def quotient(x, i):
    return torch.div(x, i, rounding_mode='floor') + x
"""
FORMS = {
    "no dimensions": "torch.ones([])",
    "no elements": "torch.ones(0)",
    "no elements in a matrix": "torch.ones(3, 0)",
    "one element": "torch.ones(1, 1)",
    "transposed": "torch.ones(3, 2).t()",
    "expanded": "torch.ones(1, 1).expand(4, 3)",
    "with gaps": "torch.ones(4, 6)[::2, ::3]",
}
COMMANDS_ON_CALLS = [*(each.name for each in COMMANDS if "f(x)" in each.usage), "profile --types", "passes", "graph"]


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


@pytest.fixture
def session() -> Session:
    made = Session()
    shown(made, PROGRAM)
    return made


def shown(session: Session, text: str) -> list[Reply]:
    """The replies to the entries, each drawn as a page and as a view; none is an error."""
    replies = [*gathered(session.run_text(text))]
    assert [f"{text}: {each.kind}: {each.message}" for each in replies if isinstance(each, ErrorReply)] == []
    for each in replies:
        draw(each)
    return replies


def draw(reply: Reply) -> None:
    bundle(reply)
    if (make := WIDGETS.get(type(reply))) is not None:
        json.dumps(make(reply).get_state(["data", "shown", "state"]))


@pytest.mark.parametrize("dtype", [each.name for each in DTYPES if not each.name.startswith("q")])
def test_kernels_of_every_dtype_and_form(session: Session, dtype: str) -> None:
    kernels = list[KernelRow]()
    for form in FORMS.values():
        shown(session, f"x = {form}.to(torch.{dtype})")
        for call in ("f(x, x)", "same(x, x)"):
            if any(isinstance(each, ErrorReply) for each in session.run_text(call)):
                continue  # the operators refuse it
            plans = [
                plan
                for each in shown(session, f"%kernels {call}")
                if isinstance(each, KernelsReply)
                for plan in each.plans
            ]
            kernels += [kernel for plan in plans for group in plan.groups for kernel in group.kernels]
    assert kernels or dtype in WITHOUT_KERNELS
    assert all(each.seconds for each in kernels)


WITHOUT_KERNELS = ("complex64", "complex128", "float16", "bfloat16")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS_ON_CALLS)
def test_every_command_on_a_call(session: Session, command: str, form: str) -> None:
    shown(session, f"x = {FORMS[form]}")
    shown(session, f"%{command} f(x, x)")
    shown(session, f"%{command} f(x, torch.tensor(2.5))")


@pytest.mark.parametrize("call", ["row(x, i)", "quotient(x.to(torch.int64), i + 1)"])
def test_kernels_that_refuse_some_integers(session: Session, call: str) -> None:
    """There is one row to index, and nothing to divide by zero."""
    shown(session, "x = torch.ones(1, 4)\ni = torch.zeros(3, 1, dtype=torch.int64)")
    shown(session, f"%kernels {call}")
