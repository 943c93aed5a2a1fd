"""Debugged calls: lines, breakpoints, conditions, watches, statements; forward and back."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from engine.aten.values.tensor import tensor
from engine.executor.bytecode.code import Code
from engine.executor.debugging.author_names import author_name
from engine.executor.debugging.debugger import Debugger, Stop
from engine.executor.debugging.evaluating import Statements
from engine.ir.graph import Value
from engine.lang.errors import ArgumentError, CompileError
from engine.torch import nn
from engine.torch.jit import script
from engine.torch.jit.probing.debugging import debug
from tests.fuzz.going_back import generated

from .programs import FORKS, LOOP, debugger, line


def test_steps_go_from_line_to_line_and_into_calls() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    lines = [line(found)]
    while found.step().kind != "end":
        lines.append(line(found))
    assert lines == [7, 8, 9, 10, 3, 4, 11, 13, 8, 9, 10, 3, 4, 11, 13, 8, 14]


def test_steps_back_come_to_the_same_lines() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    lines = [line(found)]
    while found.step().kind != "end":
        lines.append(line(found))
    for expected in reversed(lines):
        found.back_step()
        assert line(found) == expected
    assert found.back_step().kind == "start"
    assert line(found) == lines[0]


def test_next_stays_in_its_call_and_out_leaves_it() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    assert [found.next() and line(found) for _ in range(4)] == [8, 9, 10, 11]
    found.back_next()
    assert line(found) == 10
    found.step()
    assert line(found) == 3
    assert [view.function for view in found.frames] == ["f", "total"]
    found.out()
    assert line(found) == 11
    found.back_go()
    found.break_at("total")
    found.go()
    found.back_out()
    assert line(found) == 10


def test_until_leaves_a_loop() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 3)
    while line(found) != 13:
        found.next()
    found.until()
    assert line(found) == 14
    found.restart()
    found.until(13)
    assert line(found) == 13


def test_variables_have_the_authors_names_and_present_values() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 3)
    found.break_at("13")
    found.go()
    values = {name: found.frame.value(variable) for name, variable in found.frame.variables.items()}
    assert {*values} == {"x", "n", "z", "i", "s"}
    assert values["i"] == 0
    assert values["z"].tolist() == [1.0, 5.0]
    found.go()
    assert found.frame.value(found.frame.variables["i"]) == 1


def test_variables_of_a_round_that_is_over_are_seen_at_the_head_of_the_loop() -> None:
    found = debugger("def f(n: int):\n    t = 0\n    for i in range(n):\n        t = t + i\n    return t\n", 4)
    found.break_at("3")
    seen = []
    while found.go().kind == "breakpoint":
        seen.append(found.frame.value(found.frame.variables["t"]))
    assert seen == [0, 1, 3, 6] or seen == [0, 0, 1, 3, 6]


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("10", [10, 10]),
        ("prog.py:10", [10, 10]),
        ("total", [3, 3]),
        ("aten::add_", [3, 3]),
        ("add_", [3, 3]),
        ("%z.1", [7]),
        ("11 if i == 1", [11]),
        ("if i == 1", [8]),
        ("total if a.max() > 4", [3]),
    ],
)
def test_breakpoints(place: str, lines: list[int]) -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    found.go_to(0)
    made = found.break_at(place)
    stops = []
    while (stop := found.go()).kind == "breakpoint":
        assert stop.breakpoint is made
        stops.append(line(found))
    assert stops == lines
    assert made.hits == len(stops)


IN_PLACE = """def f(x: Tensor, n: int):
    h = x * 1.0
    other = x * 1.0
    for i in range(n):
        h.add_(1.0)
        other.add_(1.0)
    return h
