"""The signature of the call that is being typed."""

from __future__ import annotations

import pytest

from tsrepl.session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session()
    session.execute("def f(a, b):\n    return a + b\n")
    session.execute("x = torch.ones(2)")
    return session


@pytest.mark.parametrize(
    ("before", "text", "argument"),
    [
        ("f(", "f(Tensor a, Tensor b) -> Tensor", "Tensor a"),
        ("y = f(x, ", "f(Tensor a, Tensor b) -> Tensor", "Tensor b"),
        ("f(b=", "f(Tensor a, Tensor b) -> Tensor", "Tensor b"),
        ("f(x, x, ", "f(Tensor a, Tensor b) -> Tensor", ""),
        ("print(f('(', [1, 2", "f(Tensor a, Tensor b) -> Tensor", "Tensor b"),
        ("torch.relu(", "aten::relu(Tensor self) -> Tensor", "Tensor self"),
        ("relu(", "aten::relu(Tensor self) -> Tensor", "Tensor self"),
        ("x.view(", "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "SymInt[] size"),
        ("%graph f(x, ", "f(Tensor a, Tensor b) -> Tensor", "Tensor b"),
    ],
)
def test_the_argument_at_the_cursor(session: Session, before: str, text: str, argument: str) -> None:
    hint = session.signature(before)
    assert hint is not None
    assert (hint.text, hint.text[hint.start : hint.end]) == (text, argument)


def test_an_overload_that_has_the_argument(session: Session) -> None:
    hint = session.signature("torch.conv2d(x, x, None, 1, padding=")
    assert hint is not None and hint.others == 1
    assert hint.text[hint.start : hint.end] == "SymInt[2] padding=[0, 0]"


@pytest.mark.parametrize("before", ["", "f(x)", "(1, ", "nothing(", "x[0", "f", ")("])
def test_outside_of_calls(session: Session, before: str) -> None:
    assert session.signature(before) is None
