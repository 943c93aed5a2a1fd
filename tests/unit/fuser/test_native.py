"""Native entries do what the Python functions do, on every path, and leave nothing behind."""

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser import tiering
from engine.fuser.entries import forms, native, samples
from engine.fuser.expression import HALVES, KINDS
from engine.fuser.hot_helpers import install
from tests.unit.fuser.outcomes import copied, only_native, outcome, tensors

NAMES = (
    "add add_ sub mul mul_ div rsub neg exp sigmoid tanh sqrt relu relu_ lt eq eq_ maximum minimum logical_and addcmul "
    "remainder floor_divide leaky_relu threshold_backward softplus sign trunc isfinite square fmod atan2 silu "
    "clamp clamp_ clamp_min abs where masked_fill masked_fill_ gelu erf __and__"
).split()


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    tiering.wait()
    install.install()
    for name in NAMES:
        native.compile_name(f"aten::{name}", (*KINDS, *HALVES))


def overloads() -> list[str]:
    return [op.qualified_name for name in NAMES for op in table.overloads(f"aten::{name}") if forms.is_pointwise(op)]


# ------------------------------------------------------------------ the same as in Python

NUMBERS = st.one_of(
    st.integers(-4, 4),
    st.sampled_from([2**53 + 1, -(2**63), 2**64, 10**400, True, False]),
    st.floats(width=64),
    st.sampled_from([1 + 2j, None, "1", np.float32(2.5), 1.5]),
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    name = draw(st.sampled_from(overloads()))
    entry = table.find(name)
    assert entry is not None
    given: list[Any] = []
    for argument in entry.schema.arguments:
        if argument.name in ("condition", "mask"):
            given.append(draw(st.one_of(tensors(), tensors([torch.bool]), tensors([torch.bool]))))
        elif argument.name == "approximate":
            given.append(draw(st.sampled_from(["none", "none", "tanh", "other"])))
        elif "Tensor" in str(argument.type):
            earlier = [each for each in given if isinstance(each, Tensor)]
            given.append(draw(st.one_of(tensors(), *([st.sampled_from(earlier)] * 3 if earlier else []))))
        else:
            given.append(draw(st.one_of(NUMBERS, st.just(argument.default) if argument.has_default else NUMBERS)))
    return name, given


def agree(name: str, arguments: list[Any]) -> None:
    watched = native._watched[name]
    one, other = copied(arguments), copied(arguments)
    for each in one + other:
        if isinstance(each, Tensor):
            each.memory  # noqa: B018
    found, expected = outcome(watched.op.run, one), outcome(watched.plain, other)
    assert found == expected, name


@given(calls())
@settings(max_examples=600, deadline=None)
def test_native_entries_do_what_the_python_functions_do(call: tuple[str, list[Any]]) -> None:
    agree(*call)


@pytest.mark.parametrize("d", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("number", [65504, 7e4, 3.4028234663852886e38, 3.4028234663852890e38, 1e300, float("inf")])
def test_numbers_that_an_element_cannot_hold_are_python_s(d: torch.dtype, number: float) -> None:
    x, mask = torch.ones(2, dtype=d), torch.tensor([True, False])
    for sign in (1, -1):
        agree("aten::masked_fill.Scalar", [x, mask, sign * number])


def test_plain_arguments_never_get_to_python() -> None:
    for name in overloads():
        entry = table.find(name)
        assert entry is not None
        kinds = next(each.overloads for each in native.compiled() if each.name == entry.name).get(name, ())
        for kind in kinds:
            d = torch.from_numpy(np.zeros(1, samples.DTYPES[kind])).dtype
            for shape in [(), (1,), (4, 4), (2, 3, 4), (1000,)]:
                given: list[Any] = []
                for argument in entry.schema.arguments:
                    is_tensor = "Tensor" in str(argument.type)
                    is_mask = argument.name in ("condition", "mask")
                    given.append(torch.ones(shape, dtype=torch.bool if is_mask else d) if is_tensor else 2)
                    if argument.name == "approximate":
                        given[-1] = "none"
                    if is_tensor:
                        given[-1].memory  # noqa: B018
                with only_native(name) as missed:
                    entry.run(*given)
                assert missed == [0], (name, d, shape)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (3, 1), (64, 7), (65, 7), (1, 9), (5,), (0, 3), (3, 0), (5, 700)])
