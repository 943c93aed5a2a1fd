"""The commands: what each answers, and what it says to those who mistype it."""

import os
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.explanation import explain
from engine.ir.graph import Graph
from tsrepl.render.terminal import to_text
from tsrepl.session import Session
from tsrepl.session.commands import COMMANDS
from tsrepl.session.replies import (
    CodeReply,
    EditReply,
    ErrorReply,
    GpuKernelsReply,
    GraphReply,
    HelpReply,
    KernelsReply,
    ListingReply,
    ModuleReply,
    PassesReply,
    PassReply,
    Reply,
    SchemaReply,
    TextReply,
    TimeReply,
    TraceReply,
    TreeReply,
    ValueReply,
    WhoReply,
)

R = TypeVar("R")
GRAPH = """\
graph(%a.1 : Tensor,
      %b.1 : Tensor):
  %4 : int = prim::Constant[value=1]()
  %c.1 : Tensor = aten::add(%a.1, %b.1, %4)
  %8 : Tensor = aten::mul(%c.1, %c.1)
  return (%8)
"""


@pytest.fixture
def session() -> Session:
    session = Session()
    session.execute("def f(a, b):\n    c = a + b\n    return c * c\n")
    session.execute("def twice(n: int):\n    m = half(n)\n    return m * 4\n\ndef half(n: int):\n    return n // 2\n")
    session.execute("x = torch.ones(2)")
    return session


@pytest.fixture
def run(session: Session) -> Callable[[str, type[R]], R]:
    """Runs a command line and gives its last reply, which must be of that kind."""

    def run(text: str, kind: type[R]) -> R:
        reply = session.execute(text)[-1]
        assert isinstance(reply, kind), reply
        return reply

    return run


Run = Callable[[str, type[R]], R]


def test_graph(run: Run[GraphReply]) -> None:
    assert run("%graph f", GraphReply).text == GRAPH.rstrip("\n")
    assert run("%graph --no-lines f", GraphReply) == GraphReply("f", GRAPH)


def test_graph_of_an_expression(run: Run[GraphReply]) -> None:
    assert "aten::add" in run("%graph x + 1", GraphReply).text


def test_passes_leave_the_function_alone(session: Session) -> None:
    start, *passes = _passes(session, "%passes twice")
    inline, *others = [each for each in passes if isinstance(each, PassReply) and each.changed]
    assert isinstance(start, PassesReply)
    assert (inline.names, inline.before.text) == (("inline",), start.start.text)
    assert "prim::CallFunction" in inline.before.text
    assert "aten::floordiv" in inline.after.text
    assert ("prim::CallFunction", -1) in inline.changes and ("aten::floordiv", 1) in inline.changes
    assert all(a.after.text == b.before.text for a, b in zip([inline, *others], others, strict=False))
    assert str(session.function("twice").graph) == start.start.text


def test_passes_may_be_chosen(session: Session) -> None:
    assert _names(_passes(session, "%passes f dce cse")) == ["dce", "cse"]
    assert _names(_passes(session, "%passes f dce,cse, inline")) == ["dce", "cse", "inline"]
    assert _names(_passes(session, "%passes x + 1 dce")) == ["dce"]


def test_passes_in_a_row_that_change_nothing_are_one_reply(session: Session) -> None:
    _, *passes, last = _passes(session, "%passes f dce dce dce")
    assert [each.names for each in passes if isinstance(each, PassReply)] == [("dce", "dce", "dce")]
    assert isinstance(last, TextReply) and last.text.startswith("3 passes, none changed the graph")


def test_passes_come_as_they_end_and_texts_are_made_when_looked_at(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Graph, "__str__", lambda graph: pytest.fail("printed"))
    replies = session.run_text("%passes twice")
    assert isinstance(next(replies), PassesReply)
    assert isinstance(next(replies), PassReply)
    replies.close()


