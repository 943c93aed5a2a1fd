"""`%profile` and `%guards`: what runs have shown, and what plans check because of that."""

from __future__ import annotations

from typing import TypeVar

import pytest

from engine.executor.plans.profiled import MAX_BAILOUTS
from tsrepl.render.terminal import to_text
from tsrepl.session.plan_replies import (
    CostReply,
    ExplainReply,
    GuardedPlan,
    GuardsReply,
    ProfiledValue,
    ProfileReply,
    ProfileRow,
)
from tsrepl.session.replies import ErrorReply, Reply, TextReply
from tsrepl.session.session import Session

R = TypeVar("R", bound=Reply)


@pytest.fixture
def session() -> Session:
    session = Session()
    session.execute("def f(a, b):\n    c = a * b + 1\n    return torch.tanh(c)\n")
    session.execute("x = torch.ones(2, 3)")
    session.execute("y = torch.ones(5, 3)")
    return session


def reply(session: Session, text: str, kind: type[R]) -> R:
    found = [each for each in session.execute(text) if isinstance(each, kind)]
    assert found, text
    return found[0]


def profile(session: Session, text: str) -> ProfileRow:
    (row,) = reply(session, text, ProfileReply).profiles
    return row


def guarded(session: Session, text: str) -> GuardedPlan:
    (plan,) = reply(session, text, GuardsReply).plans
    return plan


def values(row: ProfileRow) -> dict[str, ProfiledValue]:
    return {value.value: value for line in row.lines for value in line.values}


def test_a_function_that_has_not_run_says_what_to_type(session: Session) -> None:
    for command in ("profile", "guards", "explain", "autodiff", "kernels"):
        error = reply(session, f"%{command} f", ErrorReply)
        assert error.message == "f has not run yet"
        assert error.hints == (f"write %{command} f(a, b) to run it",)


def test_a_call_is_profiled_line_by_line(session: Session) -> None:
    row = profile(session, "%profile --types f(x, x)")
    assert (row.function, row.arguments, row.runs) == ("f", "(a: Float(*, *), b: Float(*, *))", 1)
    assert [(line.place, line.text) for line in row.lines] == [
        ("line 2", "c = a * b + 1"), ("line 3", "return torch.tanh(c)"),
    ]  # fmt: skip
    assert values(row)["a * b"] == ProfiledValue("a * b", "Float(2, 3)", (), 1, 0, ("add",))


def test_sizes_that_vary_between_calls_get_a_name(session: Session) -> None:
    session.execute("%profile --types f(x, x)")
    row = profile(session, "%profile --types f(y, y)")
    assert row.runs == 2
    assert row.symbols == (("s0", (2, 5)),)
    assert values(row)["c"].type == "Float(s0, 3)"
    assert values(row)["c"].seen == ("Float(2, 3)", "Float(5, 3)")
    assert profile(session, "%profile f") == row


def test_a_call_shows_the_profile_of_its_own_arguments(session: Session) -> None:
    session.execute("%profile --types f(x, x)")
    session.execute("z = torch.ones(3)")
    assert profile(session, "%profile --types f(z, z)").arguments == "(a: Float(*), b: Float(*))"
    assert len(reply(session, "%profile f", ProfileReply).profiles) == 2


def test_expressions_without_calls_are_profiled_themselves(session: Session) -> None:
    row = profile(session, "%profile --types x * 2 + x")
    assert row.function == "x * 2 + x"
    assert values(row)["x"].users == ("mul", "add")


def test_values_alone_run_nothing(session: Session) -> None:
    assert reply(session, "%profile x", ErrorReply).message == "'x' runs nothing"


def test_calls_that_were_not_profiled_say_so(session: Session, mode: str) -> None:
    session.execute("f(x, x)")
    (row,) = reply(session, "%profile f", ProfileReply).profiles
    counted, direct = "0 more calls found this plan, 0 kernels", "later calls are not counted, 1 kernel"
    told = {"off": (counted,), "eager": (direct,), "background": (counted, direct)}  # there, as soon as kernels come
    assert row.runs == 0 and row.refusal.startswith(told[mode]) and not row.lines
    assert "%profile f(a, b)" in reply(session, "%profile f", TextReply).text
    assert guarded(session, "%guards f").why == "no run was profiled"
    assert "%guards f(a, b)" in reply(session, "%guards f", TextReply).text


def test_guards_have_a_fate_and_a_reason(session: Session) -> None:
    plan = guarded(session, "%guards f(x, x)")
    fates = {guard.value: (guard.type, guard.fate) for line in plan.lines for guard in line.guards}
    assert fates == {
        "a": ("Float(2, 3)", "moved"), "b": ("Float(2, 3)", "moved"), "a * b": ("Float(2, 3)", "eliminated"),
        "c": ("Float(2, 3)", "eliminated"),
    }  # fmt: skip
    assert all("::" not in guard.why for line in plan.lines for guard in line.guards)