def test_a_row_is_taken_for_every_row(shape: tuple[int, ...]) -> None:
    x, row = torch.randn(*shape), torch.randn(shape[-1:])
    for d in (torch.float32, torch.float64, torch.int64):
        a, b = (3 * x).to(d), (3 * row).to(d)
        with only_native("aten::add.Tensor") as missed:
            table.find("aten::add.Tensor").run(a, b, 2)
        assert missed == [int(shape == (65, 7) or 0 in shape)], d
        assert (a < b).tolist() == (a.array < b.array).tolist()
        assert (a + b).tolist() == (a.array + b.array).tolist() == (b + a).tolist()
        a *= b
        assert a.tolist() == ((3 * x).to(d).array * b.array).tolist()


def test_a_row_of_one_element_may_have_any_stride() -> None:
    one = torch.from_numpy(np.lib.stride_tricks.as_strided(np.ones(3, np.float32), (1,), (8,)))
    assert (torch.ones(3, 1) + one).tolist() == [[2], [2], [2]]


def test_methods_and_operators_are_native_too() -> None:
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    for d in (torch.float32, torch.float64):
        a, b = x.to(d), y.to(d)
        assert ((a + b).array == a.array + b.array).all()
        assert ((2 - a).array == 2 - a.array).all()
        assert ((a < 0.5).array == (a.array < 0.5)).all()
        assert (a.add(b, alpha=2).array == a.array + 2 * b.array).all()
        assert (a.add(other=b).array == a.array + b.array).all()
        assert ((-a).array == -a.array).all()
    c = x.clone()
    d = c
    c += 1
    c *= y
    assert c is d and (c.array == (x.array + np.float32(1)) * y.array).all() and c._version == 2
    assert type(vars(Tensor)["__add__"]).__name__ == "method_descriptor"
    assert Tensor.add(x, y).tolist() == (x + y).tolist()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda x: x + "a", TypeError),
        (lambda x: x.add(), RuntimeError),
        (lambda x: x.exp(1), RuntimeError),
        (lambda x: x + torch.ones(7), RuntimeError),
        (lambda x: Tensor.exp(3), TypeError),
        (lambda x: x.int().exp_(), RuntimeError),
        (lambda x: x.add(x, nothing=3), RuntimeError),
    ],
)
def test_mistakes_are_told_as_before(wrong: Callable[[Any], Any], kind: type) -> None:
    with pytest.raises((kind, TypeError)):
        wrong(torch.ones(2, 3))


# ------------------------------------------------------------------ who steps in


def test_gradients_are_recorded() -> None:
    x = torch.rand(4, requires_grad=True)
    y = (x * 2 + x).sigmoid()
    assert y.grad_fn is not None and y.requires_grad
    y.sum().backward()
    s = 1 / (1 + np.exp(-3 * x.detach().array))
    assert np.allclose(x.grad.array, 3 * s * (1 - s), rtol=1e-5)
    with torch.no_grad():
        assert not (x + x).requires_grad
    view = torch.zeros(4)
    part = view[:2]
    view.mul_(x)
    assert (part + 1).requires_grad, "a view of what was written to"


def test_traces_see_native_operators() -> None:
    traced = torch.jit.trace(lambda x: (x + x).exp() * 2, torch.rand(3))
    kinds = [node.kind for node in traced.graph.nodes()] if hasattr(traced.graph, "nodes") else str(traced.graph)
    assert all(f"aten::{name}" in str(kinds) for name in ("add", "exp", "mul"))


def test_parameters_are_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    x = torch.ones(3)
    for call in (lambda: parameter + x, lambda: x + parameter, lambda: parameter + 1):
        with only_native("aten::add.Tensor") as missed:
            assert type(call()) is Tensor
        assert missed == [0] and call().tolist() == [2, 2, 2]
    weight = torch.nn.Parameter(torch.ones(3))
    assert (weight * x).requires_grad


def test_other_kinds_of_tensors_go_the_long_way() -> None:
    class Mine(Tensor):
        pass

    for other in (Mine(np.ones(3, np.float32)), Mine(np.ones((2, 3), np.float32))[0]):
        assert (other + torch.ones(3)).tolist() == [2, 2, 2]
        assert (torch.ones(3) + other).tolist() == [2, 2, 2]


def test_overlapping_writes_are_refused_as_before() -> None:
    base = torch.arange(8.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        base[1:5].add_(base[:4])
    base[:4].add_(base[4:])
    assert base.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]
    shared = np.arange(8.0)
    one, other = torch.from_numpy(shared[1:5]), torch.from_numpy(shared[:4])
    for each in (one, other):
        each.memory  # noqa: B018
    one.add_(other)
    assert one.tolist() == [1, 3, 5, 7], "what is written must not be read again"


