"""Plans of numbers, lists and dicts: machine code in their place, and the same answers and errors."""

import pytest

import engine
from engine.executor.plans import tiers
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.lang.errors import ArgumentError, ExecutionError

pytestmark = pytest.mark.usefixtures("plans_at_once")

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def _same_mode_after():
    before = tiering.mode()
    yield
    tiering.set_mode(before)


@pytest.fixture(params=["eager", "off"])
def mode(request):
    tiering.set_mode(request.param)
    return request.param


def plan_of(function):
    return executor_of(function._function)._recent[1]


SUM = """
def f(n: int) -> int:
    total = 0
    for i in range(n):
        total += i // 3
    return total
"""


def test_a_plan_runs_as_machine_code_or_not(mode):
    function = engine.CompilationUnit(SUM).f
    assert function(10) == 12
    scalar = plan_of(function).scalar
    assert (scalar.native is not None) == (mode == "eager")


def test_a_plan_is_compiled_once_that_pays(monkeypatch):
    monkeypatch.setattr(tiers, "WORTH", 0)
    tiering.set_mode("background")
    function = engine.CompilationUnit(SUM).f
    assert function(10) == 12
    tiering.wait()
    scalar = plan_of(function).scalar
    assert plan_of(function).entry is scalar.native
    assert function(10) == 12
    tiering.set_mode("off")
    assert plan_of(function).entry is scalar.run
    tiering.set_mode("eager")
    assert plan_of(function).entry is scalar.native


def test_calls_go_straight_to_the_kernel(mode):
    source = SUM.replace("i // 3", "7 // (n - i - 2)")
    function = engine.CompilationUnit(source).f
    assert function(1) == -7
    assert (function._function.entry is not None) == (mode == "eager")
    assert function(n=1) == function(1) == -7
    with pytest.raises(ExecutionError, match="division by 0"):
        function(5)
    with pytest.raises(ArgumentError):
        function("1")


FAILING = {
    "division": "total += i // (3 - i)",
    "modulo": "total += total % (3 - i)",
    "index": "total += values[i]",
    "key": "total += table[i]",
    "pop": "total += values.pop()",
    "search": "total += values.index(i)",
    "raise": "if i > 2:\n            raise ValueError('too large')",
    "message": "if i > 2:\n            raise ValueError('too large: ' + str(i))",
    "assert": "assert i < 3, 'not that'",
    "call": "total += g(i)",
    "memory": "total += len([i] * (1 << 8 * i))",
    "round": "total += math.floor(10.0 ** (100 * i))",
}


@pytest.mark.parametrize("kind", FAILING)
def test_errors_are_the_interpreters(kind, monkeypatch):
    source = (
        "def g(i: int) -> int:\n    return 7 // (i - 2)\n\n"
        "def f(n: int) -> int:\n    total = 0\n    values = [0, 1, 2]\n    table = {0: 1, 1: 2}\n"
        f"    for i in range(n):\n        {FAILING[kind]}\n    return total\n"
    )
    assert message(source, "eager", monkeypatch) == message(source, "off", monkeypatch)


def message(source, mode, monkeypatch):
    monkeypatch.setattr(tiering._STATE, "mode", mode)
    function = engine.CompilationUnit(source).f
    with pytest.raises(ExecutionError) as raised:
        function(9)
    assert (plan_of(function).scalar.native is not None) == (mode == "eager")
    return str(raised.value)


CHANGING = """
def f(n: int) -> List[int]:
    values = [5]
    g(values, n)
    return values

def g(values: List[int], n: int) -> int:
    for i in range(n):
        values.append(i)
    return values[n]
"""


def test_lists_of_callers_are_changed(mode):
    assert engine.CompilationUnit(CHANGING).f(3) == [5, 0, 1, 2]


def test_what_kernels_do_not_hold_runs_in_python(mode):
    source = "def f(n: int) -> str:\n    s = ''\n    for i in range(n):\n        s += str(i)\n    return s\n"
    function = engine.CompilationUnit(source).f
    assert function(3) == "012"
    assert mode == "off" or plan_of(function).scalar.reason
