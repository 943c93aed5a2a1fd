"""The line at the foot of the terminal."""

from tsrepl.session.replies import Binding, SignatureHint
from tsrepl.shell.toolbar import EMPTY, signature_text, toolbar_text

BINDINGS = (
    Binding("x", "variable", "Tensor", ""),
    Binding("f", "function", "", ""),
    Binding("net", "module", "Net", ""),
    Binding("n", "variable", "int", ""),
)


def shown(width: int) -> str:
    return "".join(part[1] for part in toolbar_text(BINDINGS, width))


def test_functions_first_then_modules_then_the_newest_variables() -> None:
    assert shown(80) == " f()  module net  n: int  x: Tensor"


def test_what_does_not_fit_is_counted() -> None:
    assert shown(30) == " f()  module net  +2 more"


def test_it_never_exceeds_the_terminal() -> None:
    assert all(len(shown(width)) <= width for width in range(1, 60))


def test_an_empty_session_tells_where_help_is() -> None:
    assert EMPTY in "".join(part[1] for part in toolbar_text((), 80))


HINT = SignatureHint("f(Tensor a, Tensor b, Tensor c) -> Tensor", 12, 20, 3)


def test_the_argument_of_a_signature_is_marked() -> None:
    parts = signature_text(HINT, 80)
    assert "".join(part[1] for part in parts) == f" {HINT.text}  +3 more"
    assert [part[1] for part in parts if "argument" in part[0]] == ["Tensor b"]


def test_a_long_signature_shows_the_argument() -> None:
    parts = signature_text(HINT, 24)
    assert "Tensor b" in "".join(part[1] for part in parts)
    assert all(sum(len(part[1]) for part in signature_text(HINT, width)) <= width for width in range(1, 60))
