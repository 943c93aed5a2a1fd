"""Write the list of all operators that PyTorch ever registered, and the page about those that are here.

    python tools/list_operators.py FOLDER

`FOLDER` has files of releases (`1.0.0.txt` ... `2.13.0.txt`) with their schemas, one a line: those of a running
PyTorch are `torch._C._jit_get_all_schemas()`, those of a wheel the texts in its libraries and in
`native_functions.yaml`.  The list grows by what it lacks.  Without a folder, the page alone is written.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from engine.aten.dispatch import table
from engine.lang.missing_operators import reason_for
from engine.serialize.upgrade.upgraders import UPGRADES

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "table" / "registered.txt"
PAGE = ROOT / "docs" / "operators.md"
_SCHEMA = re.compile(r"(\w+)::(\w+)(\.\w+)?\(.*\) ?->")
_HEAD = """# Operators of PyTorch 1.0 to 2.13

Every operator that a release of PyTorch registered for TorchScript is here, or is read as what it did then, or is
refused by name. `tests/table/test_registered.py` holds the list (`tests/table/registered.txt`) to that;
`python tools/list_operators.py` writes this page. An archive that calls a refused one is loaded; the call says why.
"""


def releases(folder: Path) -> list[Path]:
    """The files, oldest first."""
    return sorted(folder.glob("*.*.*.txt"), key=lambda path: number_of(path.stem))


def widened(found: dict[str, tuple[str, str]], folder: Path) -> dict[str, tuple[str, str]]:
    """By operator, the first and the last release that has it; those of `found` and of the files."""
    found = dict(found)
    for path in releases(folder):
        release = path.stem.rpartition(".")[0]
        for match in filter(None, map(_SCHEMA.match, path.read_text().splitlines())):
            name = f"{match[1]}::{match[2]}"
            known = (*found.get(name, ()), release)
            found[name] = (min(known, key=number_of), max(known, key=number_of))
    return found


def number_of(release: str) -> tuple[int, ...]:
    """`2.13` as numbers that compare."""
    return tuple(map(int, release.split(".")))


def write_list(found: dict[str, tuple[str, str]]) -> None:
    """One line for all operators of one span and namespace: `1.0 2.13 aten abs add ...`."""
    lines = defaultdict(list)
    for name, (first, last) in found.items():
        namespace, _, own = name.partition("::")
        lines[first, last, namespace].append(own)
    ordered = sorted(lines.items(), key=lambda item: (number_of(item[0][0]), number_of(item[0][1]), item[0][2]))
    LIST.write_text("".join(f"{' '.join(key)} {' '.join(sorted(names))}\n" for key, names in ordered))


def read_list() -> dict[str, tuple[str, str]]:
    """The list, by operator."""
    rows = [line.split() for line in LIST.read_text().splitlines()]
    return {f"{row[2]}::{name}": (row[0], row[1]) for row in rows for name in row[3:]}


def page(found: dict[str, tuple[str, str]]) -> str:
    """The page's text."""
    here = [name for name in found if table.overloads(name)]
    lowered = [n for n in found if n not in here and n.removeprefix("aten::") in UPGRADES and n.startswith("aten::")]
    refused = defaultdict(list)
    for name in sorted(set(found) - set(here) - set(lowered)):
        refused[reason_for(name)].append(name)
    changed = sorted(f"aten::{name}" for name in UPGRADES if table.overloads(f"aten::{name}"))
    parts = [_HEAD, "| | operators |", "| --- | --- |", f"| there | {len(here):,} |",
             f"| read as others | {len(lowered)} |", f"| refused | {sum(map(len, refused.values())):,} |", "",
             f"There, with an older meaning in older archives: {_names(changed)}.", "", "## Read as others", "",
             "| operator | releases |", "| --- | --- |"]  # fmt: skip
    parts += [f"| `{name}` | {found[name][0]} to {found[name][1]} |" for name in sorted(lowered)]
    parts += ["", "## Refused"]
    for reason, names in sorted(refused.items(), key=lambda item: -len(item[1])):
        parts += ["", f"{len(names)}, since {reason}: {_names(names)}."]
    return "\n".join(parts) + "\n"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    if len(sys.argv) > 1:
        write_list(widened(read_list(), Path(sys.argv[1])))
    PAGE.write_text(page(read_list()))
