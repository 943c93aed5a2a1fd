"""Settings of passes from environment variables: their log, and a limit on rewrites.

    PYTORCH_JIT_LOG_LEVEL=dce:>peephole:>>inline     graphs after `dce`; rewrites, too, of `peephole`; all of `inline`
    PYTORCH_JIT_LOG_OUTPUT_STREAM=stdout             `stderr` unless told otherwise; anything else is a file
    PYTORCH_JIT_OPT_LIMIT=dce=10:cse=3               the first ten rewrites of `dce` happen, and no more

In: their values, read when the first pass runs, or `set_logging_option`.  Out: a `Settings`.  Passes are named by their
own names, or by the names of the original's files, with or without `.py` and `.cpp`.  A line of the log starts with
`[UPDATE dce:12] `: the level, the pass, and the number that a limit would have to name to stop right after it.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from engine.ir.graph import Graph
from engine.ir.rewrites import Rewrite
from engine.lang.errors import CompileError
from engine.lang.records import dataclass

LEVELS: Final = ("DUMP", "UPDATE", "DEBUG")
"""Graphs, single rewrites, everything; each level shows those before it, too."""
ORIGINAL_FILES: Final[dict[str, str]] = {
    "dead_code_elimination": "dce", "common_subexpression_elimination": "cse", "inliner": "inline",
    "lower_tuples": "lower_all_tuples", "shape_analysis": "propagate_shapes_on_graph",
    "graph_rewrite_helper": "custom_pattern_based_rewrite_graph", "erase_number_types": "erase_number_types",
    "integer_value_refinement": "refine_integer_values", "loop_unrolling": "loop_unrolling",
    "freeze_module": "freeze_module", "remove_mutation": "remove_mutation", "variadic_ops": "use_variadic",
}  # fmt: skip
"""Where the original keeps a pass -> its name."""


@dataclass(slots=True)
class Settings:
    """Level of each pass's log and limit of its rewrites; counts the rewrites made."""

    levels: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    stream: str = "stderr"
    counts: Counter[str] = field(default_factory=Counter)

    def concern(self, name: str) -> bool:
        return name in self.levels or name in self.limits

    def allow(self, rewrite: Rewrite) -> bool:
        """A watch: counts the rewrite, writes it down, and refuses it where the limit is reached."""
        name = rewrite.pass_name
        limit = self.limits.get(name)
        if limit is not None and self.counts[name] >= limit:
            self.write("DEBUG", name, f"Not done, the limit is {limit}:\n{rewrite.text}")
            return False
        self.counts[name] += 1
        if self.levels.get(name, -1) >= LEVELS.index("UPDATE"):
            self.write("UPDATE", name, rewrite.text)
        return True

    def before(self, name: str, graph: Graph) -> None:
        if self.levels.get(name, -1) >= LEVELS.index("DEBUG"):
            self.write("DEBUG", name, f"Before {name}:\n{graph}")

    def after(self, name: str, graph: Graph) -> None:
        if name in self.levels:
            self.write("DUMP", name, f"After {name}:\n{graph}")

    def write(self, level: str, name: str, text: str) -> None:
        """Write the text, each line with its prefix, if the pass's level shows it."""
        if self.levels.get(name, -1) < LEVELS.index(level):
            return
        prefix = f"[{level} {name}:{self.counts[name]:03}] "
        lines = "".join(f"{prefix}{line}\n" for line in text.rstrip("\n").split("\n"))
        if self.stream in ("stderr", "stdout"):
            print(lines, end="", file=getattr(sys, self.stream))
            return
        with open(self.stream, "a", encoding="utf-8") as file:
            file.write(lines)


def parse_levels(text: str) -> dict[str, int]:
    """`dce:>>peephole.cpp` → {"dce": 0, "peephole": 2}."""
    found = {}
    for part in filter(None, text.split(":")):
        name = part.lstrip(">")
        found[pass_of(name)] = min(len(part) - len(name), len(LEVELS) - 1)
    return found


def parse_limits(text: str) -> dict[str, int]:
    """`dce=10:cse=3` → {"dce": 10, "cse": 3}.  Raises CompileError for what is no number."""
    found = {}
    for part in filter(None, text.split(":")):
        name, _, number = part.partition("=")
        if not re.fullmatch(r"\d+", number):
            raise CompileError(f"'{part}' limits no pass", hints=("PYTORCH_JIT_OPT_LIMIT is written `dce=10:cse=3`",))
        found[pass_of(name)] = int(number)
    return found


def pass_of(file: str) -> str:
    """The pass that lives in the file of that name, with or without folders and ending."""
    name = re.sub(r"\.(cpp|h|py)$", "", file.strip().replace("\\", "/").rpartition("/")[2])
    return ORIGINAL_FILES.get(name, name)


def settings_of(environment: Mapping[str, str]) -> Settings:
    """The settings in the environment variables.  Raises CompileError."""
    return Settings(
        parse_levels(environment.get("PYTORCH_JIT_LOG_LEVEL", "")),
        parse_limits(environment.get("PYTORCH_JIT_OPT_LIMIT", "")),
        environment.get("PYTORCH_JIT_LOG_OUTPUT_STREAM", "stderr"),
    )


class _Current:
    __slots__ = ("settings",)

    def __init__(self) -> None:
        self.settings: Settings | None = None


_CURRENT: Final = _Current()


def current() -> Settings:
    """The settings in force; the environment is read once."""
    if _CURRENT.settings is None:
        _CURRENT.settings = settings_of(os.environ)
    return _CURRENT.settings


def set_logging_option(levels: str) -> None:
    """Write down what `levels` names from now on: the grammar of PYTORCH_JIT_LOG_LEVEL."""
    current().levels = parse_levels(levels)


def get_logging_option() -> str:
    """The log text, in that grammar."""
    return ":".join(">" * level + name for name, level in current().levels.items())


def set_logging_stream(stream: str) -> None:
    """Where it is written: `stdout`, `stderr` or a file's path."""
    current().stream = stream


def set_limits(limits: str) -> None:
    """Stop passes after so many rewrites, counted from now on: the grammar of PYTORCH_JIT_OPT_LIMIT."""
    found = current()
    found.limits = parse_limits(limits)
    found.counts.clear()


def logged(name: str, run: Callable[[Graph], bool], graph: Graph, settings: Settings) -> bool:
    """Run the pass, and write down the graph as its level asks."""
    settings.before(name, graph)
    changed = run(graph)
    settings.after(name, graph)
    return changed
