"""Every operator with an expression becomes a kernel, which gives what the operator gives by itself and what the
kernel's definition says: for all dtypes, special numbers, layouts, extents that broadcast, and empty tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.fuser.groups import from_graph
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.ir.kernel import FLOATS, HALVES
from engine.fuser.stubs import stub
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.lang.errors import EngineError
from engine.lang.schema import NO_DEFAULT
from engine.lang.types import NUMBER, OptionalType, TensorType
from tests.unit.fuser.reference import Array, by_definition, filled, specials

ROWS: Final = [op for op in entries() if (op.scalar or op.expression) and not op.schema.is_mutable]
TOGETHER: Final = 16
"""Operators that are compiled together."""
LEFT_TO_NUMPY: Final = {
    "aten::floor_divide", "aten::remainder.Tensor", "aten::fmod.Tensor", "aten::pow.Tensor_Tensor", "aten::pow.Scalar",
}  # fmt: skip
"""Operators that kernels do not have for whole numbers and bools: division, which may fail, and powers."""
OF_FLOATS: Final = ("_backward", "_smooth_distance")
"""Operators that other dtypes reach in no program."""
DTYPES: Final = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")


# ------------------------------------------------------------------ arguments


def _grid(type: str) -> list[Array]:
    """Every pair of special numbers."""
    values = filled(specials(type), type)
    n = len(values)
    return [
        np.ascontiguousarray(each)
        for each in (np.broadcast_to(values, (n, n)), np.broadcast_to(values[:, None], (n, n)))
    ]


def _drawn(type: str, shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).choice(filled(specials(type), type), shape)


def _layouts(type: str) -> list[list[list[Array]]]:
    """Lists of pairs of arrays that one kernel may take: strided, backwards, with the same element again and again,
    and empty; broadcasting; of different ranks; without dimensions; of three.
    """
    a, b = _drawn(type, (12, 9), 1), _drawn(type, (9, 6), 2)
    again = [np.broadcast_to(b[0], (5, 6)), np.broadcast_to(a[:5, :1], (5, 6))]
    return [
        [[a[::2].T, b[:, ::-1]], [a.T[2:7, ::-2], b[3:8]], again, [a[:0].T, b[:, :0]], [a[:1].T, b[:, 2:3]]],
        [[a[:6, :1], b[:1]], [a[:0, :1], b[2:3, 1:5]]],
        [[a[0], b.T], [a[1, :0], b.T[:, :0]]],
        [[_drawn(type, (), 3), _drawn(type, (), 4)]],
        [[_drawn(type, (2, 3, 4), 5), _drawn(type, (3, 1), 6)], [_drawn(type, (5, 2, 0), 7), _drawn(type, (2, 1), 8)]],
    ]


def _arguments(op: Op, pair: Sequence[Tensor], mask: Tensor, single: Tensor, number: float) -> list[Any]:
    """Tensors in turn, the mask where a condition is wanted; numbers as they are by default, or this one."""
    found: list[Any] = []
    for argument in op.schema.arguments:
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if isinstance(type, TensorType):
            if argument.name in ("mask", "condition"):
                found.append(mask)
            elif op.qualified_name == "aten::masked_fill.Tensor" and argument.name == "value":
                found.append(single)
            else:
                found.append(pair[sum(isinstance(each, Tensor) for each in found) % 2])
        elif argument.default is not NO_DEFAULT and argument.default is not None:
            found.append(argument.default)
        else:
            found.append(number if type is NUMBER or str(type) in ("int", "float") else None)
    return found


# ------------------------------------------------------------------ operators


Case = tuple[Op, list[Any], Array]
"""An operator, arguments, and what it gives for them."""


def _cases(rows: Sequence[Op], pair: Sequence[Array], number: float = 2) -> list[Case]:
    """The operators that take such arguments."""
    found: list[Case] = []
    with np.errstate(all="ignore"):
        tensors, mask, single = [*map(Tensor, pair)], Tensor(pair[0] > 0), Tensor(np.ones((), pair[0].dtype))
    for op in rows:
        if op.name.endswith(OF_FLOATS) and pair[0].dtype.kind not in "fV":
            continue
        args = _arguments(op, tensors, mask, single, number)
        try:
            with np.errstate(all="ignore"):
                found.append((op, args, op.run(*args).array))
        except (EngineError, OverflowError):
            continue
    return found


def _graph(cases: Sequence[Case]) -> tuple[Graph, list[Tensor]]:
    """A graph of these calls, each of which gives a result."""
    graph = Graph()
    tensors = {id(value): value for _, args, _ in cases for value in args if isinstance(value, Tensor)}
    inputs = {key: graph.add_input() for key in tensors}
    for op, args, _ in cases:
        values = [inputs[id(v)] if isinstance(v, Tensor) else insert_constant(graph, v) for v in args]
        node = graph.insert_node(graph.create(op.name, values))
        node.op = op
        graph.register_output(node.output)
    return graph, [*tensors.values()]


def _fused(cases: Sequence[Case]) -> tuple[list[Case], list[str]]:
    """The calls that kernels can hold, and the operators of the others."""
    kept, left = [], []
    for case in cases:
        try:
            from_graph.lower(*_graph([case]))
            kept.append(case)
        except NotFused as why:
            left.append(f"{case[0].qualified_name}: {why}")
    return kept, left


def _difference(found: Array, wanted: Array, type: str) -> str:
    """The kind of two results, or their first elements, that differ; empty if none do."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
    a, b = (each.astype(np.float64) if each.dtype.kind in "fV" else each for each in (found, wanted))
    tolerance = {"f64": 1e-11, "f16": 2e-3, "bf16": 1.6e-2}.get(type, 2e-6)
    differ = a != b if a.dtype.kind in "iub" else ~np.isclose(a, b, tolerance, tolerance, equal_nan=True)
    return f"{a[differ][:3]} for {b[differ][:3]}" if differ.any() else ""


