"""A program at a glance: what it takes and gives, what made it, where its tensors are, which mode it is in.

In: the path of an archive.  Out: a `Card`, read from its pickle and the text of its code; nothing is compiled, and what
cannot be read is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Final

from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.container.qualified_names import HOLDER, ROOT, name_of, prefix_of, record_of
from engine.serialize.container.read import Container
from engine.serialize.mobile.file import is_flatbuffer, open_program
from engine.serialize.pickling.values import Described, Foreign, describe_pickle

_FORWARD: Final = re.compile(r"\n  def forward\(self(?:: [^,)]*)?(?:,\s*)?(.*?)\) -> (.*?):\n", re.DOTALL)
_STACK: Final = re.compile(rb"\.py\(\d+\): ")
"""The Python stack that a trace keeps for each node."""
_WHOLE_FILE: Final = re.compile(rb"X.{4}(?:import|from) [a-zA-Z_]", re.DOTALL)
"""A line that no function holds: a script keeps the texts of its functions, a trace of this engine those of files."""
_MANGLED: Final = re.compile(r"___torch_mangle_\d+\.")
_LARGEST: Final = 64 << 20
"""Bytes of a pickle that is read for this."""


@dataclass(frozen=True, slots=True)
class Card:
    """`facts` are (label, text); `arguments` what `forward` takes, as its text has it, None where that is not known."""

    facts: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] | None = None


def card_of(path: str | os.PathLike[str]) -> Card:
    """The card of an archive; an empty one for a program of another layout.  Raises ArchiveError."""
    container = open_program(path)
    try:
        if is_flatbuffer(container) or "data.pkl" not in container or container.size("data.pkl") > _LARGEST:
            return Card()
        described = describe_pickle(container.read("data.pkl"), "data.pkl")
        return _card(container, described)
    except ArchiveError:
        return Card()  # loading tells what is wrong
    finally:
        container.close()


def _card(container: Container, described: Described) -> Card:
    root = described.value
    if not isinstance(root, Foreign) or not root.name.startswith(f"{ROOT}."):
        return Card()
    facts = []
    found = _forward(container, root.name)
    if found is not None:
        facts.append(("forward", f"({', '.join(found[0])}) -> {found[1]}"))
    is_function = root.name == HOLDER
    maker, of = _maker(container, root.name), _MANGLED.sub("", root.name).removeprefix(f"{ROOT}.")
    of = "a function" if is_function else of
    facts.append(("made by", f"{maker} of {of}") if maker else ("class", of))
    places = sorted({storage.location for storage in described.storages.values()})
    facts += [("device", ", ".join(places))] if places else []
    mode = "" if is_function else _mode(root)
    facts += [("mode", mode)] if mode else []
    return Card(tuple(facts), found and found[0])


def _forward(container: Container, qualname: str) -> tuple[tuple[str, ...], str] | None:
    """The arguments and the result of the class's `forward`, as they are written."""
    record = record_of(prefix_of(qualname))
    if record not in container:
        return None
    text = container.read(record).decode(errors="replace")
    start = text.find(f"class {name_of(qualname)}(")
    end = text.find("\nclass ", start + 1)
    match = _FORWARD.search(text, start, len(text) if end < 0 else end + 1) if start >= 0 else None
    if match is None:
        return None
    return tuple(" ".join(each.split()) for each in _split(match[1])), " ".join(match[2].split())


def _split(arguments: str) -> Iterator[str]:
    """The arguments, parted at the commas outside of brackets."""
    depth, start = 0, 0
    for at, char in enumerate(arguments):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            yield arguments[start:at]
            start = at + 1
    if arguments[start:].strip():
        yield arguments[start:]


def _maker(container: Container, qualname: str) -> str:
    """The function that made the program, by the texts that its debug records keep; "" where they do not tell."""
    debug = f"{record_of(prefix_of(qualname))}.debug_pkl"
    texts = container.read(debug) if debug in container and container.size(debug) <= _LARGEST else b""
    if _STACK.search(texts) or _WHOLE_FILE.search(texts) or "traced_inputs.pkl" in container:
        return "torch.jit.trace"
    return "torch.jit.script" if b"def " in texts else ""


def _mode(root: Foreign) -> str:
    """`eval`, `training`, or both where modules differ."""
    flags: set[bool] = set()
    waiting: list[Any] = [root]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Foreign):
            state = value.state
            if isinstance(state, dict) and isinstance(state.get("training"), bool):
                flags.add(state["training"])
            waiting.append(state)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
    return (
        "some modules in training, some in eval"
        if len(flags) > 1
        else "".join("training" if flag else "eval" for flag in flags)
    )
