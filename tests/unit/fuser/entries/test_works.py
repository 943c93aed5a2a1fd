"""Entries over rows, entries that join and entries that make tensors do what the Python functions do, on every path."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.stepwise.language import COMPILER
from engine.aten.values.promotion import set_default_dtype
from engine.fuser import tiering
from engine.fuser.entries import forms, native, samples
from engine.fuser.entries.joining import JOINING
from engine.fuser.entries.making import MAKING
from engine.fuser.entries.row_entry import ROLES
from engine.fuser.entries.row_table import ROWS
from engine.fuser.expression import HALVES
from engine.lang import scalars
from tests.unit.fuser.outcomes import copied, only_native, outcome, tensors

pytestmark = pytest.mark.slow  # compiling all entries for six dtypes takes half a minute
KINDS = ("f32", "f64", "i64", "f16", "bf16", "i1")
KIND_OF = {kind: torch.from_numpy(np.zeros(1, d)).dtype for kind, d in samples.DTYPES.items() if kind in KINDS}


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    tiering.wait()
    for name in {name.partition(".")[0] for name in forms.WORKS}:
        native.compile_name(name, KINDS)


def test_all_of_them_are_there() -> None:
    found = {name: kinds for each in native.compiled() for name, kinds in each.overloads.items()}
    for name, work in forms.WORKS.items():
        assert set(found[name]) >= {*work.kinds} & {*KINDS}, (name, native.refused())


@pytest.fixture(autouse=True)
def _without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may round otherwise."""
    monkeypatch.setattr(COMPILER, "request", None)


OPTIONAL = st.one_of(st.none(), tensors())
DIMS = st.sampled_from([0, 1, -1, -1, -2, 2, 3, -4, None])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Tensor": tensors(),
    "Tensor?": OPTIONAL,
    "int": DIMS.filter(lambda d: d is not None),
    "int?": DIMS,
    "int[1]": st.sampled_from([[0], [1], [-1], [-1], [-2], [2], [3], [-4], [], [0, 1], [1, -1]]),
    "bool": st.booleans(),
    "float": st.sampled_from([0.0, 1e-5, 0.5, -1.0, float("nan")]),
    "Scalar": st.sampled_from([2, 2.0, 1, 0, 3, -1, 2.5, True, 1e300, 2**70, float("inf"), 16, 20000]),
    "int[]": st.sampled_from([[], [3], [2, 3], [0], [2, 0, 3], [1, 1], [-1], [200, 200], [2**62, 8], [20000]]),
    "ScalarType?": st.sampled_from([None, None, None, 6, 7, 4, 3, 11, 5, 0]),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    name = draw(st.sampled_from([*forms.WORKS]))
    entry = table.find(name)
    assert entry is not None
    arguments: list[Any] = []
    for argument in entry.schema.arguments:
        kind = str(argument.declared or argument.type).replace("SymInt", "int")
        if name in JOINING and not arguments:
            first = draw(tensors())
            same = [first, draw(tensors()), torch.zeros_like(first.detach())]
            arguments.append(draw(st.lists(st.sampled_from(same), max_size=4)))
        elif argument.name == "normalized_shape":
            shape = list(arguments[0].shape)
            arguments.append(draw(st.sampled_from([shape[-1:], shape[-1:], shape[-1:], shape, shape[-2:], [3], []])))
        elif name.endswith("layer_norm") and kind == "Tensor?":
            like = torch.ones(arguments[1], dtype=arguments[0].dtype) if min(arguments[1], default=0) >= 0 else None
            arguments.append(draw(st.one_of(st.none(), st.just(like), st.just(like), tensors())))
        elif draw(st.integers(0, 3)) and argument.has_default:
            arguments.append(argument.default)
        else:
            arguments.append(draw(VALUES.get(kind, st.none())))
    return name, arguments


@given(calls())
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entries_do_what_the_python_functions_do(call: tuple[str, list[Any]]) -> None:
    name, arguments = call
    watched = native._watched[name]
    one, other = copied(arguments), copied(arguments)
    found, expected = outcome(watched.op.run, one), outcome(watched.plain, other)
    assert found == expected, name


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_never_get_to_python(name: str) -> None:
    work, entry = ROWS[name], table.find(name)
    assert entry is not None
    for kind in {*work.kinds} & {*KIND_OF}:
        d = KIND_OF[kind]
        for shape in [(1,), (4, 4), (2, 3, 4), (1000,), (3, 20000 if kind not in HALVES else 400)]:
            for i in range(4):
                x = (3 * torch.randn(*shape)).to(d)
                special = {"x": x, "shape": [shape[-1]]} | dict.fromkeys(("weight", "bias"), x.reshape(-1)[: shape[-1]])
                choices = [ROLES.get(role, (None,)) for role in work.roles]
                values = [special.get(r, c[i % len(c)]) for r, c in zip(work.roles, choices, strict=True)]
                expected = native._watched[name].body(*values)
                with only_native(name) as missed:
                    found = entry.run(*values)
                assert missed == [0], (d, shape, values)
                both = (each if isinstance(each, tuple) else (each,) for each in (found, expected))
                for a, b in zip(*both, strict=True):
                    assert a.array.dtype == b.array.dtype
                    assert a.array.tobytes() == b.array.tobytes(), (d, shape)


