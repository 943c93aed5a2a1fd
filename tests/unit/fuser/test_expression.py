"""Scalar expressions become typed trees, or are refused."""

import pytest

from engine.fuser.expression import Apply, Element, Literal, Number, Unsupported, typed

X = Element("x", "f32")


def test_numbers_are_converted_where_they_meet_elements() -> None:
    n = Number("n", "f64")
    assert typed("x + n", ["x"], ["n"], "f32") == Apply("add", (X, Apply("convert", (n,), "f32")), "f32")
    assert typed("x + 2 * n", ["x"], ["n"], "f32") == Apply(
        "add", (X, Apply("convert", (Apply("mul", (Literal(2, "f64"), n), "f64"),), "f32")), "f32"
    )


def test_known_numbers_are_computed_as_python_does() -> None:
    assert typed("x > 0 - 3", ["x"], [], "f32") == Apply("gt", (X, Literal(-3, "f32")), "i1")
    assert typed("x + 1 / 6", ["x"], [], "f64").operands[1] == Literal(1 / 6, "f64")  # type: ignore[union-attr]


def test_what_is_made_of_several_steps_is_written_out() -> None:
    e = Apply("exp", (Apply("neg", (X,), "f32"),), "f32")
    one = Literal(1, "f32")
    assert typed("sigmoid(x)", ["x"], [], "f32") == Apply("div", (one, Apply("add", (e, one), "f32")), "f32")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5 * x", "i64"),  # the product is no whole number
        ("exp(x)", "i64"),
        ("x - y", "i1"),
        ("x + 1", "i1"),
        ("erf(x)", "f64"),
        ("x if y else x", "f32"),
        ("x < y < x", "f32"),
        ("unknown + x", "f32"),
        ("where(x, y, y)", "f32"),
        ("2 + 3", "f32"),
        ("x + '1'", "f32"),
    ],
)
def test_other_expressions_are_refused(text: str, kind: str) -> None:
    with pytest.raises(Unsupported):
        typed(text, ["x", "y"], [], kind)
