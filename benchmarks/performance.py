"""The page of all figures, `docs/performance.md`, and the figures themselves, `performance.json`.

    python benchmarks/performance.py [--peer PYTHON] [--archives FOLDER ...] [--tables NAME ...] [--only PART] [--write]

In: the tables to measure, all by default.  Out: their text; `--write` puts their figures in the place of those that
`performance.json` has of them, and writes the page anew from the figures of all tables.  Rows that `--only` leaves out
are missing from both, so it does not go with `--write`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import commands
import eager_operators
import loads
import products
import programs
import ramp
from sides import Asked, Section

TABLES: Final[Mapping[str, Section]] = {
    "programs": programs.SECTION, "ramp": ramp.SECTION, "loads": loads.SECTION, "eager": eager_operators.SECTION,
    "commands": commands.SECTION, "products": products.SECTION,
}  # fmt: skip
FIGURES: Final = Path(__file__).with_name("performance.json")
PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"
HEAD: Final = """# Performance

`make bench` measures these tables; each is a file of `benchmarks/` that can be run alone, and
`benchmarks/performance.json` has all figures. PyTorch is that of the Python that `--peer` names. Tables "as it is" are
of this processor; for others both libraries run as on an older one.
"""


def page(figures: Mapping[str, Any]) -> Iterator[str]:
    """The text of all tables that have figures."""
    yield HEAD
    for name, section in TABLES.items():
        if name in figures:
            yield from section.lines(figures[name])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--archives", nargs="*", default=[], help="folders with NAME.pt beside NAME.json")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=[*TABLES])
    parser.add_argument("--only", default="", help="a part of the names of the rows that are wanted")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write is for whole tables")
    asked = Asked(options.peer, options.archives, options.only)
    figures = json.loads(FIGURES.read_text()) if options.write and FIGURES.exists() else {}
    for name in options.tables:
        figures[name] = TABLES[name].measure(asked)
        print(*TABLES[name].lines(figures[name]), sep="\n", flush=True)
        if options.write:  # each as it comes, so that what is cut off later is there
            FIGURES.write_text(json.dumps(figures, indent=1))
            PAGE.write_text("\n".join(page(figures)))


if __name__ == "__main__":
    main()