# ------------------------------------------------------------------ references

x32 = Tensor(np.ones((4, 4), np.float32))
turned = Tensor(np.ones((4, 3), np.float32).T)
short = Tensor(np.ones(3, np.float32))
row = Tensor(np.ones(4, np.float32))
PATHS: dict[str, Callable[[], Any]] = {
    "a new tensor": lambda: x32 + x32,
    "a number": lambda: x32 * 2.5,
    "an int": lambda: x32 < 10**6,
    "a row": lambda: x32 + row,
    "through buffers": lambda: x32.sigmoid(),  # type: ignore[attr-defined]
    "in place": lambda: x32.mul_(1.0),  # type: ignore[attr-defined]
    "by its function": lambda: native._watched["aten::add.Tensor"].op.run(x32, x32, 1),
    "the long way": lambda: turned + turned,
    "named arguments": lambda: x32.add(x32, alpha=2.0),  # type: ignore[attr-defined]
    "an int that is too long": lambda: x32 + 2**60,
    "an error": lambda: raises(lambda: x32 + short),
    "a wrong type": lambda: raises(lambda: x32 + "a"),
}


def raises(call: Callable[[], Any]) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        call()


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_references_are_counted_right(path: str) -> None:
    call = PATHS[path]
    x32.memory  # noqa: B018
    watched = [x32, x32.array, x32.array.dtype, turned, turned.array, short, Tensor, np.dtype(bool)]
    immortal = [None, False, 0] if sys.version_info < (3, 12) else []
    for _ in range(300):
        call()
    gc.collect()
    before = [sys.getrefcount(each) for each in watched + immortal]
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        call()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    after = [sys.getrefcount(each) for each in watched + immortal]
    assert all(abs(a - b) < 100 for a, b in zip(after, before, strict=True)), list(zip(before, after, strict=True))
    assert grown < 50_000


def test_results_are_collected() -> None:
    y = x32 + x32
    y.itself = y  # type: ignore[attr-defined]
    assert gc.is_tracked(y)
    del y
    assert gc.collect() >= 1


def test_threads_may_call_at_once() -> None:
    native.remove("aten::cos")
    entry = table.find("aten::cos")
    assert entry is not None
    expected = np.cos(x32.array).tolist()
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(2000):
            if (found := x32.cos().tolist()) != expected:  # type: ignore[attr-defined]
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    native.compile_name("aten::cos")
    for each in threads:
        each.join()
    tiering.wait()
    assert wrong == [] and any(each.name == "aten::cos" for each in native.compiled())


# ------------------------------------------------------------------ when


def _run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


_LOOP = """
import sys, engine.torch as torch
from engine.fuser import tiering
import engine.fuser.entries.native as native
x = torch.ones(3)
for _ in range({calls}): y = x + x
print("llvmlite" in sys.modules, end=" ")
{wait}
print(y.tolist(), (x + 2).tolist(), [c.overloads for c in native.compiled()])
"""


def test_operators_are_compiled_once_they_are_called_often() -> None:
    seldom = _run(_LOOP.format(calls=100, wait="tiering.wait()"), TSREPL_NATIVE_CALLS="200")
    assert seldom == "False [2.0, 2.0, 2.0] [3.0, 3.0, 3.0] []"
    often = _run(_LOOP.format(calls=250, wait="tiering.wait()"), TSREPL_NATIVE_CALLS="200")
    overloads = "[{'aten::add.Tensor': ('f32',), 'aten::add.Scalar': ('f32',)}]"
    assert often.partition(" ")[2] == f"[2.0, 2.0, 2.0] [3.0, 3.0, 3.0] {overloads}"


def test_a_switch_keeps_native_entries_off() -> None:
    off = _run(_LOOP.format(calls=1000, wait="tiering.wait()"), TSREPL_NATIVE="0")
    assert off == "False [2.0, 2.0, 2.0] [3.0, 3.0, 3.0] []"


def test_programs_may_end_while_something_is_compiled() -> None:
    program = "import engine.torch as torch; x = torch.ones(3)\nfor _ in range(1000): x.exp(); x + x; x * x; x.tanh()"
    assert _run(program) == ""


