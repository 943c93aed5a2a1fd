"""Functions and classes of the torch namespace that are written in TorchScript.

In: a dotted name like `torch.nn.functional.relu`.  Out: the text that defines it, and the scope that it is compiled in.
The texts are the files of `source`, one for each scope, every definition starting in the first column.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Final, NamedTuple

from engine.lang.deferred import pattern_of

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "source")
_SCOPES: Final = {
    "torch.nn.functional": "torch.nn.functional",
    "torch.functional": "torch.functional",
    "torch.nn.utils.rnn": "torch.nn.utils.rnn",
    "torch.autograd.grad_mode": "torch.autograd.grad_mode",
    "torch.autograd.profiler": "torch.autograd.profiler",
    **{
        f"torch.{part}": f"torch.{part}"
        for part in (
            "amp.autocast_mode",
            "cuda.amp.autocast_mode",
            "cpu.amp.autocast_mode",
        )
    },
    "torch.jit": "torch.jit._trace",
    "torch": "torch.functional",
}
"""Namespace -> the scope whose file defines its names."""
_ELSEWHERE: Final = {
    "torch.no_grad": "torch.autograd.grad_mode.no_grad", "torch.enable_grad": "torch.autograd.grad_mode.enable_grad",
    "torch.profiler.record_function": "torch.autograd.profiler.record_function",
    **dict.fromkeys(("torch.autocast", "torch.amp.autocast"), "torch.amp.autocast_mode.autocast"),
    "torch.cuda.amp.autocast": "torch.cuda.amp.autocast_mode.autocast",
    "torch.cpu.amp.autocast": "torch.cpu.amp.autocast_mode.autocast",
}  # fmt: skip
_POOLS: Final = {
    **{f"max_pool{n}d": 6 for n in (1, 2, 3)}, **{f"adaptive_max_pool{n}d": 2 for n in (1, 2, 3)},
    **{f"fractional_max_pool{n}d": 4 for n in (2, 3)},
}  # fmt: skip
_DEFINITION: Final = pattern_of(r"^(?:def|class) (\w+)", re.MULTILINE)


class Definition(NamedTuple):
    """The text of one definition, the line where it begins in its file, and the scope it belongs to."""

    text: str
    line: int
    scope: str


class Dispatch(NamedTuple):
    """A name that stands for one of two others, by a bool argument that is known while compiling."""

    argument: str
    position: int
    when_true: str
    when_false: str


DISPATCHES: Final = {
    **{
        f"torch.nn.functional.{name}": Dispatch(
            "return_indices", at, f"torch.nn.functional.{name}_with_indices", f"torch.nn.functional._{name}"
        )
        for name, at in _POOLS.items()
    },
    "torch.unique": Dispatch("return_counts", 3, "unique with counts", "unique without counts"),
    "torch.functional.unique": Dispatch("return_counts", 3, "unique with counts", "unique without counts"),
    "unique with counts": Dispatch(
        "return_inverse", 2, "torch.functional._unique_impl", "torch.functional._return_counts"
    ),
    "unique without counts": Dispatch(
        "return_inverse", 2, "torch.functional._return_inverse", "torch.functional._return_output"
    ),
    "torch.unique_consecutive": Dispatch("return_counts", 2, "runs with counts", "runs without counts"),
    "torch.functional.unique_consecutive": Dispatch("return_counts", 2, "runs with counts", "runs without counts"),
    "runs with counts": Dispatch(
        "return_inverse", 1, "torch.functional._unique_consecutive_impl", "torch.functional._consecutive_return_counts"
    ),
    "runs without counts": Dispatch(
        "return_inverse",
        1,
        "torch.functional._consecutive_return_inverse",
        "torch.functional._consecutive_return_output",
    ),
}


def find(path: str) -> list[Definition]:
    """The definitions of that dotted name: several where it is overloaded, none where it is not known."""
    scope, _, name = _ELSEWHERE.get(path, path).rpartition(".")
    return definitions(_SCOPES[scope]).get(name, []) if scope in _SCOPES else []


def names() -> list[str]:
    """Everything that is defined for programs to use, without its scope."""
    return [name for scope in dict.fromkeys(_SCOPES.values()) for name in definitions(scope) if name[0] != "_"]


@cache
def definitions(scope: str) -> dict[str, list[Definition]]:
    """Everything that the file of that scope defines."""
    with open(os.path.join(_FOLDER, f"{scope}.txt"), encoding="utf-8") as file:
        text = file.read()
    starts = list(_DEFINITION.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    found: dict[str, list[Definition]] = {}
    for match, end in zip(starts, ends, strict=True):
        line = text.count("\n", 0, match.start()) + 1
        found.setdefault(match[1], []).append(Definition(text[match.start() : end], line, f"__torch__.{scope}"))
    return found
