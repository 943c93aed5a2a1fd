"""The line at the foot of the terminal."""

from tsrepl.session.replies import Binding
from tsrepl.shell.toolbar import EMPTY, toolbar_text

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