_FORKED = """
import os, sys
from engine.fuser import tiering
from engine.fuser.entries import native
from engine.fuser.entries import forms
from engine.fuser.hot_helpers import install
from engine.fuser.entries import samples
from engine.fuser.expression import HALVES, KINDS
from tests.unit.fuser.outcomes import copied, only_native, outcome, tensors
import engine.torch as torch
x = torch.ones(3)
def work():
    for _ in range(50): x.exp(); x + x; x * x; x.tanh()
work()
child = os.fork()
import llvmlite.binding
work()
tiering.wait()
same = {c.name for c in native.compiled()} == {"aten::exp", "aten::add", "aten::mul", "aten::tanh"}
if child == 0: os._exit(not same)
print(same, os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_programs_may_fork_while_something_is_compiled() -> None:
    for _ in range(3):
        assert _run(_FORKED, TSREPL_NATIVE_CALLS="5") == "True 0"


def test_programs_go_on_where_no_thread_is_to_be_had() -> None:
    program = """
import threading, engine.torch as torch
def start(self): raise RuntimeError("can't start new thread")
threading.Thread.start = start
x = torch.ones(3)
for _ in range(100): y = x + x
print(y.tolist())
"""
    assert _run(program, TSREPL_NATIVE_CALLS="5") == "[2.0, 2.0, 2.0]"


def test_functions_that_run_at_the_end_may_call_operators_often() -> None:
    program = """
import atexit, engine.torch as torch
x = torch.ones(3)
@atexit.register
def last():
    for _ in range(100): y = x + x
    print(y.tolist())
"""
    assert _run(program, TSREPL_NATIVE_CALLS="5") == "[2.0, 2.0, 2.0]"


def test_objects_that_die_with_python_may_call_operators() -> None:
    program = """
import os, engine.torch as torch
class Last:
    def __init__(self): self.x = torch.ones(3)
    def __del__(self): os.write(1, b"True" if (self.x + self.x).softmax(0).sum().item() > 0.99 else b"False")
last = Last()
for _ in range(10): (last.x + last.x).softmax(0).sum()
"""
    assert _run(program, TSREPL_NATIVE_CALLS="1") == "True"


def test_another_kind_of_element_is_compiled_when_it_comes_up() -> None:
    """In a process of its own: what other tests called counts as well."""
    text = (
        "import numpy as np\nimport engine.torch as torch\nfrom engine.fuser import tiering\n"
        "from engine.fuser.entries import native\n"
        "native.compile_name('aten::sinh', ('f32',))\nx = torch.rand(3, dtype=torch.float64)\n"
        "for _ in range(2 * native.SETTINGS.threshold + 5):\n    x.sinh()\ntiering.wait()\n"
        "found = next(each for each in native.compiled() if each.name == 'aten::sinh')\n"
        "assert found.overloads == {'aten::sinh': ('f32', 'f64')}, found\n"
        "assert x.sinh().tolist() == np.sinh(x.array).tolist()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)


def test_what_was_compiled_can_be_seen_and_removed() -> None:
    native.compile_name("aten::log2")
    found = next(each for each in native.compiled() if each.name == "aten::log2")
    assert found.methods == ("log2",) and 'define ptr @"entry.aten::log2"' in found.text
    native.remove("aten::log2")
    assert all(each.name != "aten::log2" for each in native.compiled())
    assert type(vars(Tensor)["log2"]).__name__ == "function"
    assert torch.ones(2).log2().tolist() == [0, 0]


def test_kinds_with_other_results_on_samples_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    native.remove("aten::exp2")
    monkeypatch.setattr(native.samples, "agree", lambda form, kind, body: kind != "f64")
    native.compile_name("aten::exp2")
    found = next(each for each in native.compiled() if each.name == "aten::exp2")
    assert found.overloads == {"aten::exp2": ("f32",)}
    assert native.refused().keys() >= {"aten::exp2 of f64"}
    assert torch.ones(2, dtype=torch.float64).exp2().tolist() == [2, 2]
    native._refused.pop("aten::exp2 of f64")


def test_a_kind_that_native_code_does_not_have_keeps_no_other_away() -> None:
    native.remove("aten::cosh")
    native.compile_name("aten::cosh", ("i64",))
    assert "aten::cosh" not in native.refused()
    native.compile_name("aten::cosh", ("f32",))
    assert any(each.name == "aten::cosh" for each in native.compiled())


def test_a_hook_that_does_the_work_is_asked() -> None:
    seen: list[str] = []

    def hook(op: Any, args: tuple[Any, ...], run: Any) -> Any:
        seen.append(op.qualified_name)
        return run(*args)

    HOOKS.trace = hook
    try:
        x32 + x32
    finally:
        HOOKS.trace = None
    assert seen == ["aten::add.Tensor"]
