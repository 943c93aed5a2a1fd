"""Names that Python and the session share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import engine.torch as torch
from engine.torch import nn
from tsrepl.magics import active_session
from tsrepl.magics.display import CellError
from tsrepl.session import twins

Run = Callable[[str], Any]


def variables(shell: InteractiveShell) -> dict[str, Any]:
    return {name: value for name, value, _ in active_session(shell).variables()}


# -- values


def test_a_name_bound_to_a_number_that_is_there_already_reaches_python(shell: InteractiveShell, script: Run) -> None:
    script("x = 1; y = 5")
    script("x = y")
    assert (shell.user_ns["x"], shell.user_ns["y"]) == (5, 5)
    script("z = x")
    assert shell.user_ns["z"] == 5


def test_a_second_name_for_the_same_number_is_defined(shell: InteractiveShell, script: Run) -> None:
    script("a = 2")
    script("b = 2")
    assert shell.user_ns["b"] == 2


def test_python_s_newer_value_counts_and_so_does_the_cell_s(shell: InteractiveShell, run: Run, script: Run) -> None:
    script("x = 1")
    run("x = 2")
    assert variables(shell)["x"] == 2
    script("x = x + 1")
    assert run("x") == 3


def test_deletions_go_both_ways(shell: InteractiveShell, run: Run, script: Run) -> None:
    script("x = 1; y = 2")
    run("del x")
    assert "x" not in variables(shell)
    with pytest.raises(CellError, match="undefined value x"):
        script("x")
    script("del y")
    assert "y" not in shell.user_ns


def test_a_name_bound_again_by_python_survives_an_older_deletion(shell: InteractiveShell, script: Run) -> None:
    script("y = 2")
    script("del y")
    shell.user_ns["y"] = 7
    script("z = y")
    assert shell.user_ns["y"] == 7 and shell.user_ns["z"] == 7


def test_lists_and_dicts_change_in_place_on_both_sides(shell: InteractiveShell, run: Run, script: Run) -> None:
    run("l = [1, 2]; alias = l; d = {'a': 1}")
    script("l.append(4)\nd['b'] = 2")
    assert run("l") == [1, 2, 4] and run("alias is l") and run("d") == {"a": 1, "b": 2}
    run("alias.append(5); del d['a']")
    script("n = l[3] + len(d)")
    assert run("n") == 6


def test_lists_in_lists_stay_the_same_lists(run: Run, script: Run) -> None:
    script("inner = [1]\nouter = [inner, inner]")
    assert run("outer[0] is inner and outer[1] is inner")
    run("inner.append(2)")
    script("outer[1].append(3)")
    assert run("inner") == [1, 2, 3] == run("outer[0]")


def test_an_empty_list_keeps_the_type_that_a_cell_gave_it(run: Run, script: Run) -> None:
    script("l: List[int] = []")
    run("m = l")
    script("m.append(1)")
    assert run("l") == [1]
    run("l.clear()")
    script("l.append(2)")
    assert run("m") == [2]


def test_arrays_in_lists_stay_arrays_that_share_their_memory(run: Run, script: Run) -> None:
    run("import numpy as np; x = np.ones(2); l = [x]")
    script("l[0].add_(1)\nl.append(torch.zeros(1))\ny = x")
    assert run("x.tolist()") == [2.0, 2.0] and run("l[0] is x and y is x") and run("len(l)") == 2


def test_a_list_of_another_type_than_before_is_bound_anew(run: Run, script: Run) -> None:
    script("l = [1]")
    run("l[:] = ['a']")
    script("l.append('b')")
    assert run("l") == ["a", "b"]


def test_numbers_of_numpy_are_numbers(shell: InteractiveShell, script: Run) -> None:
    shell.user_ns["x"] = np.float64(1.5)
    script("y = x + 1")
    assert shell.user_ns["y"] == 2.5


def test_the_last_value_follows_in_both_directions(run: Run, script: Run) -> None:
    script("torch.ones(2) * 3")
    assert run("_.tolist()") == [3.0, 3.0]
    run("6 * 7")
    script("x = _ + 1")
    assert run("x") == 43
    script("x * 2")
    assert run("_ + 1") == 87 and run("__") == 86


def test_python_s_own_last_values_are_not_disturbed(run: Run, script: Run) -> None:
    run("1 + 1")
    script("x = 5")
    assert run("_") == 2


@pytest.mark.parametrize(
    ("python", "cell", "message"),
    [
        ("s = {1, 2}", "s", "a set has no type in TorchScript"),
        ("l = [1, 'a']", "len(l)", "its elements have different types: int and str"),
        ("n = 2 ** 70", "n + 1", "it does not fit in 64 bits"),
        ("l = []; l.append(l)", "len(l)", "it contains itself"),
        ("from engine.torch import nn\nm = nn.Linear(2, 2)", "m(torch.ones(2))", "is a module of Python"),
        ("import numpy as np", "np.ones(2)", "numpy is a package of Python"),
    ],
)
def test_what_cannot_be_shared_is_refused_with_the_reason(
    run: Run, script: Run, python: str, cell: str, message: str
) -> None:
    run(python)
    with pytest.raises(CellError, match=message) as caught:
        script(cell)
    assert "undefined" not in str(caught.value) and caught.value.replies[0].hints


def test_a_module_of_python_can_be_compiled_as_the_refusal_says(shell: InteractiveShell, run: Run, script: Run) -> None:
    shell.user_ns["m"] = nn.Linear(2, 3)
    with pytest.raises(CellError) as caught:
        script("m(torch.ones(2))")
    assert "m = torch.jit.script(m)" in caught.value.replies[0].hints[0]
    shell.user_ns["torch"] = torch
    run("m = torch.jit.script(m)")
    script("y = m(torch.ones(2))")
    assert run("y.shape[0]") == 3


# -- definitions


def test_python_s_variables_do_not_leak_into_definitions(shell: InteractiveShell, run: Run, script: Run) -> None:
    run("n = 3; x = 1")
    with pytest.raises(CellError, match="undefined value n") as caught:
        script("def f(x: int):\n    return x + n")
    assert "a function sees its parameters only" in caught.value.replies[0].hints[0]
    script("def f(x: int):\n    return x + 1")
    assert not variables(shell)


def test_a_function_defined_anew_in_python_is_what_cells_call(run: Run, script: Run) -> None:
    run("def f(x: int) -> int:\n    return x + 1")
    script("def g(x: int) -> int:\n    return f(x) * 10")
    assert run("g(1)") == 20
    run("def f(x: int) -> int:\n    return x + 2")
    assert run("g(1)") == 30


def test_a_function_defined_anew_in_a_cell_is_what_python_s_functions_call(run: Run, script: Run) -> None:
    script("def f(x: int) -> int:\n    return x + 1")
    run("def g(x: int) -> int:\n    return f(x) * 10")
    script("y = g(1)")
    script("def f(x: int) -> int:\n    return x + 2")
    script("z = g(1)")
    assert run("y, z, g(1)") == (20, 30, 30)


def test_a_definition_and_a_variable_take_each_other_s_name(run: Run, script: Run) -> None:
    script("def f(x: int):\n    return x")
    run("f = 3")
    script("y = f + 1")
    assert run("y") == 4
    script("def f(x: int):\n    return x * 2")
    assert run("f(4)") == 8
    script("f = 5")
    assert run("f") == 5


def test_classes_of_cells_reach_python(run: Run, script: Run) -> None:
    script(
        "class Counter:\n    def __init__(self, start: int):\n        self.n = start\n"
        "    def up(self) -> int:\n        self.n += 1\n        return self.n"
    )
    run("c = Counter(3)")
    assert run("c.up()") == 4 and run("isinstance(c, Counter)") and not run("isinstance(3, Counter)")
    script("n = c.up()")
    assert run("n") == 5 == run("c.n")


def test_named_tuples_of_cells_reach_python_and_come_back(run: Run, script: Run) -> None:
    script("class Point(NamedTuple):\n    x: int\n    y: int")
    run("p = Point(1, y=2)")
    script("q = p.x + p.y\nr = Point(q, 4)")
    assert run("q") == 3 and run("r.y") == 4 and run("isinstance(r, Point)")


def test_enums_and_classes_of_python_are_known_to_cells(run: Run, script: Run) -> None:
    run("import enum\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = 2\nc = Colour.BLUE")
    script("is_blue = c == Colour.BLUE\nred = Colour.RED")
    assert run("is_blue") and run("red is Colour.RED")
    run(
        "class Pair:\n    def __init__(self, a: int):\n        self.a = a\n"
        "    def twice(self) -> int:\n        return self.a * 2"
    )
    script("t = Pair(4).twice()")
    assert run("t") == 8


def test_a_function_of_python_that_does_not_compile_says_why(run: Run, script: Run) -> None:
    run("def f(x: int) -> int:\n    yield x")
    with pytest.raises(CellError) as caught:
        script("f(3)")
    assert "undefined" not in str(caught.value)


def test_reset_forgets_the_session_and_leaves_python_alone(run: Run, script: Run) -> None:
    script("x = 1")
    run("%tsjit_reset")
    assert run("x") == 1
    script("y = x + 1")
    assert run("y") == 2


def test_the_session_lives_on_when_the_extension_is_reloaded(shell: InteractiveShell, run: Run, script: Run) -> None:
    script("def f(x: int):\n    return x + 1")
    run("%reload_ext tsrepl")
    script("y = f(1)")
    assert run("y") == 2
    run("%unload_ext tsrepl")
    assert "torchscript" not in shell.magics_manager.magics["cell"]
    assert not any(name.startswith("tsjit_") for name in shell.magics_manager.magics["line"])


def test_a_long_list_is_gone_through_once_on_each_side_of_a_cell(
    run: Run, script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10_000
    run(f"l = list(range({count})); same = l")
    script("n = len(l)")
    compared = 0

    def counting(a: object, b: object) -> bool:
        nonlocal compared
        compared += 1
        return a is b

    monkeypatch.setattr(twins, "is_", counting)
    for cell in (lambda: script("x = 1"), lambda: run("x = 2")):
        compared = 0
        cell()
        assert 2 * count <= compared < 2 * count + 100
    script("l += [7]")
    run("l[0] = 5")
    script("y = l[0] + l[-1]")
    assert run("y") == 12 and run("same is l")


def test_what_is_deep_in_a_list_changes_on_both_sides(run: Run, script: Run) -> None:
    run("deep = [[[1, 2], [3]], [[4]]]; first = deep[0][0]; d = {'a': [1.0]}; pairs = [(1, 2.0), (3, 4.0)]")
    script("n = len(deep) + len(d) + len(pairs)")
    run("first.append(7)")
    script("n = deep[0][0][2]\ndeep[1][0][0] = 8\nd['a'].append(2.0)")
    assert run("n, deep, d") == (7, [[[1, 2, 7], [3]], [[8]]], {"a": [1.0, 2.0]}) and run("deep[0][0] is first")
    run("first[0] = True; pairs[1] = (5, 6.0)")  # which equals what was there
    script("n = pairs[1][0]; first.append(deep[0][0][0] + 1)")
    assert run("n, first") == (5, [1, 2, 7, 2])


def test_numbers_of_numpy_in_tuples_are_numbers_in_programs_alone(run: Run, script: Run) -> None:
    run("import numpy as np; pairs = [(np.int64(1), 2.0)]; large = [(2**63, 1)]")
    script("n = pairs[0][0] + 1")
    assert run("n") == 2 and run("type(pairs[0][0]) is np.int64")
    with pytest.raises(CellError, match="64 bits"):
        script("large")


@pytest.mark.parametrize("text", ["[[0.5, i] for i in range(COUNT)]", "[(0.5, i) for i in range(COUNT)]",
                                  "{i: [i] for i in range(COUNT)}"])  # fmt: skip
def test_small_lists_cost_a_few_calls_each(run: Run, script: Run, text: str) -> None:
    count = 2000
    run(f"l = {text.replace('[0.5, i]', '[0.5, i * 1.0]').replace('COUNT', str(count))}")
    first = calls_of_python(lambda: script("n = len(l)"))
    again = calls_of_python(lambda: script("n = len(l)"))
    assert first < 35 * count and again < 10 * count


def calls_of_python(work: Callable[[], object]) -> int:
    """The calls of functions written in Python that the work makes."""
    calls = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


BREAKING = {
    "a type that does not fit": "def low(x: str) -> str:\n    return x",
    "another count": "def low(x: int, y: int) -> int:\n    return x + y",
    "a deletion in Python": "del low",
}


@pytest.mark.parametrize("breaking", BREAKING)
@pytest.mark.parametrize("user", ["high", "Holder", "top"])
def test_what_no_longer_compiles_fails_in_both_languages(script: Run, run: Run, breaking: str, user: str) -> None:
    script("def low(x: int) -> int:\n    return x + 1\ndef high(x: int) -> int:\n    return low(x) * 2")
    script("def top(x: int) -> int:\n    return high(x)")
    script("class Holder:\n    def __init__(self, x: int):\n        self.x = low(x)")
    call = f"{user}(1){'.x' if user == 'Holder' else ''}"
    before = run(call)
    text = BREAKING[breaking]
    (run if text.startswith("del") else script)(text)
    for cell in (run, script):
        with pytest.raises(Exception, match=r"no longer compiles|undefined value"):
            cell(call)
    assert "no longer compiles" in repr(run(user))
    script("def low(x: int) -> int:\n    return x + 1")
    script(f"again = {call}")
    assert run("again") == run(call) == before
