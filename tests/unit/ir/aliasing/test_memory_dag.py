"""Elements of memory and their arrows."""

from itertools import pairwise

from engine.ir.aliasing.memory_dag import Element, MemoryDag, bits
from tests.timing import within


def chain(dag: MemoryDag, length: int) -> list[Element]:
    elements = [dag.fresh() for _ in range(length)]
    for element, to in zip(elements[1:], elements, strict=False):
        dag.point(element, to)
    return elements


def test_a_location_is_what_points_nowhere() -> None:
    dag = MemoryDag()
    a, b, either = dag.fresh(), dag.fresh(), dag.fresh()
    dag.point(either, a)
    dag.point(either, b)
    assert dag.locations(a) & dag.locations(either)
    assert not dag.locations(a) & dag.locations(b)
    assert dag.locations(either) == dag.locations(a) | dag.locations(b)
    assert [dag.element_at(bit) for bit in bits(dag.locations(either))] == [a, b]


def test_what_is_held_is_reached_at_any_depth_and_through_other_names() -> None:
    dag = MemoryDag()
    held, inner, outer, name = (dag.fresh() for _ in range(4))
    dag.contain(inner, held)
    dag.contain(outer, inner)
    dag.point(name, outer)
    assert dag.contained_locations(name) & dag.locations(held)
    assert not dag.locations(name) & dag.locations(held)


def test_elements_of_a_circle_are_one_memory() -> None:
    dag = MemoryDag()
    ring = chain(dag, 5)
    dag.point(ring[0], ring[-1])
    assert len({dag.locations(element) for element in ring}) == 1
    assert dag.locations(ring[0])
    out = dag.fresh()
    dag.point(ring[2], out)
    assert {dag.locations(element) for element in ring} == {dag.locations(out)}


def test_containers_that_hold_each_other() -> None:
    dag = MemoryDag()
    a, b = dag.fresh(), dag.fresh()
    dag.contain(a, b)
    dag.contain(b, a)
    assert dag.contained_locations(a) == dag.contained_locations(b) == dag.locations(a) | dag.locations(b)


def test_answers_are_forgotten_when_arrows_are_added() -> None:
    dag = MemoryDag()
    a, b = dag.fresh(), dag.fresh()
    assert not dag.locations(a) & dag.locations(b)
    dag.point(b, a)
    assert dag.locations(a) & dag.locations(b)
    assert not dag.contained_locations(a) & dag.contained_locations(dag.fresh())


def test_long_chains_and_circles_take_no_time() -> None:
    for backwards in (False, True):
        dag = MemoryDag()
        elements = chain(dag, 20_000)
        if backwards:
            elements = [dag.fresh() for _ in range(20_000)]
            for element, to in pairwise(elements):
                dag.point(element, to)
            dag.point(elements[-1], elements[0])
        with within(2.0):
            assert len({dag.locations(element) for element in elements}) == 1
            assert len({dag.contained_locations(element) for element in elements}) == 1
