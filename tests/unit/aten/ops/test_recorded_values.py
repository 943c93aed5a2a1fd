"""Operators on Python values against what PyTorch 2.13 answered.

`recorded_values.txt` has a line for each call: operator, arguments, `->` and the result or `!!` and the message, and
`# writes 0` where the arguments that the operator changed follow the result.
"""

from __future__ import annotations

import ast
import cmath
import math
import re
from pathlib import Path
from typing import Any

import pytest

from engine.aten.dispatch import table
from engine.lang.errors import EngineError

_LINE = re.compile(r"(\S+) (\(.*\)) (->|!!) (.*?)(?: # writes ([\d ]+))?")
_RECORDED = (Path(__file__).parent / "recorded_values.txt").read_text(encoding="utf-8").split("\n")[:-1]
_NAMES = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


def _value(text: str) -> Any:
    ast.parse(text, mode="eval")
    return eval(text, {"__builtins__": {}}, _NAMES)


def _same(got: Any, wanted: Any) -> bool:
    if type(got) is not type(wanted):
        return False
    if isinstance(wanted, float):
        return got == wanted or (math.isnan(got) and math.isnan(wanted)) or math.isclose(got, wanted, rel_tol=1e-12)
    if isinstance(wanted, complex):
        parts = ((got.real, wanted.real), (got.imag, wanted.imag))
        return all(_same(g, w) for g, w in parts) or cmath.isclose(got, wanted, rel_tol=1e-12)
    if isinstance(wanted, dict):
        return _same(list(got.items()), list(wanted.items()))
    if isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(map(_same, got, wanted))
    return bool(got == wanted)


@pytest.mark.parametrize("line", _RECORDED)
def test_recorded_call(line: str) -> None:
    match = _LINE.fullmatch(line)
    assert match is not None
    name, written_args, outcome, written_result, changed = match.groups()
    entry = table.find(name)
    assert entry is not None, f"{name} is not in the table"
    args, wanted = _value(written_args), _value(written_result)
    if outcome == "!!":
        with pytest.raises(EngineError) as caught:
            entry.run(*args)
        assert caught.value.message in wanted or not wanted
        return
    result = entry.run(*args)
    if changed is not None:
        results = [result] * len(entry.schema.returns) + [args[int(i)] for i in changed.split()]
        result = tuple(results) if len(results) > 1 else results[0]
    assert _same(result, wanted)
