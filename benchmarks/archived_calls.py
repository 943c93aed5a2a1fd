"""Archives and the calls that are recorded beside them: NAME.pt, and NAME.json with `calls` of a `method` and `args`.

In: folders.  Out: paths by name; for one, the method's name and the arguments of its first call, made for a library.
Tensors are `{"tensor": {"dtype", "shape", "data"}}` with base64 of their bytes, containers `{"list": [...]}`,
`{"tuple": [...]}` and `{"dict": [[key, value], ...]}`.  It loads nothing but numpy, as it is part of what new processes
do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def archives_in(folders: Sequence[str], only: str = "") -> dict[str, str]:
    """Name -> path, of the archives with calls whose names have this part."""
    paths = sorted(each for folder in folders for each in Path(folder).glob("*.pt"))
    return {each.stem: str(each) for each in paths if only in each.stem and _calls(each)}


def _calls(path: Path) -> list[Any]:
    facts = path.with_suffix(".json")
    found: list[Any] = json.loads(facts.read_text()).get("calls", []) if facts.exists() else []
    return found


def first_call(torch: Any, path: str) -> tuple[str, list[Any]]:
    """The method and the arguments of an archive's first call."""
    call = _calls(Path(path))[0]
    return call["method"], [_value(torch, each) for each in call["args"]]


def _value(torch: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    ((kind, of),) = given.items()
    if kind == "tensor":
        array = np.frombuffer(base64.b64decode(of["data"]), dtype=of["dtype"])
        return torch.from_numpy(array.reshape(of["shape"]).copy())
    if kind == "dict":
        return {key: _value(torch, value) for key, value in of}
    values = [_value(torch, each) for each in of]
    return tuple(values) if kind == "tuple" else values
