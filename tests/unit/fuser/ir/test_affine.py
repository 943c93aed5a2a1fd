"""Places as sums of indices times steps."""

from __future__ import annotations

from engine.fuser.ir.affine import affine
from engine.fuser.ir.kernel import Name, apply, index

_I, _J, _N = (Name(each, "i64") for each in "ijn")


def test_sums_of_products() -> None:
    place = apply("add", apply("mul", apply("add", _I, index(3)), _N), apply("mul", index(2), _J))
    found = affine(place, ["i", "j"])
    assert found is not None
    assert found.steps == {"i": _N, "j": index(2)}
    assert found.first == apply("mul", index(3), _N)


def test_other_forms() -> None:
    assert affine(apply("quotient", _I, _N), ["i"]) is None
    assert affine(apply("mul", _I, _J), ["i", "j"]) is None
    free = affine(apply("quotient", _N, index(2)), ["i"])
    assert free is not None and not free.steps