@pytest.mark.parametrize("name", ["sum.dim_IntList", "mean.dim", "amax", "amin", "linalg_vector_norm"])
def test_reductions_go_over_any_dimension(name: str) -> None:
    entry = table.find(f"aten::{name}")
    assert entry is not None
    x = torch.randn(3, 5, 70)
    for dim in (0, 1, 2):
        arguments = [x, 2, [dim], True, None] if "norm" in name else [x, [dim], True, None]
        arguments = arguments[: len(entry.schema.arguments)]
        expected = native._watched[f"aten::{name}"].body(*arguments)
        with only_native(f"aten::{name}") as missed:
            assert entry.run(*arguments).array.tobytes() == expected.array.tobytes()
        assert missed == [0]


def test_joining_and_making_never_get_to_python() -> None:
    x = torch.ones(2, 3)
    for name, arguments in {
        "cat": [[x, x], 1], "stack": [[x, x, x], -1], "zeros": [[2, 3], None, None, None, None],
        "full": [[2], 2.5, None, None, None, None], "ones_like": [x, None, None, None, None, None],
        "arange": [16, None, None, None, None], "full_like": [x, 3, 4, None, None, None, None],
    }.items():  # fmt: skip
        with only_native(f"aten::{name}") as missed:
            table.find(f"aten::{name}").run(*arguments)  # type: ignore[union-attr]
        assert missed == [0], name


def test_another_default_dtype_counts_at_once() -> None:
    assert set(MAKING) <= {name for each in native.compiled() for name in each.overloads}
    set_default_dtype(scalars.float64)
    try:
        assert torch.zeros(2).dtype == torch.ones(2).dtype == torch.full((2,), 1.0).dtype == torch.float64
        assert torch.full((2,), 1).dtype == torch.arange(2).dtype == torch.int64
    finally:
        set_default_dtype(scalars.float32)
    assert torch.zeros(2).dtype == torch.float32


def test_sums_are_added_up_pairwise() -> None:
    x = torch.full((1 << 20,), 0.1)
    assert abs(x.sum().item() - (1 << 20) * float(np.float32(0.1))) < 0.05
    assert x.sum().item() == float(np.add.reduce(x.array))


def test_gradients_flow_through_entries() -> None:
    x = torch.randn(3, 5).requires_grad_()
    y = torch.nn.functional.layer_norm(torch.cat([x.softmax(-1), x]), [5], torch.ones(5))
    (y.sum(1) + y.mean() + y.max()).sum().backward()
    with_native = x.grad.tolist()
    x.grad = None
    native.SETTINGS.enabled, before = False, [each.name for each in native.compiled()]
    try:
        for name in before:
            native.remove(name)
        y = torch.nn.functional.layer_norm(torch.cat([x.softmax(-1), x]), [5], torch.ones(5))
        (y.sum(1) + y.mean() + y.max()).sum().backward()
        assert x.grad.tolist() == with_native
    finally:
        native.SETTINGS.enabled = True
        for name in before:
            native.compile_name(name, KINDS)


@pytest.mark.parametrize("d", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "k", "n"), [(4, 4, 4), (2, 3, 5), (16, 2, 40), (33, 31, 7)])
def test_products_never_get_to_python(m: int, k: int, n: int, d: Any) -> None:
    first, second, row = torch.randn(m, k, dtype=d), torch.randn(k, n, dtype=d), torch.randn(n, dtype=d)
    turned = second.t().contiguous()
    for name, arguments in [
        ("mm", [first, second]), ("mm", [first, turned.t()]), ("mm", [first.t().contiguous().t(), second]),
        ("mm", [first, first.t()]), ("matmul", [first.t(), first]), ("linear", [first, turned, row]),
        ("linear", [first, second.t(), None]), ("linear", [torch.stack([first, first]), turned, row]),
        ("linear", [first, first, None]), ("bmm", [torch.stack([first, first + 1]), torch.stack([second, 2 * second])]),
    ]:  # fmt: skip
        expected = native._watched[f"aten::{name}"].body(*arguments)
        with only_native(f"aten::{name}") as missed:
            found = table.find(f"aten::{name}").run(*arguments)  # type: ignore[union-attr]
        assert missed == [0], name
        assert found.shape == expected.shape
        assert found.array.tobytes() == expected.array.tobytes(), name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mm", [(2, 3), (4, 5)]), ("mm", [(1, 3), (3, 4)]), ("matmul", [(3,), (3, 2)]), ("matmul", [(2, 2, 3), (3, 2)]),
        ("mm", [(0, 3), (3, 2)]), ("linear", [(3,), (2, 3), None]), ("linear", [(2, 3), (2, 3), (1,)]),
        ("bmm", [(2, 3, 4), (3, 4, 2)]), ("bmm", [(2, 3, 4), (2, 3, 4)]), ("bmm", [(0, 3, 4), (0, 4, 3)]),
        ("linear", [(2, 3), (3,), None]), ("linear", [(2, 3), (2, 3), (3,)]), ("linear", [(0, 3), (2, 3), None]),
    ],
)  # fmt: skip
def test_products_of_other_shapes_are_what_python_makes_of_them(name: str, arguments: list[Any]) -> None:
    given_tensors = [None if shape is None else torch.randn(*shape) for shape in arguments]
    watched = native._watched[f"aten::{name}"]
    assert outcome(watched.op.run, given_tensors) == outcome(watched.plain, given_tensors)