def test_passes_of_what_has_run_are_those_that_made_its_plan(session: Session) -> None:
    session.execute("f(x, x)")
    replies = _passes(session, "%passes f")
    (plan,) = explain(session.function("f")).plans
    assert isinstance(replies[0], PassesReply) and replies[0].title == "f(a: Float(*), b: Float(*))"
    assert _names(replies) == [each.name for each in plan.passes]
    (refined,) = [each for each in replies if isinstance(each, PassReply) and each.names == ("refine_inputs",)]
    assert "Float(*" in refined.after.text and "Float(*" not in refined.before.text
    assert _names(_passes(session, "%passes f(x, x)"))[: len(plan.passes)] == _names(replies)


def test_passes_form_groups_and_make_no_kernels() -> None:
    session = Session()
    session.execute("def g(x):\n    return torch.tanh(x * 2) + x\nx = torch.ones(3)")
    assert "create_fusion_groups" in _names(_passes(session, "%passes g(x)"))
    (group,) = explain(session.function("g")).plans[-1].groups
    assert group.kernels == ()
    session.execute("%kernels g(x)")
    (group,) = explain(session.function("g")).plans[-1].groups
    assert len(group.kernels) == 1


def test_passes_of_something_long_say_at_once_what_is_going_on() -> None:
    session = Session()
    session.execute("def g(x):\n" + "    x = x + 1\n" * 200 + "    return x\nx = torch.ones(3)")
    replies = session.run_text("%passes g(x)")
    assert next(replies) == TextReply("g(x) is not called, but planned: these are the passes that make its plan")
    assert explain(session.function("g")).plans == ()
    assert isinstance(next(replies), PassesReply)


def _passes(session: Session, text: str) -> list[Reply]:
    replies = session.execute(text)
    assert isinstance(replies[0], PassesReply), replies
    return replies


def _names(replies: list[Reply]) -> list[str]:
    return [name for each in replies if isinstance(each, PassReply) for name in each.names]


def test_an_unknown_pass_is_named(run: Run[ErrorReply]) -> None:
    reply = run("%passes f dcee", ErrorReply)
    assert "'dcee'" in reply.message
    assert reply.hints == ("did you mean 'dce'?", "%help passes lists them")
    assert run("%passes f xyzzy", ErrorReply).hints == ("%help passes lists them",)


def test_more_shows_the_variants_of_an_error(run: Run[ErrorReply]) -> None:
    reply = run('torch.add("a", 1)', ErrorReply)
    assert reply.hints[0] == "convert it: str(1)"
    assert "%more shows" in to_text(reply) and "aten::add.Scalar_out" not in to_text(reply)
    whole = run("%more", ErrorReply)
    assert "aten::add.Scalar_out" in to_text(whole) and "%more" not in to_text(whole)
    assert run("%more", ErrorReply) == whole
    (nothing,) = Session().execute("%more")
    assert isinstance(nothing, ErrorReply) and "no error" in nothing.message


def test_code(run: Run[CodeReply]) -> None:
    assert run("%code f", CodeReply).text.startswith("def f(a: Tensor,\n    b: Tensor) -> Tensor:\n")


def test_tree_is_as_it_was_typed(run: Run[TreeReply]) -> None:
    assert run("%tree f", TreeReply).text.startswith("(def (ident f)\n  (decl")
    assert run("%tree x + 1", TreeReply).text == "(+ (variable (ident x)) (const 1))"


def test_instructions_tell_constants_variables_and_lines(run: Run[ListingReply], session: Session) -> None:
    session.execute("def g(a):\n    c = a + 7\n    return f(c, c)\n")
    rows = {row.text.partition("= ")[2].split(" ")[0]: row for row in run("%instructions g", ListingReply).rows}
    assert rows["Constant"].text.endswith("7") or "f" in rows["Constant"].text
    assert (rows["add"].variables, rows["add"].place) == ("c", "line 2")
    assert " CallFunction f " in rows["CallFunction"].text


