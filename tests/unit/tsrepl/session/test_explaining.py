"""`%explain` and `%autodiff`: the story of plans, and the gradients that are compiled for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import engine.torch as torch
from engine.fuser.backend import machine
from engine.fuser.library import store
from engine.lang.counts import counted
from tsrepl.magics.words import as_magics
from tsrepl.session.commands import NO_GRAD
from tsrepl.session.plan_replies import AutodiffReply, ExplainReply
from tsrepl.session.replies import ErrorReply, HelpReply, KernelsReply, ReportReply, TextReply
from tsrepl.session.session import Session

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * 2.0) + 1.0


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


def test_a_story_says_why_the_library_is_not_used(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "troubles", lambda: ("library: this system makes no memory executable",))
    texts = [reply.text for reply in session.execute("%explain f(x, x)") if isinstance(reply, TextReply)]
    assert texts[0] == (
        "the library of native operators is not used, and numpy is: library: this system makes no memory executable"
    )


def test_a_story_counts_calls_of_the_prompt_and_tells_failures(session: Session) -> None:
    for text in ("%guards f(x, x)", "y = torch.ones(5, 3)", "f(y, y)", "f(x, x)"):
        session.execute(text)
    found, _ = story(session, "%explain f")
    assert found.summaries[0] == "f: 4 calls looked for a plan, 1 plan was made, 1 run was profiled"
    first, rest = found.summaries[1:]
    assert first.startswith("  until call 1: ") and first.endswith(", 1 by the interpreter")
    assert rest.startswith("  until call 4: ") and "; the plan was made in " in rest
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


@pytest.mark.usefixtures("plans_at_once")
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


COMMANDS = ("explain", "plan", "profile", "profile --types", "kernels", "guards")
_SUGGESTED = re.compile(r"%\w+(?: --[\w-]+)* [\w.+*()]+")


@pytest.mark.parametrize("option", ["", "--no-grad "])
@pytest.mark.parametrize("text", ["g(x)", "g(x)+g(x*2)", "(x.tanh()*2).relu()", "g"])
def test_what_replies_suggest_is_asked_as_the_call_was(text: str, option: str) -> None:
    session = Session()
    session.execute("x = torch.ones(2)\ndef g(x):\n    return (x * 2).tanh()\n")
    session.execute("g(x)")
    told = [reply for command in COMMANDS for reply in session.execute(f"%{command} {option}{text}")]
    suggested = {each for reply in told if isinstance(reply, TextReply) for each in _SUGGESTED.findall(reply.text)}
    calls = {each for each in suggested if each.endswith(")")}
    assert calls or text == "g"
    assert all(f" {NO_GRAD} " in each for each in calls) if option else NO_GRAD not in "".join(calls)
    failed = [each for each in suggested for reply in session.execute(each) if isinstance(reply, ErrorReply)]
    assert failed == []


@pytest.mark.parametrize("kinds", [1, 3, 4, 6])
def test_plans_that_a_story_leaves_out_are_counted(kinds: int) -> None:
    session = Session()
    session.execute("def g(x):\n    return (x * 2).tanh()\n")
    for rank in range(kinds):
        session.execute(f"g(torch.ones({[1] * rank}))")
    found, *hints = session.execute("%explain g")
    assert isinstance(found, ExplainReply)
    made = counted(kinds, "plan was", "plans were")
    assert found.summaries[0] == f"g: {counted(kinds, 'call')} looked for a plan, {made} made"
    earlier = [hint.text for hint in hints if isinstance(hint, TextReply) and "earlier" in hint.text]
    left_out = kinds - len(found.plans)
    assert earlier == ([f"g has {counted(left_out, 'earlier plan')}: %plan g shows all"] if left_out else [])
    (report, _) = session.execute("%plan g")
    assert isinstance(report, ReportReply)
    assert len(report.sections[0].rows) == kinds


def test_what_columns_of_plans_count_is_told_below_them_and_in_the_help() -> None:
    session = Session()
    session.execute("1 + 1")
    (report, _) = session.execute("%plan torch.ones(2).tanh()")
    assert isinstance(report, ReportReply)
    section = report.sections[0]
    counts = {title.lstrip(">") for title in section.columns} & {"hits", "misses", "failures"}
    assert len(counts) == 3
    (help,) = session.execute("%help plan")
    assert isinstance(help, HelpReply)
    for text in (section.note, " ".join(help.paragraphs).lower()):
        assert all(count in text for count in counts)


def test_a_story_says_that_a_plan_is_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    torch.jit.script(Doubled()).save(str(tmp_path / "m.pt"))
    told = []
    for _ in range(2):
        session = Session()
        session.execute(f"%load {tmp_path / 'm.pt'} as m")
        session.execute("x = torch.ones(3)")
        (plan,) = story(session, "%explain m(x)")[0].plans
        (table,) = (reply for reply in session.execute("%plan m") if isinstance(reply, ReportReply))
        told.append((dict(plan.facts)["made"].startswith("by another program, "), table.sections[0].rows[0][-1]))
    assert [is_kept for is_kept, _ in told] == [False, True]
    assert [made.endswith(", by another program") for _, made in told] == [False, True]
    passes = session.execute("%passes m")
    assert any("changed the graph" in reply.text for reply in passes if isinstance(reply, TextReply))
