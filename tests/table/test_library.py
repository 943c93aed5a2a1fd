"""The law of the library: each function of each form gives what the operator's definition gives.

Elements equal those of numpy's functions up to 16 units in the last place, and what cancels: 4 units of 1 in sums of
terms (of float32 for half types, which are computed so), the root of n units of 1 in sums of n elements.  NaN,
infinities and signed zeros are the same, whole numbers are equal.  Results have the dtype and the strides of the
definition's, writes go to the same places and advance the version of memory; what a stub does not take is left to
Python, which raises as ever.  `make test` has every ninth operator, `make test-all` has them all.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.promotion import result_type
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX, COMPLEX32, HALVES
from engine.fuser.library import along, rows, serving, words
from engine.fuser.library.descriptors import DTYPES
from engine.fuser.library.forms import Form
from tests.table import library_samples
from tests.table.kernel_samples import agree
from tests.table.library_samples import Missed, missed, same

FEW = 9
"""One in so many operators is tried by default."""
Call = list[Any]
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


def some(ops: Sequence[Op]) -> list[Any]:
    return [
        pytest.param(op, id=op.qualified_name, marks=() if place % FEW == 0 else pytest.mark.slow)
        for place, op in enumerate(ops)
    ]


def may_be_served(op: Op) -> bool:
    """True if the library may have functions of the operator, or of the one that computes what it writes to its first.

    Operators whose two results stubs put together are of `test_library_moves`.
    """
    if len(op.schema.returns) > 1:
        return op.functional is None and next(along._calls(op), None) is not None
    computing = op.functional or op
    if op.functional is None:
        return next(rows.calls_of(op), None) is not None or next(along._calls(op), None) is not None
    return next(rows.calls_of(computing), None) is not None and op.schema.arguments[0].is_write


LEFT = {"aten::glu", "aten::cosine_similarity", "aten::cosine_embedding_loss"}
"""Operators that the library has no functions of: they halve a dimension, or take pairs of vectors."""
ROUGH = {"aten::erfc": 300, "aten::erfc_": 300}
"""Units in the last place by which the definition itself is off, where functions are not."""
SERVED = [op for op in table.entries() if may_be_served(op)]


def types(form: Form) -> list[str]:
    return sorted({key.split()[-1] for key in form.entries})


def calls(form: Form, type: str, *, is_written: bool) -> Iterator[Call]:
    if form.stub != serving.WRITING:
        return library_samples.along(form, type)
    return library_samples.in_place(form, type) if is_written else library_samples.pointwise(form, type)


def stub_of(op: Op, form: Form, following: Function = missed) -> Function:
    """The stub of a form alone, of calls that hooks are looked at for."""
    return serving._chained(op.name, serving._described(op, [form], is_hooked=True), following)


@pytest.mark.parametrize("op", some(SERVED))
def test_functions_give_what_the_definition_gives(op: Op) -> None:
    """Calls that a stub takes; calls that it leaves to Python are those that the operator as a whole leaves."""
    forms = [form for form in serving._forms(op) if form.stub != "serve_looped"]  # which is of `test_library_loops`
    assert bool(forms) == (op.qualified_name not in LEFT), "the library has (no) form of the operator"
    for form in forms:
        stub = stub_of(op, form)
        for type in types(form):
            served = 0
            for call in calls(form, type, is_written=op.functional is not None):
                one, other = same(call), same(call)
                try:
                    found = stub(*one)
                except Missed:
                    assert_untouched(one, call)
                    assert_alike(op, call)
                    continue
                served += 1
                wanted = op.compiled.run(*other)
                assert_equal(op, found, wanted, one, other, call)
            may_be_none = op.functional is not None and not writes_its_type(form, type)
            assert served or may_be_none, f"no call of {form.given} with {type} is served"


@pytest.mark.parametrize("name", ["aten::add.Tensor", "aten::mul_.Tensor", "aten::lt.Tensor", "aten::maximum"])
def test_tensors_of_several_dtypes_are_served(name: str) -> None:
    """Whatever the dtypes, unless they come to a half one, to complex ones that have no order, or to another than that
    of what is written."""
    op = table.find(name)
    assert op is not None
    stubs = serving._chained(op.name, serving._known(op, is_hooked=True), missed)
    for one, other in itertools.permutations(DTYPES.values(), 2):
        for sizes in ((2, 3), ()):
            tensors = [Tensor(np.ones((2, 3), one)), Tensor(np.ones(sizes, other))]
            common = result_type(each.array for each in tensors)
            has_order = common not in COMPLEX or "add" in name or "mul" in name
            is_left = common in (*HALVES, COMPLEX32) or not has_order or ("_." in name and common != one)
            try:
                found = stubs(*tensors)
            except Missed:
                assert is_left, f"{one} and {other} are left to Python"
            else:
                assert not is_left and found.array.dtype == (np.bool_ if "lt" in name else common)


def writes_its_type(form: Form, type: str) -> bool:
    """True if the result has the type of what it is written to."""
    return form.entries[type].result == type and form.given[0].kind == "TENSORS"


def assert_equal(op: Op, found: Any, wanted: Any, one: Call, other: Call, call: Call) -> None:
    """Equal results in the same place, and arguments that are afterwards what they are after the definition."""
    assert type(found) is type(wanted)
    for mine, theirs in zip(results(found), results(wanted), strict=True):
        a, b = mine.array, theirs.array
        rough = ROUGH.get(op.qualified_name, 0) * np.spacing(np.abs(b)) if b.dtype == np.float64 else 0.0
        agree(mine, theirs, np.nan_to_num(rough + cancelled(call, b)))
        assert a.size < 2 or a.strides == b.strides, (a.strides, b.strides, shown(call))
    assert [each is found for each in one] == [each is wanted for each in other]
    for mine, theirs in zip(one, other, strict=True):
        if isinstance(mine, Tensor):
            assert mine._version == theirs._version
            if mine is not found:
                agree(mine, theirs)


def results(found: Any) -> list[Tensor]:
    """The tensors that a call gives; none of an error."""
    given = found if isinstance(found, tuple) else (found,)
    return [each for each in given if isinstance(each, Tensor)]


def cancelled(call: Call, result: Any) -> float:
    """The difference that sums may have where their terms cancel, beyond what `agree` allows all."""
    if result.dtype.itemsize == 2:
        return 4 * float(np.finfo(np.float32).eps)
    sizes = [each.array.size for each in call if isinstance(each, Tensor)]
    is_sum = result.dtype.kind in "fc" and result.size < max(sizes)
    return float(np.finfo(result.dtype).eps) * max(sizes) ** 0.5 if is_sum else 0.0


RECORDED = [
    op
    for op in table.entries()
    if may_be_served(op.functional or op) and sum(a.is_write for a in op.schema.arguments) < 2
]


@pytest.mark.parametrize("op", some(RECORDED))
def test_bodies_record_what_the_definition_records(op: Op) -> None:
    """Below hooks, where an operator has no gradient of its own, those that it is made of are recorded."""
    serving.serve(op)
    computing = op.functional or op
    written = {i for i, each in enumerate(op.schema.arguments) if each.is_write}
    for form in serving._forms(computing):
        for type in {"f32", "f64", *words.COMPLEX} & {*types(form)}:
            for call in itertools.islice(calls(form, type, is_written=False), FEW):
                if len(call) in written:
                    result = outcome(computing.compiled.run, same(call))
                    call.append(result if isinstance(result, Tensor) else Tensor(X.copy()))
                found, wanted = (outcome(run, requiring(call, written)) for run in (op.body, op.compiled.body))
                if results(found) and results(wanted):
                    pairs = zip(results(found), results(wanted), strict=True)
                    assert all(a.requires_grad == b.requires_grad for a, b in pairs), shown(call)
                else:
                    assert found == wanted or found is wanted, shown(call)


def requiring(call: Call, written: set[int]) -> Call:
    """The same arguments; tensors that are not written require gradients."""
    given = same(call)
    for i, each in enumerate(given):
        if isinstance(each, Tensor) and each.array.dtype.kind in "fc" and all(each is not given[k] for k in written):
            given[i] = each.requires_grad_()
    return given


def assert_untouched(given: Call, call: Call) -> None:
    """Nothing has happened to arguments that are left to Python."""
    for mine, theirs in zip(given, call, strict=True):
        if isinstance(mine, Tensor):
            assert mine._version == 0 and mine.array.tobytes() == theirs.array.tobytes()


def assert_alike(op: Op, call: Call) -> None:
    """The operator as the library serves it does what its function in Python does, errors included."""
    found, wanted = (outcome(run, same(call)) for run in (op.run, op.compiled.run))
    if results(found) and results(wanted):
        for mine, theirs in zip(results(found), results(wanted), strict=True):
            agree(mine, theirs)
    else:
        assert found == wanted or found is wanted, shown(call)


def outcome(run: Function, call: Call) -> Any:
    """The result of a call, or the type and text of its error."""
    try:
        return run(*call)
    except Exception as error:
        return type(error), str(error)


def shown(call: Call) -> list[Any]:
    """The arguments in short, for messages."""
    return [
        (each.array.dtype, each.array.shape, each.array.strides) if isinstance(each, Tensor) else each for each in call
    ]


# ------------------------------------------------------------------ arguments that no stub takes

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


class Mine(Tensor):
    """A tensor of another class, which may have operators of its own."""


class Counted(np.ndarray[Any, Any]):
    """An array of another class."""


def stubs_of(name: str) -> Function:
    """The stubs of an operator, with nothing behind them."""
    op = table.find(name)
    assert op is not None
    return serving._chained(op.name, serving._known(op, is_hooked=True), missed)


def holding(array: Any) -> Tensor:
    """A tensor whose array is of a kind that no program gives it."""
    found = Tensor(X.copy())
    found.array = array
    return found


ODD: dict[str, Any] = {
    "bytes in another order": holding(X.astype(">f4")), "a tensor of another class": Mine(X.copy()),
    "an array of another class": holding(X.copy().view(Counted)),
    "an array": X, "nothing": None, "a list": [1.0],
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize(
    "call", ["aten::relu", "aten::add.Tensor", "aten::sum", "aten::softmax.int", "aten::add_.Tensor"]
)
def test_other_operands_are_left_to_python(call: str, what: str) -> None:
    rest: dict[str, Call] = {"aten::softmax.int": [-1, None], "aten::sum": [None]}
    stubs, operand = stubs_of(call), ODD[what]
    given = [operand, *rest.get(call, [])]
    with pytest.raises(Missed):
        stubs(*given, *([Tensor(X), 1] if "add" in call else []))
    if "add" in call:
        with pytest.raises(Missed):
            stubs(Tensor(X.copy()), operand, 1)


@pytest.mark.parametrize(("count", "names"), [(0, {}), (1, {}), (4, {}), (2, {"alpha": 1}), (1, {"other": Tensor(X)})])
def test_other_numbers_of_arguments_are_left_to_python(count: int, names: dict[str, Any]) -> None:
    with pytest.raises(Missed):
        stubs_of("aten::add.Tensor")(*[Tensor(X), Tensor(X), 1, 1][:count], **names)


def test_numbers_are_ints_and_floats_of_exactly_these_types() -> None:
    stubs, x = stubs_of("aten::mul.Scalar"), Tensor(X)
    assert stubs(x, 2).array.tolist() == stubs(x, 2.0).array.tolist() == (X * 2).tolist()
    for other in (True, np.float64(2.0), np.int64(2), 2 + 0j, "2", 2**64, Tensor(X)):
        with pytest.raises(Missed):
            stubs(x, other)
    z = Tensor(X.astype(np.complex64))
    for number in (2, 2.0, 2j, 1 - 2j):
        assert stubs(z, number).array.tolist() == (z.array * number).tolist()
    with pytest.raises(Missed):
        stubs(z, np.complex64(2j))


def test_numbers_alone_have_the_dtype_that_programs_chose() -> None:
    stubs, mask = stubs_of("aten::where.Scalar"), Tensor(X > 0)
    assert stubs(mask, 1, 2).array.dtype == np.int64 and stubs(mask, 1.0, 2.0).array.dtype == np.float32
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float64, torch.float16):
            torch.set_default_dtype(dtype)
            assert torch.where(mask, 1.0, 2.0).dtype is dtype
            with pytest.raises(Missed):
                stubs(mask, 1.0, 2.0)
    finally:
        torch.set_default_dtype(before)
    for numbers in ((1, 2.0), (True, False), (1.0, 1e40), (2**64, 0)):
        with pytest.raises(Missed):
            stubs(mask, *numbers)


# ------------------------------------------------------------------ how elements lie


EXTENTS = (1, 3, 15, 16, 17, 33, 64, 130)
"""Rows and columns around those that vectors and tiles have."""


@pytest.mark.parametrize("type", ["u8", "i16", "f16", "i32", "f32", "i64", "f64"])
def test_turned_operands_and_results_of_any_size(type: str) -> None:
    add = stubs_of("aten::add.Tensor")
    for down, across in itertools.product(EXTENTS, EXTENTS):
        x, y, z = (np.arange(i, down * across + i).astype(DTYPES[type]).reshape(down, across) for i in range(3))
        wanted = x.T + np.ascontiguousarray(y.T)
        for one, other in ((x.T, y.T.copy()), (x.T.copy(), y.T), (x.T, y.T)):
            np.testing.assert_array_equal(add(Tensor(one), Tensor(other), 1).array, wanted)
        torch.add(Tensor(x.T.copy()), Tensor(y.T.copy()), out=Tensor(z.T))
        np.testing.assert_array_equal(z.T, wanted)


def lying(array: Any) -> Iterator[Any]:
    """Matrices, and batches of them, as programs have them: whole, cut out, exchanged, by heads, one for all."""
    yield array
    yield np.concatenate([array, array], -1)[..., : array.shape[-1]]
    yield np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.concatenate([array, array], -2).swapaxes(-1, -2).copy().swapaxes(-1, -2)[..., : array.shape[-2], :]
    if array.ndim > 2:
        yield np.ascontiguousarray(np.moveaxis(array, -3, -2)).swapaxes(-3, -2)
        yield np.broadcast_to(array[:1], array.shape)


@pytest.mark.parametrize("type", ["f32", "f64", "c64"])
@pytest.mark.parametrize(
    ("name", "outer"), [("mm", ()), ("bmm", (3,)), ("matmul", ()), ("matmul", (3,)), ("matmul", (2, 3))]
)
def test_products_of_matrices_as_they_lie(name: str, outer: tuple[int, ...], type: str) -> None:
    """Whatever lies between rows, columns and matrices, results lie in order; no copy is made of real ones."""
    stubs = stubs_of(f"aten::{name}")
    python = table.find(f"aten::{name}").compiled.run
    for rows_, depth, columns in ((1, 5, 7), (4, 33, 18), (70, 9, 65)):
        x, y = (np.random.default_rng(i).normal(0, 1, (*outer, *size)).astype(DTYPES[type])
                for i, size in enumerate([(rows_, depth), (depth, columns)]))  # fmt: skip
        for one, other in itertools.product(lying(x), lying(y)):
            call = [Tensor(one), Tensor(other)]
            try:
                found = stubs(*call)
            except Missed:
                assert type == "c64", "real matrices are served"
                found = python(*call)
            np.testing.assert_allclose(found.array, one @ other, rtol=1e-4, atol=1e-5)
            assert found.array.flags.c_contiguous and python(*call).array.flags.c_contiguous


@pytest.mark.parametrize("bytes", [2**10, 2**15 - 4, 2**15, 2**18 + 4, 2**21, 2**22 - 4, 2**22])
def test_results_are_arrays_that_own_their_memory(bytes: int) -> None:
    """Those of which lines of the cache count begin with one; all can be resized, are traced, and are freed."""
    negative, x = stubs_of("aten::neg"), np.arange(bytes // 4, dtype=np.float32)
    negative(Tensor(x))
    tracemalloc.start()
    try:
        found = negative(Tensor(x)).array
        assert bytes <= tracemalloc.get_traced_memory()[0] < bytes + 4096
        if 2**15 <= bytes < 2**22:
            assert found.ctypes.data % 64 == 0
        assert found.flags.owndata and found.flags.writeable and found.flags.c_contiguous and found.base is None
        np.testing.assert_array_equal(found, -x)
        found.resize(2 * x.size, refcheck=False)
        np.testing.assert_array_equal(found, np.concatenate([-x, np.zeros_like(x)]))
        del found
        assert tracemalloc.get_traced_memory()[0] < 4096
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------ threads, forks, interrupts


def test_threads_call_at_once() -> None:
    """Short and long calls, which give up the interpreter lock, with threads of their own and without."""
    arrays = [np.random.default_rng(0).normal(0, 1, size).astype(np.float32) for size in (5, 1000, 600_000)]
    stubs, wrong = stubs_of("aten::tanh"), list[float]()
    wanted = [stubs(Tensor(array)).array for array in arrays]

    def work() -> None:
        for _ in range(20):
            for array, expected in zip(arrays, wanted, strict=True):
                if not np.array_equal(stubs(Tensor(array)).array, expected):
                    wrong.append(array.size)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_arrays_that_others_replace_live_until_a_call_has_ended() -> None:
    stubs, x = stubs_of("aten::exp"), Tensor(np.zeros(2_000_000, np.float32))
    done = threading.Event()

    def replace() -> None:
        while not done.is_set():
            x.array = np.zeros(2_000_000, np.float32)

    other = threading.Thread(target=replace)
    other.start()
    try:
        assert all((stubs(x).array == 1).all() for _ in range(10))
    finally:
        done.set()
        other.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_call_as_their_parents_do() -> None:
    stubs, large = stubs_of("aten::exp"), Tensor(np.zeros(2_000_000, np.float32))
    assert (stubs(large).array == 1).all()  # threads of kernels are there
    child = os.fork()
    if child == 0:
        os._exit(0 if (stubs(large).array == 1).all() and (torch.ones(3) + 1).tolist() == [2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such clock")
def test_interrupts_wait_for_a_call_to_end() -> None:
    """What is written is written as a whole, whenever the interrupt comes."""
    add, one = stubs_of("aten::add_.Scalar"), Tensor(np.zeros(4_000_000, np.float32))

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (1e-4, 1e-3, 3e-3):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, delay)
                for _ in range(100):
                    add(one, 1, 1)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert (one.array == one._version).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
