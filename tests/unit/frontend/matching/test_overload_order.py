"""The order in which calls try overloads."""

import pytest

import engine.aten.ops
from engine.frontend.matching.overload_order import ordered_overloads

assert engine.aten.ops


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("add", "Tensor Scalar out Scalar_out t str int complex float"),
        ("upsample_nearest2d", "- vec out"),
        ("eq", "Tensor Scalar Tensor_out Scalar_out int_list device"),
        ("index", "Tensor Tensor_hacked_twin Tensor_out str list_int"),
        ("einsum", "- sublist"),
        ("eq_", "Scalar Tensor"),
        ("relu", "- out"),
    ],
)
def test_overloads_are_tried_in_this_order(name: str, wanted: str) -> None:
    found = [entry.schema.overload or "-" for entry in ordered_overloads(f"aten::{name}")]
    assert found[: len(wanted.split())] == wanted.split()


def test_nothing_is_lost() -> None:
    assert len(ordered_overloads("aten::div")) == len(set(ordered_overloads("aten::div"))) > 10
