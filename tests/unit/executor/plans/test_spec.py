"""Keys: what of the arguments decides on a plan."""

import timeit

import numpy as np
import pytest

from engine.aten.autograd import no_grad
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.plans.spec import SpecReader
from engine.ir.parser import parse_ir
from engine.lang import scalars
from tests.table.device_double import double


def reader(inputs: str) -> SpecReader:
    return SpecReader(parse_ir(f"graph({inputs}):\n  return ()\n").inputs)


def make(shape: tuple[int, ...], dtype: str = "f4", requires_grad: bool = False) -> Tensor:
    return tensor(np.ones(shape, dtype), requires_grad=requires_grad)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (make((2, 3)), make((4, 5)), True),
        (make((2, 3)), make((6,)), False),
        (make((2,)), make((2,), "f8"), False),
        (make((2,)), make((2,), requires_grad=True), False),
        (make((2,)), None, False),
    ],
)
def test_dtype_rank_and_grad_decide_sizes_do_not(first: Tensor, second: Tensor | None, same: bool) -> None:
    read = reader("%x : Tensor, %n : int").read
    assert (read(first, 1) == read(second, 2)) is same


def test_tensors_in_tuples_count_those_in_lists_do_not() -> None:
    read = reader("%t : (int, (Tensor, Tensor?)), %l : Tensor[]")
    assert read.names == ("t[1][0]", "t[1][1]")
    inside, optional = make((2,)), make((2, 2), "f8")
    spec = read.spec(read.read((1, (inside, None)), [optional]))
    assert str(spec) == "(t[1][0]: Float(*), t[1][1]: undefined)"
    assert read.read((1, (inside, None)), []) == read.read((2, (inside, None)), [optional])
    assert read.read((1, (inside, optional)), []) != read.read((1, (inside, None)), [])


def test_a_view_of_what_requires_grad_requires_grad() -> None:
    read = reader("%x : Tensor").read
    base = make((2, 2))
    view = base[0]
    base.mul_(make((2, 2), requires_grad=True))
    assert view.requires_grad
    assert read(view)[1][2]


def test_devices_decide_where_they_may_vary() -> None:
    inputs = parse_ir("graph(%x : Tensor, %y : Tensor?):\n  return ()\n").inputs
    here, number = make((2,)), make(())
    with double():
        there = Tensor(libraries.moved(here.array, scalars.device("cuda")))
        anywhere = SpecReader(inputs, None)
        keys = {(x, y): anywhere.read(x, y) for x in (here, there) for y in (here, there, number, None)}
        places = {pair: anywhere.accelerator(key) for pair, key in keys.items()}
        assert len({*keys.values()}) == 8
        assert {pair for pair, place in places.items() if place} == {(there, there), (there, number), (there, None)}
        assert places[there, there] == there.device
        spec = anywhere.spec(keys[there, number])
        assert str(spec) == "(x: Float(*, cuda:0), y: Float())"
        assert spec.tensors[0].type.device == there.device
        assert SpecReader(inputs).accelerator(SpecReader(inputs).read(here, None)) is None


def test_grad_mode_decides() -> None:
    read = reader("%x : Tensor")
    before = read.spec(read.read(make((2,))))
    with no_grad():
        after = read.spec(read.read(make((2, 2), "i8")))
    assert after.difference(before) == "x: Float(*) → Long(*, *), grad mode is off"
    assert before.difference(before) == ""


def test_reading_a_key_is_cheap() -> None:
    read, x, y = reader("%x : Tensor, %y : Tensor").read, make((4, 4)), make((4, 4))
    known = read(x, y)
    best = min(timeit.repeat(lambda: read(x, y) == known, number=200, repeat=50)) / 200
    assert best < 3e-6, "it takes some 0.4 microseconds"
