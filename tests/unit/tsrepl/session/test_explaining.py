"""`%explain` and `%autodiff`: the story of plans, and the gradients that are compiled for them."""

from __future__ import annotations

import pytest

from engine.fuser.backend import machine
from tsrepl.magics.words import as_magics
from tsrepl.session.plan_replies import AutodiffReply, ExplainReply
from tsrepl.session.replies import KernelsReply, ReportReply, TextReply
from tsrepl.session.session import Session

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")


@pytest.fixture
def session() -> Session:
    session = Session()
    session.execute("def f(a, b):\n    c = torch.tanh(a * b)\n    return torch.dropout(c, 0.5, False).nonzero()\n")
    session.execute("x = torch.ones(2, 3)")
    session.execute("w = torch.ones(2, 3).requires_grad_()")
    return session


def story(session: Session, text: str) -> tuple[ExplainReply, TextReply]:
    found, more = session.execute(text)
    assert isinstance(found, ExplainReply)
    assert isinstance(more, TextReply)
    return found, more


def test_a_story_tells_passes_kernels_and_what_has_none(session: Session) -> None:
    found, more = story(session, "%explain f(x, x)")
    (plan,) = found.plans
    facts = dict(plan.facts)
    assert (plan.function, plan.arguments) == ("f", "(a: Float(*, *), b: Float(*, *))")
    assert facts["kernel"].startswith("f_1: line")
    assert "nonzero (line 3)" in facts["no kernel"]
    assert "changed the graph" in facts["passes"]
    assert "guards" not in facts
    assert more.text.startswith("more: %kernels f, ")
    assert getattr(as_magics(more), "text", "").startswith("more: %tsjit_kernels f, ")


def test_a_story_counts_calls_of_the_prompt_and_tells_failures(session: Session) -> None:
    for text in ("%guards f(x, x)", "y = torch.ones(5, 3)", "f(y, y)", "f(x, x)"):
        session.execute(text)
    found, _ = story(session, "%explain f")
    assert found.summaries == ("f: 5 calls looked for a plan, 1 plan was made, 1 run was profiled",)
    labels = [label for label, _ in found.plans[0].facts]
    assert labels.index("guards") < labels.index("failed") < labels.index("cost")
    assert ("failed", "a, line 2: expected Float(2, 3), got Float(5, 3)") in found.plans[0].facts


def test_differentiable_graphs_have_both_graphs_and_reasons_for_the_rest(session: Session) -> None:
    session.execute("f(w, x)")
    (reply,) = session.execute("%autodiff f(w, x)")
    assert isinstance(reply, AutodiffReply)
    (plan,) = reply.plans
    (group,) = plan.groups
    assert group.lines[0] == ("line 2", "c = torch.tanh(a * b)")
    (split,) = group.splits
    assert (split.arguments, split.required) == (("a: Float(2, 3)", "b: Float(2, 3)"), ("a",))
    assert {each.value for each in split.captured} == {"torch.tanh(a * b)", "b"}
    assert "aten::tanh" in split.forward
    assert split.forward_runs.startswith("runs as 1 kernel")
    assert ("line 3", "nonzero") in [outside[:2] for outside in plan.outside]


def test_calls_that_record_nothing_get_a_hint(session: Session) -> None:
    reply, hint = session.execute("%autodiff f(x, x)")
    assert isinstance(reply, AutodiffReply)
    assert reply.plans[0].why == "nothing that it takes requires grad"
    assert isinstance(hint, TextReply)
    assert "requires_grad_" in hint.text


def test_kernels_of_a_name_are_those_of_earlier_calls(session: Session) -> None:
    session.execute("%explain f(x, x)")
    (reply,) = session.execute("%kernels f")
    assert isinstance(reply, KernelsReply)
    (plan,) = reply.plans
    assert plan.function == "f"
    (group,) = plan.groups
    (kernel,) = group.kernels
    assert kernel.text.startswith("def ")


def test_plans_are_rows_with_the_reason_why_they_were_made() -> None:
    session = Session()
    session.execute("def f(a, b):\n    c = a + b\n    return torch.tanh(c * c)\n")
    session.execute("x = torch.ones(3)\ny = torch.ones(3, dtype=torch.float64)")
    session.execute("f(x, x)\nf(y, x)")
    report, more = session.execute("%plan f(x, x)")
    assert isinstance(report, ReportReply)
    rows = report.sections[0].rows
    assert len(rows) == 2
    assert {row[2] for row in rows} & {"a: Float(*) → Double(*)", "a: Double(*) → Float(*)"}
    assert isinstance(more, TextReply)


def test_a_plan_tells_the_difference_that_it_was_made_for() -> None:
    session = Session()
    session.execute("def f(a, n: int, b: Optional[Tensor] = None):\n    return a * n if b is None else a + b\n")
    session.execute("x = torch.ones(2)")
    calls = ("f(x, 1)", "f(x, 2)", "f(x.double(), 2)", "f(torch.ones(2, 2), 2)", "f(torch.ones(2, 2), 2, x)")
    for call in (*calls, "f(x.clone().requires_grad_(), 2)"):
        session.execute(call)
    (reply, *_) = session.execute("%plan f")
    assert isinstance(reply, ReportReply)
    assert [row[2] for row in reply.sections[0].rows] == [
        "first call",
        "a: Float(*) → Double(*)",
        "a: Double(*) → Float(*, *)",
        "b: undefined → Float(*)",
        "a: Float(*, *) → Float(*, requires_grad), b: Float(*) → undefined",
    ]
    session.execute("%guards f(x, 1)")
    (reply, *_) = session.execute("%plan f")
    assert isinstance(reply, ReportReply)
    assert "profiled anew" in {row[2] for row in reply.sections[0].rows}