def test_kernels_of_recorded_calls_are_those_of_forward_and_backward_graphs(
    run: Run[KernelsReply], session: Session
) -> None:
    session.execute("x.requires_grad_()")
    session.execute("f(x, x).sum().backward()")
    (plan,) = run("%kernels f(x, x)", KernelsReply).plans
    assert plan.groups and not plan.why


def test_kernels_on_a_gpu_need_none(run: Run[GpuKernelsReply]) -> None:
    reply = run("%kernels f(x, x) --target sm_90", GpuKernelsReply)
    (kernel,) = reply.kernels
    assert ".target sm_90" in kernel.text and kernel.bytes
    (launch,) = kernel.launches
    assert (launch.blocks, launch.threads, launch.team) == (1, 256, 1)
    shown = run("%kernels f(x, x) --target sm_80 kernel", GpuKernelsReply)
    assert shown.kernels[0].text.startswith("def group(")


def test_kernels_on_a_gpu_say_what_they_take(run: Run[ErrorReply]) -> None:
    assert "architecture" in str(run("%kernels f(x, x) --target", ErrorReply))
    assert "no form" in run("%kernels f(x, x) --target sm_90 asm", ErrorReply).message


@pytest.mark.parametrize("target", ["sm_99", "sm_1", "sm_", "sm_90b", "gfx90a"])
def test_an_architecture_that_there_is_not_is_an_error_of_ours(
    run: Run[ErrorReply], target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    error = run(f"%kernels f(x, x) --target {target}", ErrorReply)
    assert error.message == f"'{target}' is no architecture of a GPU"
    assert "sm_90" in error.hints[0]
    assert capfd.readouterr().err == ""


def test_trace_of_a_call_leaves_out_the_entry_around_it(run: Run[TraceReply]) -> None:
    reply = run("%trace twice(6)", TraceReply)
    assert [row.function for row in reply.rows if "floordiv" in row.instruction] == ["half"]
    (product,) = [row for row in reply.rows if " mul " in row.instruction]
    assert [value for _, value in product.reads] == ["3", "4"]
    assert [value for _, value in product.writes] == ["12"]
    assert {row.depth for row in reply.rows} == {0, 1}
    assert reply.result == "12"


def test_trace_of_a_long_loop_is_cut_and_counted(run: Run[TraceReply], session: Session) -> None:
    session.execute("def loop(n: int):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n")
    reply = run("%trace loop(3000)", TraceReply)
    assert reply.left_out > 0
    assert reply.head == len(reply.rows) // 2
    assert "Store" in reply.rows[-1].instruction
    assert reply.result == str(sum(range(3000)))


def test_trace_shows_the_instructions_that_are_asked_for(run: Run[TraceReply], session: Session) -> None:
    session.execute("def loop(n: int):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n")
    rows = run("%trace --op add loop(3)", TraceReply).rows
    assert {row.instruction.split(" ")[2] for row in rows} == {"add"}
    assert {row.place for row in run("%trace --line 4 loop(3)", TraceReply).rows} != set()
    assert len(run("%trace --last 3 loop(3)", TraceReply).rows) == 3
    named = run("%trace --value t loop(3)", TraceReply)
    assert named.note == "variable t"
    assert all("t" in {name for name, _ in (*row.reads, *row.writes)} for row in named.rows)


def test_trace_ends_where_nan_appears(run: Run[TraceReply], session: Session) -> None:
    session.execute("def g(a):\n    b = a - 1\n    c = torch.log(b)\n    return c + 1\n")
    reply = run("%trace --first-nan g(torch.zeros(2))", TraceReply)
    assert " log " in reply.rows[-1].instruction
    assert reply.result == "the trace ends where NaN appeared first"


def test_an_interrupted_trace_is_shown_up_to_its_line(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.execute("def loop(n: int):\n    t = 0\n    for i in range(n):\n        t = t * 3 + i\n    return t\n")
    step, left = InterpreterState.step, 100

    def interrupted(state: InterpreterState) -> bool:
        nonlocal left
        left -= 1
        if left < 0 and state.frame.instruction.name == "mul":
            raise KeyboardInterrupt
        return step(state)

    monkeypatch.setattr(InterpreterState, "step", interrupted)
    trace, error = session.execute("%trace loop(1000000)")
    assert isinstance(trace, TraceReply) and isinstance(error, ErrorReply)
    assert len(trace.rows) > 50 and trace.result == "none: the run stopped at entry 4:4"
    assert (error.kind, error.places[-1].location) == ("Interrupted", "entry 4, line 4, in loop")


def test_a_trace_that_fails_is_shown_up_to_its_error(session: Session) -> None:
    session.execute("def boom(x):\n    y = x + 1\n    return y.view(7)\n")
    trace, error = session.execute("%trace boom(x)")
    assert isinstance(trace, TraceReply) and [row.function for row in trace.rows][-1] == "boom"
    assert isinstance(error, ErrorReply) and error.places[-1].location == "entry 4, line 3, in boom"


def test_trace_leaves_out_what_only_moves_values(run: Run[TraceReply], session: Session) -> None:
    def instructions(text: str) -> str:
        return " ".join(row.instruction for row in run(text, TraceReply).rows)

    every, few = instructions("%trace --all f(x, x)"), instructions("%trace f(x, x)")
    assert "Load" in every and "Constant" in every
    assert "Load" not in few and "Constant" not in few and "add" in few


def test_trace_refuses_options_that_it_does_not_have(run: Run[ErrorReply]) -> None:
    assert "--first-nan" in run("%trace --every f(x, x)", ErrorReply).hints[0]
    assert run("%trace --line x f(x, x)", ErrorReply).message == "--line wants a number, not 'x'"


def test_schema_of_functions_and_operators(run: Run[SchemaReply]) -> None:
    assert run("%schema f", SchemaReply).schemas == ("f(Tensor a, Tensor b) -> Tensor",)
    relu = "aten::relu(Tensor self) -> Tensor"
    for name in ("torch.relu", "aten::relu", "relu"):
        assert relu in run(f"%schema {name}", SchemaReply).schemas


def test_schema_of_nothing(run: Run[ErrorReply]) -> None:
    assert run("%schema reluu", ErrorReply).hints == ("did you mean 'relu'?",)


def test_ops(run: Run[SchemaReply]) -> None:
    assert any(text.startswith("aten::leaky_relu(") for text in run("%ops relu", SchemaReply).schemas)
    assert {text.partition("(")[0].partition(".")[0] for text in run("%ops re?u", SchemaReply).schemas} == {
        "aten::relu"
    }
    many = run("%ops a", SchemaReply)
    assert len(many.schemas) < many.total


def test_time(run: Run[TimeReply]) -> None:
    reply = run("%time half(8)", TimeReply)
    assert 0 < reply.best <= reply.mean
    assert reply.loops > 1


def test_who_and_reset(run: Run[Reply]) -> None:
    who = run("%who", WhoReply)
    assert isinstance(who, WhoReply)
    assert [binding.name for binding in who.bindings] == ["f", "twice", "half", "x"]
    assert run("%reset", TextReply) == TextReply("forgot 4 names", "done")
    assert run("%who", WhoReply) == WhoReply(())


def test_every_row_names_a_function() -> None:
    assert all(callable(command.function) for command in COMMANDS)


def test_help_lists_every_command(run: Run[HelpReply]) -> None:
    topics = run("%help", HelpReply).topics
    assert sorted(topic.usage for topic in topics) == sorted(command.usage for command in COMMANDS)
    assert all(topic.group for topic in topics)
    assert len(list(groupby(topics, lambda topic: topic.group))) == 4


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_of_each(run: Run[HelpReply], command: object) -> None:
    usage = getattr(command, "usage")  # noqa: B009
    assert run(f"%help {getattr(command, 'name')}", HelpReply).title == usage  # noqa: B009


def test_the_nearest_command_is_suggested(run: Run[ErrorReply]) -> None:
    reply = run("%grpah f", ErrorReply)
    assert reply.message == "there is no command %grpah"
    assert reply.hints == ("did you mean '%graph'?",)


@pytest.mark.parametrize("text", ["%graph", "%save", "%load", "%run", "%time", "%trace"])
def test_a_missing_argument_shows_the_usage(run: Run[ErrorReply], text: str) -> None:
    assert text in run(text, ErrorReply).hints[0]


@pytest.mark.parametrize(
    "text", ["%graph nosuch", "%code nosuch", "%tree nosuch", "%passes nosuch", "%instructions nosuch"]
)
def test_an_unknown_function_is_one_clear_error(run: Run[ErrorReply], text: str) -> None:
    assert run(text, ErrorReply).message == "nothing is called 'nosuch'"


# -- files


def test_a_function_is_saved_and_loaded_as_a_module(run: Run[Reply], session: Session, tmp_path: Path) -> None:
    path = tmp_path / "f.pt"
    run(f"%save f {path}", TextReply)
    run(f"%load {path} as m", TextReply)
    assert isinstance(run("m", ModuleReply), ModuleReply)
    shown = run("m(x, x).sum().item()", ValueReply)
    assert isinstance(shown, ValueReply)
    assert shown.value == 8.0
    graph = run("%graph m.forward", GraphReply)
    assert isinstance(graph, GraphReply)
    assert "aten::mul" in graph.text


def test_the_name_comes_from_the_file(run: Run[Reply], session: Session, tmp_path: Path) -> None:
    run(f"%save f '{tmp_path}/my net-2.pt'", TextReply)
    run(f"%load '{tmp_path}/my net-2.pt'", TextReply)
    assert "my_net_2" in [binding.name for binding in session.bindings()]


def test_tensors_go_to_npy_and_back(run: Run[Reply], session: Session, tmp_path: Path) -> None:
    run(f"%save x {tmp_path}/x.npy", TextReply)
    run(f"%load {tmp_path}/x.npy as y", TextReply)
    assert isinstance(run("y.sum().item()", ValueReply), ValueReply)
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.zeros(3, dtype=np.int64))
    session.execute(f"%load {tmp_path}/two.npz")
    assert {"two_a", "two_b"} <= {binding.name for binding in session.bindings()}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (None, "No such file"),
        (b"hello", "Archive error"),
        (b"", "Archive error"),
        (b"PK\x03\x04" + b"\0" * 60, "Archive error"),
    ],
    ids=["missing", "text", "empty", "broken zip"],
)
def test_loading_what_is_no_archive(run: Run[ErrorReply], tmp_path: Path, content: bytes | None, kind: str) -> None:
    if content is not None:
        (tmp_path / "bad.pt").write_bytes(content)
    assert run(f"%load {tmp_path}/bad.pt", ErrorReply).kind == kind


