"""Front ends as they are sent: nothing but comments and indentation is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tsrepl.widgets
from tsrepl.widgets import WIDGETS
from tsrepl.widgets.view import View, front_end

FOLDER = Path(tsrepl.widgets.__file__).parent


@pytest.mark.parametrize("name", sorted(each.stem for each in FOLDER.glob("*.js")))
def test_code_is_kept(name: str) -> None:
    sent = front_end(name)
    common, own = (_code((FOLDER / f"{each}.js").read_text()) for each in ("common", name))
    assert sent.split() == [*common, *own]
    assert "/**" not in sent and not re.search(r"^\s*//", sent, re.MULTILINE)


def _code(text: str) -> list[str]:
    """The words of a text without comments that begin a line."""
    lines, is_comment = list[str](), False
    for line in text.split("\n"):
        is_comment = is_comment or line.lstrip().startswith("/**")
        if not is_comment and not line.lstrip().startswith("//"):
            lines.append(line)
        is_comment = is_comment and not line.rstrip().endswith("*/")
    return "\n".join(lines).split()


@pytest.mark.parametrize("view", {*WIDGETS.values()}, ids=lambda view: view.__name__)
def test_every_view_sends_a_module(view: type[View]) -> None:
    assert "export default { render }" in view._esm.default_value  # type: ignore[attr-defined]