def test_a_guard_that_fails_is_shown_with_both_types(session: Session) -> None:
    session.execute("%guards f(x, x)")
    (failure,) = guarded(session, "%guards f(y, y)").failures
    assert (failure.place, failure.value, failure.count) == ("line 2", "a", 1)
    assert (failure.expected, failure.actual) == ("Float(2, 3)", "Float(5, 3)")
    session.execute("f(y, y)")
    waiting = guarded(session, "%guards f")
    assert (waiting.why, waiting.dropped, waiting.failures[0].count) == ("the next call makes a plan", 1, 2)
    session.execute("f(y, y)")
    session.execute("f(y, y)")
    plan = guarded(session, "%guards f")
    assert plan.dropped == 1
    assert plan.failures[0].count == 2
    assert {guard.type for line in plan.lines for guard in line.guards} == {"Float(5, 3)"}


def test_methods_are_called_by_their_class(session: Session) -> None:
    session.execute(
        "class Twice:\n    def __init__(self):\n        pass\n\n    def go(self, x: Tensor):\n        return x + x\n"
    )
    session.execute("t = Twice()")
    assert profile(session, "%profile --types t.go(x)").function == "Twice.go"


def test_what_cannot_be_guarded_says_why_and_is_not_profiled_again(session: Session) -> None:
    session.execute("def g(a):\n    with torch.no_grad():\n        a = a * 2\n    return a + 1\n")
    plan = guarded(session, "%guards g(x)")
    assert plan.why == "it enters contexts, which have to be left in order"
    session.execute("g(x)")
    assert profile(session, "%profile g").runs == 1


def test_a_profile_tells_time_by_line_and_by_node(session: Session) -> None:
    session.execute("def g(a):\n    b = torch.nonzero(a)\n    return torch.nonzero(b) @ b.t()\n")
    costs = reply(session, "%profile g(x)", CostReply)
    assert costs.tiers == (("g(a: Float(*, *))", "code for Python"),)
    assert [(row.name, row.text) for row in costs.lines] == [
        ("line 2", "b = torch.nonzero(a)"), ("line 3", "return torch.nonzero(b) @ b.t()"),
    ]  # fmt: skip
    assert {"nonzero", "call g", "matmul"} <= {row.name for row in costs.nodes}
    assert sum(row.seconds for row in costs.nodes) + costs.left_seconds == pytest.approx(costs.seconds)
    assert not costs.modules


def test_a_profile_names_kernels_for_all_their_lines(session: Session) -> None:
    costs = reply(session, "%profile f(x, x)", CostReply)
    (line,) = [row for row in costs.lines if row.how == "kernel f_1"]
    assert (line.name, line.text) == ("lines 2–3", "c = a * b + 1\nreturn torch.tanh(c)")
    assert costs.tiers[0][1] == "code for Python, with 1 kernel"


def test_a_profile_of_a_module_is_a_tree_of_totals() -> None:
    session = Session()
    session.execute("%load examples/mlp.pt as m")
    session.execute("y = torch.ones(3, 6)")
    costs = reply(session, "%profile m(y)", CostReply)
    rows = {row.name: row for row in costs.modules}
    assert rows[""].total == pytest.approx(costs.seconds)
    assert rows[""].total >= rows[""].seconds + sum(
        row.total for name, row in rows.items() if name.count(".") == 0 and name
    )


def test_guards_that_are_too_many_are_listed_with_the_reason_that_there_are_none() -> None:
    session = Session()
    names = [f"y{at}" for at in range(MAX_BAILOUTS)]
    body = "".join(f"    x = torch.tanh(x) * {name}\n" for name in names)
    session.execute(f"def f(x, {', '.join(names)}):\n{body}    return x\nx = torch.ones(3)")
    shown = reply(session, f"%guards f({', '.join(['x'] * (MAX_BAILOUTS + 1))})", GuardsReply)
    (plan,) = shown.plans
    assert f"{MAX_BAILOUTS + 1} values to guard" in plan.why and f"{MAX_BAILOUTS} at most" in plan.why
    fates = [guard.fate for line in plan.lines for guard in line.guards]
    assert fates.count("left out") == MAX_BAILOUTS + 1 and not {"kept", "moved"} & {*fates}
    assert "would be checked" in to_text(shown, 100)


def test_a_plan_that_a_profile_replaces_is_said_to_be_dropped_and_made_anew(session: Session) -> None:
    session.execute("def g(a):\n    return a * 2")
    assert "dropped" not in reply(session, "%profile --types g(x)", TextReply).text
    session.execute("f(x, x)")
    assert "dropped" in reply(session, "%profile --types f(x, x)", TextReply).text
    session.execute("f(x, x)")
    told = to_text(reply(session, "%explain f", ExplainReply), 100)
    assert "profiled" in told and "evicted" not in told