def test_loading_a_truncated_archive(run: Run[Reply], tmp_path: Path) -> None:
    run(f"%save f {tmp_path}/f.pt", TextReply)
    whole = (tmp_path / "f.pt").read_bytes()
    (tmp_path / "half.pt").write_bytes(whole[: len(whole) // 2])
    reply = run(f"%load {tmp_path}/half.pt", ErrorReply)
    assert isinstance(reply, ErrorReply)
    assert reply.kind == "Archive error"


def test_python_objects_are_refused(run: Run[ErrorReply], tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "Python objects" in run(f"%load {tmp_path}/o.npy", ErrorReply).message


@pytest.mark.parametrize("name", ["f", "x"])
def test_saving_where_nothing_can_be_written_leaves_nothing(run: Run[ErrorReply], tmp_path: Path, name: str) -> None:
    run(f"%save {name} {tmp_path}/nowhere/{name}.npy", ErrorReply)
    run("%save x.y", ErrorReply)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_entries_runs_in_the_session(run: Run[Reply], session: Session, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import torch\n\ndef g(n: int):\n    return half(n)\n\nz = g(10)\n%graph g\n")
    run(f"%run {tmp_path}/p.py", GraphReply)
    shown = run("z", ValueReply)
    assert isinstance(shown, ValueReply)
    assert shown.value == 5


def test_errors_in_a_file_name_the_file_and_line(run: Run[ErrorReply], tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("a = 1\n\nb = nope\nc = 1\n")
    assert run(f"%run {tmp_path}/p.py", ErrorReply).location == f"{tmp_path}/p.py, line 3"
    assert run("c", ErrorReply).message == "undefined value c"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"PK\x03\x04", b"a\x00b"], ids=["latin", "archive", "binary"])
def test_running_what_is_no_text(run: Run[ErrorReply], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.py").write_bytes(content)
    assert "p.py" in run(f"%run {tmp_path}/p.py", ErrorReply).message


@pytest.mark.parametrize("text", ["x = 3\n%save x out", "x = [1]\n%save x out.pt"])
def test_what_no_file_can_hold_is_not_saved(run: Run[ErrorReply], text: str) -> None:
    assert "only modules, functions and tensors are saved" in run(text, ErrorReply).message


def test_bisect_says_whether_a_pass_changes_the_result(run: Run[TextReply]) -> None:
    reply = run("%bisect half(8)", TextReply)
    assert (reply.text, reply.level) == ("no rewrite of 6 passes changes the result", "done")
    assert run("%bisect half(8) inline dce", TextReply).text == "no rewrite of 2 passes changes the result"


def test_run_calls_main_where_it_needs_no_arguments(session: Session, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(n: int = 2):\n    return n + 1\n")
    reply = session.execute(f"%run {tmp_path / 'p.py'}")[-1]
    assert isinstance(reply, ValueReply) and reply.value == 3
    (tmp_path / "q.py").write_text("def main(n: int):\n    return n + 1\n")
    reply = session.execute(f"%run {tmp_path / 'q.py'}")[-1]
    assert isinstance(reply, TextReply) and reply.text == "main takes arguments, so it has not been called"
    (tmp_path / "r.py").write_text("x = 1\n")
    assert session.execute(f"%run {tmp_path / 'r.py'}") == []


def test_help_lists_the_passes(session: Session) -> None:
    reply = session.execute("%help passes")[0]
    assert isinstance(reply, HelpReply) and "constant_propagation" in [topic.usage for topic in reply.topics]


def test_graphs_with_lines_tell_the_place_of_each_node(run: Run[GraphReply], session: Session) -> None:
    session.execute("def g(a):\n    c = a + 7\n    return c * c\n")
    reply = run("%graph g", GraphReply)
    lines = dict(zip(reply.text.split("\n"), reply.places, strict=True))
    assert [place for text, place in lines.items() if "aten::" in text] == ["line 2", "line 3"]
    assert run("%graph --no-lines g", GraphReply).places == ()
    assert run("%instructions g", ListingReply).rows[-1].place
    assert not any(row.place for row in run("%instructions --no-lines g", ListingReply).rows)
    assert not any(row.place for row in run("%trace --no-lines g(torch.ones(2))", TraceReply).rows)


def test_classes_have_their_own_names_but_on_request(run: Run[GraphReply], session: Session) -> None:
    session.execute("%load examples/mlp.pt as m")
    assert "%fc1.1 : Linear =" in run("%graph m", GraphReply).text
    assert "%fc1.1 : __torch__.torch.nn.modules.linear.Linear =" in run("%graph --full m", GraphReply).text


def test_generated_text_is_told_from_the_authors(run: Run[GraphReply], session: Session) -> None:
    session.execute("%load examples/mlp.pt as m")
    reply = run("%graph m", GraphReply)
    assert {place.partition(":")[0] for place in reply.places if place} == {"make_archives.py", "code/__torch__.py"}


def test_traces_tell_the_module_of_each_call(run: Run[TraceReply], session: Session) -> None:
    session.execute("%load examples/mlp.pt as m")
    session.execute("y = torch.ones(3, 6)")
    rows = run("%trace m(y)", TraceReply).rows
    calls = {(row.module, row.function) for row in rows}
    assert {("", "MLP.forward"), ("fc1", "Linear.forward"), ("drop", "dropout")} <= calls
    assert {row.module for row in run("%trace --module fc1 m(y)", TraceReply).rows} == {"fc1"}


def test_traces_of_plans_name_kernels_for_what_they_stand_for(run: Run[TraceReply], session: Session) -> None:
    session.execute("def g(a):\n    b = torch.tanh(a * 2)\n    return torch.nonzero(b)\n")
    session.execute("y = torch.ones(3)")
    reply = run("%trace --plan g(y)", TraceReply)
    assert reply.tiers == (("g(a: Float(*))", "code for Python, with 1 kernel"),)
    fused = {row.instruction.split(" ")[2] for row in reply.rows if row.kernel == "kernel g_1"}
    assert {"mul", "tanh"} <= fused
    assert "nonzero" not in fused
    assert run("%trace g(y)", TraceReply).tiers == ()


@pytest.mark.parametrize("text", ["f?", "f??", "help(f)", "%doc f"])
def test_help_about_a_function(session: Session, text: str) -> None:
    session.execute("def f(a: int):\n    return a")
    assert session.execute(text) == [SchemaReply("f", ("f(int a) -> int",))]


def test_help_about_values_and_operators(session: Session) -> None:
    session.execute("x = torch.ones(2)")
    shown, value = session.execute("x?")
    assert isinstance(shown, TextReply) and shown.text == "x: Tensor"
    assert isinstance(value, ValueReply)
    for text in ("torch.relu?", "x.relu?", "help(relu)"):
        reply, *_ = session.execute(text)
        assert isinstance(reply, SchemaReply) and "aten::relu(Tensor self) -> Tensor" in reply.schemas
    (error,) = session.execute("nothing_of_that_name?")
    assert isinstance(error, ErrorReply)
    assert isinstance(session.execute("help()")[0], HelpReply)


def test_edit() -> None:
    session = Session()
    assert session.execute("%edit") == [EditReply("")]
    session.execute("def f(x):\n    return x\nclass A:\n    n: int")
    session.execute("1 + 1")
    assert session.execute("%edit") == [EditReply("1 + 1")]
    assert session.execute("%edit f") == [EditReply("def f(x):\n    return x")]
    (reply,) = session.execute("%edit fx")
    assert isinstance(reply, ErrorReply) and reply.hints == ("did you mean 'f'?",)


def test_history(session: Session) -> None:
    session.execute("1")
    session.execute("def f(x):\n    return x")
    (reply,) = session.execute("%history 2")
    assert isinstance(reply, CodeReply) and reply.text == "def f(x):\n    return x\n%history 2"
    assert isinstance(session.execute("%history x")[0], ErrorReply)


def test_folder_and_environment(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TSREPL_TEST", "old")
    (tmp_path / "a b").mkdir()
    assert session.execute("%cd 'a b'") == [TextReply(str(tmp_path / "a b"))]
    assert session.execute("%env TSREPL_TEST") == [TextReply("TSREPL_TEST=old")]
    session.execute("%env TSREPL_TEST = new")
    assert os.environ["TSREPL_TEST"] == "new"
    assert isinstance(session.execute("%env NO_SUCH_NAME")[0], ErrorReply)
    assert isinstance(session.execute("%cd nowhere")[0], ErrorReply)


def test_timeit_is_time(session: Session) -> None:
    assert isinstance(session.execute("%timeit 1 + 1")[-1], TimeReply)


def test_help_begins_with_the_module_that_is_loaded(session: Session) -> None:
    archive = Path(__file__).parents[4] / "examples" / "mlp.pt"
    session.execute(f"%load {archive} as net")
    reply = session.execute("%help")[0]
    assert isinstance(reply, HelpReply) and "%explain net(x)" in [each.usage for each in reply.start]
