"""Views that stubs make are those that Python makes: the same places in the same memory, with the same history."""

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import tiering
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.operators import eager
from engine.fuser.stubs import stub


@pytest.fixture(autouse=True, scope="module")
def _eager() -> Iterator[None]:
    mode = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(mode)


class Missed(Exception):
    pass


def missed(*args: Any) -> Any:
    raise Missed


def x(requires_grad: bool = False) -> Tensor:
    return Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4), requires_grad)


def view_stub(name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The stub of views like this one, and the operator's function in Python."""
    op = table.find(f"aten::{name}")
    assert op is not None
    python = op.compiled.run
    return stub.bind(name, [eager.binding_of(op, args)], missed, role="operator"), python


def form(tensor: Tensor) -> Any:
    array = tensor.array
    flags = array.flags.c_contiguous, array.flags.f_contiguous, array.flags.writeable, array.flags.owndata
    address = array.__array_interface__["data"][0]
    return array.shape, array.strides, array.dtype, flags, address, tensor._storage, tensor._seen, tensor._view_kind


def check(name: str, *args: Any) -> None:
    native, python = view_stub(name, args)
    one, other = native(*args), python(*args)
    assert form(one) == form(other) and one._base is other._base
    assert one._storage is other._storage and not one.requires_grad


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("view", ([24],)), ("view", ([6, 4],)), ("view", ([2, -1],)), ("view", ([2, 1, 12],)), ("view", ([4, 3, 2],)),
    ("reshape", ([4, 6],)), ("transpose.int", (0, 2)), ("transpose.int", (-1, -2)), ("permute", ([2, 0, 1],)),
    ("unsqueeze", (0,)), ("unsqueeze", (-1,)), ("unsqueeze", (2,)), ("squeeze.dim", (0,)), ("select.int", (1, 1)),
    ("select.int", (-1, -2)), ("slice.Tensor", (0, 1, 2, 1)), ("slice.Tensor", (1, None, None, 2)),
    ("slice.Tensor", (2, 1, -1, 1)), ("slice.Tensor", (2, -3, 99, 2)), ("flatten.using_ints", (0, -1)),
    ("flatten.using_ints", (1, 2)), ("unflatten.int", (2, [2, 2])), ("alias", ()), ("expand", ([5, 2, 3, 4], False)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rest"), CALLS)
def test_views_of_contiguous_tensors(name: str, rest: tuple[Any, ...]) -> None:
    check(name, x(), *rest)


@pytest.mark.parametrize(("name", "rest"), CALLS)
def test_views_of_views(name: str, rest: tuple[Any, ...]) -> None:
    of = torch.arange(96).float().reshape(3, 4, 8)[1:, 1:, ::2]
    try:
        check(name, of, *rest)
    except NotFused:
        assert name in ("view", "reshape", "flatten.using_ints")


def test_views_of_dimensions_of_size_1() -> None:
    check("squeeze", x()[:1])
    check("expand", x()[:1], [5, 3, 4], False)
    check("expand", x()[:, :1], [-1, 3, -1], False)
    check("expand_as", x()[:1], x())
    check("t", x()[:, 0])
    check("select.int", Tensor(np.ones(3, np.float32)), 0, 2)


def test_copies_are_left_to_python() -> None:
    for name, rest in [("reshape", ([24],)), ("flatten.using_ints", (0, -1))]:
        with pytest.raises(NotFused):
            view_stub(name, (x().transpose(0, 1), *rest))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.data())
@settings(max_examples=100, deadline=None)
def test_one_stub_serves_other_sizes_and_places(shape: list[int], data: st.DataObject) -> None:
    of = torch.zeros(shape)
    place, bound = st.integers(-7, 7), st.one_of(st.none(), st.integers(-7, 7))
    name = data.draw(st.sampled_from(["select.int", "slice.Tensor"]))
    kinds = [place] if name == "select.int" else [bound, bound, st.integers(1, 3)]
    first, then = ([data.draw(kind) for kind in kinds] for _ in range(2))
    try:
        native, python = view_stub(name, (torch.zeros([4] * len(shape)), 0, *first))
        found = native(of, 0, *then)
    except (NotFused, Missed):
        return
    assert form(found)[:4] == form(python(of, 0, *then))[:4]


def test_what_requires_grad_is_left_to_those_that_record() -> None:
    native, _ = view_stub("t", (x()[0],))
    leaf = x(True)
    with pytest.raises(Missed):
        native(leaf[0])
    with torch.no_grad(), pytest.raises(Missed):
        native(leaf)
    with torch.no_grad():
        assert leaf.t.__self__ is leaf and leaf[0]._view_kind == "no_grad"


@pytest.mark.parametrize(("name", "rest"), CALLS)
def test_recorded_views_have_the_nodes_of_python(name: str, rest: tuple[Any, ...]) -> None:
    leaf = x(True)
    op = table.find(f"aten::{name}")
    assert op is not None
    history = eager.history_of(op, found := eager.binding_of(op, (leaf, *rest)), (leaf, *rest))
    assert history is not None
    native = stub.bind(name, [eager.replace(found, history=history)], missed, role="operator")
    one, other = native(leaf, *rest), op.compiled.run(leaf, *rest)
    assert form(one) == form(other) and one._base is leaf and one.grad_fn.plan is other.grad_fn.plan
    assert one.grad_fn.outputs == other.grad_fn.outputs and [*one.grad_fn.kept] == [*other.grad_fn.kept]
    weights = Tensor(np.linspace(1, 2, one.array.size, dtype=np.float32).reshape(one.array.shape))
    for a, b in zip(*(torch.autograd.grad((each * weights).sum(), leaf) for each in (one, other)), strict=True):
        assert a.tolist() == b.tolist()


def test_writes_are_seen_by_all_views() -> None:
    base = x()
    native, _ = view_stub("t", (base[0],))
    turned = native(base[0])
    turned.add_(100)
    assert base.array[0, 0, 0] == 100 and base._version == turned._version == 1
    leaf = (x(True) * 1)[0]
    leaf.t().mul_(3)
    assert (leaf.array == 3 * x().array[0]).all() and leaf.grad_fn.name() == "AsStridedBackward0"


def test_sizes_may_be_given_one_by_one() -> None:
    of = x()
    for _ in range(2):
        assert of.view(4, 6).shape == of.view([4, 6]).shape == of.view((4, 6)).shape == (4, 6)
        assert of.permute(2, 0, 1).shape == (4, 2, 3)
        for wrong in (lambda: of.view(4, True), lambda: of.view(4, 7), lambda: of.view(4, 6.0), lambda: of.view(4)):
            with pytest.raises(RuntimeError):
                wrong()
        assert of.view(4, 6, 1).shape == (4, 6, 1)


def test_memory_lives_as_long_as_a_view_of_it() -> None:
    native, _ = view_stub("select.int", (x(), 0, 1))
    part = native(x(), 0, 1)
    gc.collect()
    assert part.array.tolist() == x().array[1].tolist() and part._base.array.shape == (2, 3, 4)


def test_nothing_is_left_behind() -> None:
    of, native = x(), view_stub("t", (x()[0],))[0]
    row = of[0]
    objects = of, row, of.array, of.array.dtype, row._storage, Storage, None, False, 0

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(each) for each in objects]

    native(row)
    before = counts()
    for _ in range(500):
        native(row)
        native(row).add_(0)
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before, strict=True))
