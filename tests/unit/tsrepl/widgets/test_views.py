"""Views: what they show is what ran, what they are asked is checked, what is saved stays small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.machine import MachineError
from tests.viewed_program import VIEWED
from tsrepl.magics.display import bundle
from tsrepl.session.passing import gathered
from tsrepl.session.plan_replies import CostReply, CostRow
from tsrepl.session.replies import ErrorReply, Later, PassesReply, PassReply, PipelineReply, Reply, TraceReply
from tsrepl.session.session import Session
from tsrepl.widgets import WIDGETS
from tsrepl.widgets.heat import CELLS, looked_at
from tsrepl.widgets.messages import Find, Fold, Refused, Show, message_of
from tsrepl.widgets.trace import TracePlayer
from tsrepl.widgets.view import View, spans

PROGRAM = f"""{VIEWED}
def inside(x):
    x.add_(1)
    return x * 2
"""
SAVED = 2_000_000


@pytest.fixture
def session() -> Session:
    made = Session()
    for text in (PROGRAM, "x = torch.randn(4, 8)"):
        assert not [each for each in made.run_text(text) if isinstance(each, ErrorReply)]
    return made


def view(session: Session, command: str) -> View:
    replies: Iterator[Reply] = gathered(session.run_text(command))
    return next(WIDGETS[type(reply)](reply) for reply in replies if type(reply) in WIDGETS)


def ask(of: View, kind: str, **fields: object) -> dict[str, object]:
    answer = of.answer({"kind": kind, "id": 1, **fields})
    assert "answer" in answer, answer
    json.dumps(answer)
    return answer["answer"]


def titles(picture: dict[str, list[list[str]]]) -> list[str]:
    return [box[2] for box in picture["boxes"]]


# -- messages


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("fold", "is an object"),
        ({"kind": "eval", "text": "1"}, "unknown message: eval"),
        ({"kind": "fold", "key": "0"}, "other fields"),
        ({"kind": "fold", "key": "0", "open": True, "more": 1}, "other fields"),
        ({"kind": "fold", "key": "0", "open": 1}, "open is no bool"),
        ({"kind": "show", "step": True, "before": False}, "step is no int"),
        ({"kind": "find", "text": "x" * 100_000}, "text is no str"),
    ],
)
def test_other_messages_are_refused(content: object, said: str) -> None:
    with pytest.raises(Refused, match=said):
        message_of(content, (Fold, Find, Show))


def test_a_message_that_another_view_knows_is_refused(session: Session) -> None:
    assert "unknown message" in view(session, "%graph f").answer({"kind": "command", "line": "next"})["refused"]


def test_answers_carry_the_number_of_the_question(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, object]] = []
    of = view(session, "%graph f")
    monkeypatch.setattr(of, "send", sent.append)
    of.receive({"kind": "find", "id": 7, "text": "tanh"})
    of.receive({"kind": "nothing", "id": 8})
    assert [each["id"] for each in sent] == [7, 8] and "answer" in sent[0] and "refused" in sent[1]


def test_highlighted_lines_are_the_text() -> None:
    text = "graph(%x.1 : Tensor):\n  %2 : Tensor = aten::relu(%x.1)\n  return (%2)"
    assert "\n".join("".join(piece for piece, _ in line) for line in spans(text, "ir")) == text


# -- the graph


def test_control_flow_is_boxes_in_boxes(session: Session) -> None:
    boxes = view(session, "%graph f").shown["picture"]["boxes"]
    found = {box[2]: box for box in boxes}
    outer, inner = found["prim::Loop"], found["prim::If"]
    assert {"body", "then", "else", "tanh", "add", "mul"} <= set(found)
    assert outer[4] < inner[4] and outer[5] < inner[5]
    assert inner[4] + inner[6] < outer[4] + outer[6] and inner[5] + inner[7] < outer[5] + outer[7]


def test_boxes_fold_and_open(session: Session) -> None:
    of = view(session, "%graph f")
    loop = next(box for box in of.shown["picture"]["boxes"] if box[2] == "prim::Loop")
    folded = ask(of, "fold", key=loop[0], open=False)["picture"]
    assert "prim::If" not in titles(folded) and "prim::Loop" in titles(folded)
    assert "prim::If" in titles(ask(of, "fold", key=loop[0], open=True)["picture"])


def test_a_value_tells_its_definition_uses_type_and_line(session: Session) -> None:
    found = ask(view(session, "%graph g"), "value", name="%z.1")
    assert "aten::add" in "".join(piece for piece, _ in found["text"][0])
    (value,) = found["values"]
    assert value["type"] == "Tensor" and [use[1] for use in value["uses"]] == ["relu"]
    assert found["place"].endswith(":12") and "".join(piece for piece, _ in found["source"]) == "z = h * y + x"


def test_what_is_found_can_be_revealed(session: Session) -> None:
    of = view(session, "%graph f")
    loop = next(box for box in of.shown["picture"]["boxes"] if box[2] == "prim::Loop")
    ask(of, "fold", key=loop[0], open=False)
    (hit,) = [hit for hit in ask(of, "find", text="mul")["hits"] if hit[1] == "mul"]
    assert "mul" in titles(ask(of, "reveal", key=hit[0])["picture"])


# -- passes


def test_passes_are_those_that_ran(session: Session) -> None:
    of = view(session, "%passes g(x, x)")
    (reply,) = gathered(session.run_text("%passes g"))
    assert isinstance(reply, PipelineReply)
    assert [row[0] for row in of.data["steps"]] == [", ".join(step.names) for step in reply.passes]


def test_touched_nodes_are_marked_and_others_are_not(session: Session) -> None:
    [*session.run_text("def twice(x):\n    a = x * 2\n    b = x * 2\n    return torch.tanh(a) + b\n")]
    of = view(session, "%passes twice cse")
    shown = ask(of, "show", step=0, before=True)
    marked = {key for key, _ in shown["marks"]}
    by_title = {title: [box[0] for box in shown["picture"]["boxes"] if box[2] == title] for title in ("mul", "tanh")}
    assert len(by_title["mul"]) == 2 and len(marked & set(by_title["mul"])) == 1
    assert not marked & set(by_title["tanh"])
    assert any(mark == "removed" for mark, _ in shown["lines"])
    ask(of, "show", step=0, before=False)
    assert ask(of, "value", name="%b.1")["values"][0]["uses"]  # the pass has removed it


def test_passes_whose_graphs_were_not_kept_show_their_text() -> None:
    text = Later(lambda: "# a graph too long to be kept", 1)
    step = PassReply(("dce",), True, 0.1, (), 0, text, text)
    of = WIDGETS[PipelineReply](PipelineReply(PassesReply("f", 1, text), (step,), ""))
    assert ask(of, "show", step=0, before=False)["picture"] is None
    assert "there is no value" in of.answer({"kind": "value", "id": 1, "name": "%1"})["refused"]


# -- traces


def test_a_trace_shows_the_values_of_the_run(session: Session) -> None:
    of = view(session, "%trace g(x, x)")
    at = next(i for i, row in enumerate(of.data["rows"]) if "tanh" in "".join(piece for piece, _ in row["text"]))
    shown = ask(of, "show", step=at, before=False)
    assert shown["key"] and any(line["here"] for line in shown["source"])
    looked = ask(of, "look", step=at, slot=1)
    assert len(looked["heat"]) == 4 and len(looked["heat"][0]) == 8 and sum(looked["bins"]) == 32
    assert max(abs(each) for row in looked["heat"] for each in row) <= 1
    assert of.answer({"kind": "look", "id": 1, "step": at, "slot": 9})["refused"]


def test_a_tensor_that_was_written_to_since_says_so(session: Session) -> None:
    of = view(session, "%trace inside(x)")
    at = next(i for i, row in enumerate(of.data["rows"]) if row["reads"])
    assert "written to 1 time since" in ask(of, "look", step=at, slot=0)["since"]


def test_looking_is_bounded_whatever_the_size() -> None:
    found = looked_at(torch.zeros(3, 500, 700))
    assert isinstance(torch.zeros(1), Tensor)
    assert len(found["heat"]) == len(found["heat"][0]) == CELLS and len(json.dumps(found)) < 50_000
    strange = looked_at(torch.tensor([1.0, float("nan"), float("inf")]))
    assert strange["strange"] == {"nan": 1, "inf": 1} and strange["heat"][0][1] is None


# -- costs, profiles, guards, kernels


def test_a_module_s_bar_lies_within_that_of_the_module_around_it() -> None:
    rows = tuple(CostRow(*each) for each in (("", 1.0, 10.0, 0, 0), ("a", 0.0, 6.0, 0, 0), ("a.0", 2.0, 2.0, 0, 0),
                                             ("a.1", 4.0, 4.0, 0, 4096), ("b", 3.0, 3.0, 0, 0)))  # fmt: skip
    nodes = (CostRow("conv2d", 4.0, 4.0, 1, 0, "a.1", "3"),)
    of = WIDGETS[CostReply](CostReply("m(x)", 9.0, 10.0, 3, 0, (), rows, (), nodes, 2, 0.5))
    bars = {each["path"]: (each["depth"], each["left"], each["part"]) for each in of.data["modules"]}
    wanted = {"": (0, 0, 1), "a": (1, 0, 0.6), "a.0": (2, 0, 0.2), "a.1": (2, 0.2, 0.4), "b": (1, 0.6, 0.3)}
    assert bars == {path: pytest.approx(each) for path, each in wanted.items()}
    assert of.data["nodes"][0]["part"] == 0.4 and "2 more nodes" in of.data["rest"]


def test_the_cost_of_a_call_is_by_line(session: Session) -> None:
    lines = view(session, "%profile g(x, x)").data["lines"]
    assert any("torch.tanh(x)" in "".join(piece for piece, _ in row) for each in lines for row in each["text"])


def test_profiles_and_guards_by_line(session: Session) -> None:
    profile = view(session, "%profile --types g(x, x)").data["sections"][0]
    rows = [row["cells"] for line in profile["lines"] for row in line["rows"]]
    assert ["z", "Float(4, 8)", "1", "relu"] in rows
    guards = view(session, "%guards g(x, x)").data["sections"][0]
    assert {row["cells"][2] for line in guards["lines"] for row in line["rows"]} & {"kept", "moved"}


def test_kernels_side_by_side_are_linked(session: Session) -> None:
    of = view(session, "%kernels g(x, x)")
    texts = {title: ask(of, "kernel", number=0, text=at) for at, (title, _) in enumerate(of.data["texts"])}
    program = {place for places in texts["TorchScript"]["places"].values() for place in places}
    assert len(program) == 3
    lines = {title: {line for _, line, _ in text["rows"]} - {0} for title, text in texts.items()}
    for title, text in texts.items():
        assert {place for places in text["places"].values() for place in places} == program, title
        folded = {line for lines in text["folded"].values() for line in lines}
        assert (lines[title] | folded) - {1} == {*text["places"]} - {1}, title  # signatures may leave nothing
    assert lines["loop IR"] == lines["LLVM"] > lines["assembly"] > {1}
    shown = "".join(piece for text in texts.values() for pieces, *_ in text["rows"] for piece, _ in pieces)
    assert "!dbg" not in shown and "!DI" not in shown and ".loc" not in shown and "tanh" in shown


def test_kernels_for_a_gpu_stand_beside_the_lines_of_the_program(session: Session) -> None:
    of = view(session, "%kernels g(x, x) --target sm_80")
    assert "sm_80" in of.data["kernels"][0]["facts"] and "threads" in of.data["kernels"][0]["facts"]
    titles = [title for title, _ in of.data["texts"]]
    assert of.data["first"] == ["TorchScript", "loop IR for sm_80", "PTX for sm_80"]
    texts = [ask(of, "kernel", number=0, text=titles.index(title)) for title in of.data["first"]]
    program, *others = ({place for places in text["places"].values() for place in places} for text in texts)
    assert len(program) == 3 and all(each == program for each in others)
    assert ".target sm_80" in "".join(piece for pieces, *_ in texts[2]["rows"] for piece, _ in pieces)


def test_a_text_that_cannot_be_made_says_why(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*of: object) -> None:
        raise MachineError("no machine code: none here")

    monkeypatch.setattr("engine.fuser.backend.machine.assembly_text", refuse)
    of = view(session, "%kernels g(x, x)")
    at = next(at for at, (title, _) in enumerate(of.data["texts"]) if title == "assembly")
    ((pieces, line, _),) = ask(of, "kernel", number=0, text=at)["rows"]
    assert "none here" in pieces[0][0] and line == 0


# -- modules, the debugger


def test_modules_are_fetched_as_they_are_opened(session: Session, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(x)

    torch.jit.save(torch.jit.script(Net()), tmp_path / "net.pt")
    [*session.run_text(f"%load {tmp_path / 'net.pt'}")]
    of = view(session, "%modules net")
    assert [row["name"] for row in of.data["rows"] if row["opens"]] == ["layers"]
    rows = ask(of, "children", path="layers")["rows"]
    assert [row["facts"].partition(",")[0] for row in rows if row["opens"]] == ["40 parameters", "18 parameters"]
    assert ["layers.1.bias", "float32"] in ask(of, "find", text="1.bias")["hits"]


def test_the_debugger_goes_forward_and_back_and_stops_at_lines(session: Session) -> None:
    of = view(session, "%debug f(x, 3)")

    def here() -> int:
        return next(row["number"] for row in of.data["source"] if row["here"])

    assert here() == 2
    ask(of, "command", line="next")
    assert here() == 3
    ask(of, "command", line="back-next")
    assert here() == 2
    assert any(row["stop"] for row in ask(of, "command", line="break 5")["source"])
    ask(of, "command", line="continue")
    assert here() == 5
    assert "2" in ask(of, "command", line="i + 0")["told"]
    assert not any(row["stop"] for row in ask(of, "command", line="clear-line 5")["source"])
    assert ask(of, "command", line="quit")["over"]
    assert "no longer debugged" in of.answer({"kind": "command", "id": 1, "line": "next"})["refused"]


# -- size


def test_a_graph_of_3000_nodes_is_fetched_and_not_saved(session: Session) -> None:
    lines = (f"    a{i} = torch.relu(x + a{max(0, i - 1)}) * a{max(0, i - 7)}\n" for i in range(1, 1000))
    [*session.run_text(f"def long(x):\n    a0 = x\n{''.join(lines)}    return a999\n")]
    of = view(session, "%graph long")
    assert len(json.dumps(of.get_state(["data", "shown", "state", "_esm", "_css"]))) < SAVED / 10
    assert len(ask(of, "fold", key="root", open=True)["picture"]["boxes"]) > 2990


# -- where no widgets run


def test_exported_pages_show_the_static_picture() -> None:
    data, _ = bundle(next(iter(_with_program().run_text("%graph f"))))
    output = nbformat.v4.new_output("display_data", data=data)
    cell = nbformat.v4.new_code_cell("%tsjit_graph f", outputs=[output])
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert 'src="data:image/svg+xml;base64,' in page and "aten::tanh" in page


def _with_program() -> Session:
    made = Session()
    [*made.run_text(PROGRAM)]
    return made


def test_older_traces_give_way_to_later_ones(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsrepl.widgets.trace.MOST_HELD", 1000)
    (first,) = (each for each in session.run_text("%trace torch.tanh(x) + x") if isinstance(each, TraceReply))
    old = TracePlayer(first)
    at = next(at for at, moment in enumerate(first.moments) if moment.values)
    assert "answer" in old.answer({"kind": "look", "id": 1, "step": at, "slot": 0})
    for _ in range(8):
        (last,) = (each for each in session.run_text("%trace torch.tanh(x) + x") if isinstance(each, TraceReply))
        new = TracePlayer(last)
    assert "gave way" in old.answer({"kind": "look", "id": 2, "step": at, "slot": 0})["refused"]
    assert not any(moment.values for moment in first.moments)  # wherever the reply is kept
    assert "answer" in new.answer({"kind": "look", "id": 3, "step": at, "slot": 0})