"""


def test_a_condition_sees_what_is_written_in_place() -> None:
    found = debugger(IN_PLACE, tensor([0.0]), 6)
    found.break_at("if h.max() > 3")
    stop = found.go()
    assert stop.kind == "breakpoint"
    assert found.evaluate("h.max()")[0].item() == 4.0
    assert found.go().kind == "end", "it goes on to hold, which is no news"


def test_a_condition_is_compiled_once_and_computed_where_what_it_reads_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    value = Statements.value
    monkeypatch.setattr(Statements, "value", lambda self, inputs: computed.append(self.entry) or value(self, inputs))
    found = debugger(IN_PLACE, tensor([0.0]), 6)
    found.break_at("if h.max() > 30")
    assert found.go().kind == "end"
    assert len(computed) == 1 + 6, "once for each value of h, not where only the other one is written"
    assert len({*map(id, computed)}) == 1


def test_a_line_without_instructions_stands_for_the_next_one() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    found.go_to(0)
    found.break_at("6")
    found.go()
    assert line(found) == 7


def test_breakpoints_stop_on_the_way_back() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 3)
    found.break_at("total if a.max() > 5")
    found.break_at("9 if i == 1")
    forward = []
    while found.go().kind == "breakpoint":
        forward.append(found.recording.position)
    back = []
    while found.back_go().kind == "breakpoint":
        back.append(found.recording.position)
    assert back == forward[::-1]
    assert len(back) >= 2


def test_a_temporary_breakpoint_stops_once_and_others_can_be_ignored() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 4)
    found.break_at("9", is_temporary=True)
    assert found.go().kind == "breakpoint"
    assert not found.breakpoints
    made = found.break_at("11")
    made.ignore = 2
    assert found.go().kind == "breakpoint"
    assert found.frame.value(found.frame.variables["i"]) == 2
    made.is_enabled = False
    assert found.go().kind == "end"


def test_a_watch_stops_where_the_value_changes_also_by_a_write_in_a_call() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 1)
    found.next()
    found.watch("z")
    assert (found.go().kind, line(found)) == ("watch", 10)  # behind the write of line 9
    assert (found.go().kind, line(found)) == ("watch", 11)  # behind the call that adds one
    assert found.go().kind == "end"
    assert found.back_go().kind == "watch"


def test_a_watch_for_nan_stops_where_it_is_computed() -> None:
    text = "def f(x: Tensor):\n    y = x - 1\n    z = torch.log(y)\n    return z + 1\n"
    found = debugger(text, tensor([1.0, 0.5]))
    made = found.watch("nan")
    assert found.go().breakpoint is made
    assert [*found.frame.variables] == ["x", "y", "z"]
    assert line(found) == 4
    found.restart()
    found.delete(made.number)
    found.watch("inf")
    assert found.go().kind == "breakpoint"


def test_statements_change_the_program_and_are_undone() -> None:
    x = tensor([1.0, 2.0])
    found = debugger(LOOP, x, 2)
    found.next()
    assert found.evaluate("z.sum() + n")[0].item() == 8.0
    found.evaluate("z = z * 100")
    assert found.frame.value(found.frame.variables["z"]).tolist() == [200.0, 400.0]
    found.evaluate("x.zero_()")
    assert x.tolist() == [0.0, 0.0]
    found.evaluate("n = 1")
    found.go()
    first = found.recording.result.tolist()
    found.back_go()
    assert x.tolist() == [1.0, 2.0]
    found.go()
    assert found.recording.result.tolist() != first


def test_replays_repeat_statements() -> None:
    text = "def f(x: Tensor, n: int):\n    for i in range(n):\n        x.add_(1)\n    return x\n"
    x = tensor([0.0])
    found = debugger(text, x, 60, bound=5000)
    found.step()
    found.evaluate("x.add_(1000)")
    found.go()
    assert x.tolist() == [1060.0]
    position = found.recording.position
    found.go_to(position // 2)
    assert x.tolist()[0] > 1000
    found.go_to(position)
    assert x.tolist() == [1060.0]


def test_statements_that_do_not_fit_are_refused() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    found.next()
    with pytest.raises(ArgumentError, match="no variable 'w'"):
        found.evaluate("w = 1")
    with pytest.raises(ArgumentError, match="'n' is of type int"):
        found.evaluate("n = 'x'")
    with pytest.raises(CompileError, match="undefined value q"):
        found.evaluate("q + 1")


def test_errors_stop_where_they_are_with_their_variables() -> None:
    found = debugger("def f(x: Tensor):\n    y = x * 2\n    return y[5]\n", tensor([1.0]))
    stop = found.go()
    assert stop.kind == "error"
    assert line(found) == 3
    assert found.evaluate("y")[0].tolist() == [2.0]
    found.back_step()
    assert line(found) == 2


def test_frames_are_selected_outwards() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    found.break_at("total")
    found.go()
    assert "a" in found.frame.variables
    assert found.select(1).function == "f"
    assert found.evaluate("i")[0] == 0
    with pytest.raises(ArgumentError, match="outermost"):
        found.select(1)
    found.out()
    assert found.selected == 0


def test_unknown_places_say_what_there_is() -> None:
    found = debugger(LOOP, tensor([1.0, 2.0]), 2)
    with pytest.raises(ArgumentError, match="did you mean 'total'"):
        found.break_at("totl")
    with pytest.raises(ArgumentError, match="its last one is"):
        found.break_at("400")
    with pytest.raises(ArgumentError, match="no variable of the program"):
        found.break_at("if qq > 3")


def test_threads_are_switched() -> None:
    found = debugger(FORKS, tensor([1.0]))
    found.next()
    found.next()
    assert line(found) == 10
    found.step()
    found.step()
    assert [view.function for view in found.frames] == ["f", "work"]
    assert found.recording.thread.number == 3
    found.switch(2)
    assert found.recording.thread.number == 2
    found.out()
    assert found.recording.threads[1].state.finished
    with pytest.raises(ArgumentError, match="no thread 9"):
        found.switch(9)


def test_calls_from_python() -> None:
    model = script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    x = tensor([[1.0, -2.0]])
    found = debug(model, x)
    assert "container.py" in repr(found)
    found.break_at(".1")
    assert found.go().kind == "breakpoint"
    assert found.frame.module == "1"
    found.go()
    assert found.result.tolist() == model(x).tolist()
    with pytest.raises(ArgumentError, match="missing value for argument"):
        debug(model)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_stops_where_single_instructions_do(seed: int) -> None:
    made, arguments = generated(Random(seed))

    def prepared() -> Debugger:
        found = Debugger(made, arguments())
        names = sorted({name for code in found.recording.codes for name in map(author_name, _values(code)) if name})
        for name in names:
            found.watch(name)
        found.break_at("if n > 1")
        return found

    def stops(go: Callable[[Debugger], Stop]) -> list[tuple[int, str]]:
        found, met = prepared(), []
        while (stop := go(found)).kind not in ("end", "error"):
            if stop.breakpoint is not None:
                met.append((found.recording.position, stop.text))
        return [*met, (found.recording.position, stop.kind)]

    assert stops(Debugger.go) == stops(Debugger.instruction) == stops(Debugger.step) == stops(Debugger.next)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_back_stops_where_single_instructions_do(seed: int) -> None:
    made, arguments = generated(Random(seed))

    def stops(back: Callable[[Debugger], Stop]) -> list[int]:
        found, met = Debugger(made, arguments()), []
        for each in range(1, 20):
            with suppress(ArgumentError):
                found.break_at(str(each))
        while found.go().kind not in ("end", "error"):
            pass
        while (stop := back(found)).kind != "start":
            met += [found.recording.position] if stop.breakpoint is not None else []
        return met

    assert stops(Debugger.back_go) == stops(Debugger.back_instruction) == stops(Debugger.back_step)


def _values(code: Code) -> list[Value]:
    return [value for value in code.values if value is not None]
