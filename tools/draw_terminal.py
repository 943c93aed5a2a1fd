"""The terminal's picture for the docs: a real dialogue, as SVG.

    python tools/draw_terminal.py

Out: `docs/pictures/terminal.svg`, of the entries below and what the session answers to them.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from tsrepl.render.palette import rich_theme
from tsrepl.render.terminal import print_reply
from tsrepl.session.session import Session

PICTURE: Final = Path(__file__).parent.parent / "docs" / "pictures" / "terminal.svg"
ENTRIES: Final = (
    "def f(a, b):\n    c = a + b\n    return torch.tanh(c * c)\n",
    "x = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)",
    "%graph f",
    "%debug f(x, x)",
    "n",
    "c.max()",
    "bn",
)


def main() -> None:
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, theme=rich_theme("dark"),
                      color_system="truecolor")  # fmt: skip
    session = Session()
    for entry in ENTRIES:
        prompt = session.prompt or "ts> "
        first, *more = entry.rstrip("\n").split("\n")
        console.print(Text.assemble((prompt, "command"), first))
        for line in more:
            console.print(Text.assemble(("... ", "muted"), line))
        for reply in session.run_text(entry):
            print_reply(reply, console)
    console.save_svg(str(PICTURE), title="tsrepl")


if __name__ == "__main__":
    main()