def _compared(
    type: str, cases: Sequence[Case], results: Sequence[Array], by: str, others: Sequence[Array]
) -> list[str]:
    triples = zip(cases, results, others, strict=True)
    return [f"{op.qualified_name} {by}: {how}" for (op, *_), a, b in triples if (how := _difference(a, b, type))]


def _arrays(results: Any) -> list[Array]:
    return [each.array for each in (results if isinstance(results, tuple) else (results,))]


def _parts(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    return (cases[first : first + TOGETHER] for first in range(0, len(cases), TOGETHER))


@pytest.mark.parametrize("type", DTYPES)
def test_special_numbers(type: str) -> None:
    """Every operator that takes the dtype is fused, and gives the same for each pair of special numbers."""
    kept, left = _fused(_cases(ROWS, _grid(type)))
    assert [each for each in left if type in (*FLOATS, *HALVES) or each.partition(": ")[0] not in LEFT_TO_NUMPY] == []
    assert len(kept) > 100
    wrong = []
    for part in _parts(kept):
        graph, tensors = _graph(part)
        kernel = stub.bind("f", [from_graph.lower(graph, tensors)], lambda *_: None)
        wrong += _compared(type, part, _arrays(kernel(*tensors)), "by itself", [wanted for *_, wanted in part])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("turn", range(5))
def test_layouts(turn: int) -> None:
    """A fifth of the operators for each layout, another one in each dtype; also against the kernel's definition."""
    type, wrong, run = ("f32", "f64", "bf16", "i64", "u8")[turn], [], 0
    for layout, pairs in enumerate(_layouts(type)):
        number = (2, -3, 0.5)[layout % 3]
        kept, _ = _fused(_cases(ROWS[(turn + layout) % 5 :: 5], pairs[0], number))
        for part in _parts(kept):
            binding = from_graph.lower(*_graph(part))
            kernel = stub.bind("f", [binding], lambda *_: None)
            for pair in pairs:
                again = _cases([op for op, *_ in part], pair, number)
                _, tensors = _graph(again)
                results = kernel(*tensors)
                assert results is not None, "the guard holds for all of these"
                wanted = [each for *_, each in again]
                wrong += _compared(type, again, _arrays(results), f"by itself, layout {layout}", wanted)
                wrong += _compared(
                    type, again, _arrays(results), f"by definition, layout {layout}", by_definition(binding, tensors)
                )
                run += len(again)
    assert not wrong, "\n".join(wrong)
    assert run > 150
