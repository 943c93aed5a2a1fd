"""Answers to cases of the sweep, under whichever module stands for torch.

    PYTHON answers.py MODULE < CASES > ANSWERS

In: a JSON list of cases `[form, expression, arguments]` on the standard input; an argument is text: the name of a
tensor of the pool (`x:float16:1`: series, dtype, dimensions) or a Python number.  Out: a JSON list of facts: dtype,
sizes, strides and bytes of tensors, texts of other values, or the builtin classes of what was raised.  This file
imports nothing but Python's own modules and MODULE, so that it runs where only PyTorch is installed.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import json
import math
import struct
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip

_INF, _NAN = math.inf, math.nan
_SERIES: dict[str, dict[str, list[Any]]] = {
    "x": {
        "bool": [True, False, True, False, True, True, False, False], "whole": [1, 3, 7, 100, 127, 0, 5, 255],
        "signed": [1, -3, 7, 100, 127, 0, -128, 5], "float": [0.1, -2.5, 3.0, _INF, _NAN, 0.0, 7e4, 0.3],
        "complex": [0.1 + 2.5j, -2.5 - 1j, 3 + 0j, -1j, 0j, 1e-3 + 1j, 4 - 2j, 0.3 - 0.7j],
    },
    "y": {
        "bool": [True, True, False, True, False, True, True, False], "whole": [2, 3, 1, 7, 100, 5, 63, 4],
        "signed": [2, 3, -2, 7, 100, 5, 63, 4], "float": [0.1, 0.7, -1.5, 2.0, -_INF, 0.5, 0.3, 0.3],
        "complex": [0.1 + 2.5j, 0.7 + 0j, -1.5 + 2j, 2 - 0.5j, 1 - 1j, 0.5 + 0.5j, 3j, 0.3 + 1j],
    },
}  # fmt: skip
"""Values that one-dimensional tensors repeat; a 0-dim one has the first."""
_TIMES = 8
"""So that whole vectors of a processor are computed, as for most tensors that people have."""
_PACKED = {"bool": "?", "uint8": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "float16": "e",
           "float32": "f", "float64": "d"}  # fmt: skip


def _bytes_of(values: Sequence[Any], dtype: str) -> bytes:
    if dtype.startswith("complex"):
        return _bytes_of([part for v in values for part in (v.real, v.imag)], f"float{int(dtype[7:]) // 2}")
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    if dtype == "float16":
        values = [min(v, 65504.0) if v != _INF else v for v in values]
    return struct.pack(f"<{len(values)}{_PACKED[dtype]}", *values)


def _kind(dtype: str) -> str:
    known = {"bool": "bool", "uint8": "whole", "bfloat16": "float"}
    return known.get(dtype) or ("signed" if dtype.startswith("int") else dtype.rstrip("0123456789"))


def pool(t: Any) -> dict[str, Any]:
    """The tensors that cases name."""
    made = {}
    for series, kinds in _SERIES.items():
        for dtype in DTYPES:
            whole = t.frombuffer(bytearray(_bytes_of(kinds[_kind(dtype)], dtype)), dtype=getattr(t, dtype)).repeat(
                _TIMES
            )
            made[f"{series}:{dtype}:1"], made[f"{series}:{dtype}:0"] = whole, whole[0].clone()
    return made


def _bytes(t: Any, tensor: Any) -> str:
    flat = tensor.detach().contiguous().reshape(-1)
    if flat.dtype == t.bfloat16:
        flat = flat.view(t.int16)
    data: bytes = flat.numpy().tobytes()
    once = data[: len(data) // _TIMES if flat.numel() % _TIMES == 0 else len(data)]
    return (once if once * _TIMES == data else data).hex()


def fact(t: Any, value: Any) -> Any:
    """What can be compared of a value; of elements that repeat themselves, the first ones."""
    if isinstance(value, t.Tensor):
        return ["tensor", str(value.dtype).split(".")[-1], list(value.shape), list(value.stride()), _bytes(t, value)]
    if isinstance(value, (tuple, list)):
        return ["list", [fact(t, each) for each in value]]
    if isinstance(value, bool) or value is None:
        return ["value", repr(value)]
    if isinstance(value, (int, float, complex)):
        return ["value", type(value).__name__, repr(value)]
    return ["value", str(value)]


def refusal(error: BaseException) -> Any:
    """The builtin classes of an error, and its text."""
    names = [kind.__name__ for kind in type(error).__mro__ if hasattr(builtins, kind.__name__)]
    return ["error", names[:-2], str(error).strip()[-300:]]


class Asked:
    """Cases under the module `t`."""

    def __init__(self, t: Any) -> None:
        self.t, self.pool = t, pool(t)
        self.names = {"torch": t, "math": math}
        self.eager = functools.cache(self._eager)
        self.scripted = functools.cache(self._scripted)

    def _eager(self, expression: str) -> Callable[..., Any]:
        function: Callable[..., Any] = eval(f"lambda {', '.join('abcd')}: {expression}", self.names)
        return function

    def _scripted(self, expression: str, types: tuple[str, ...]) -> Callable[..., Any]:
        parameters = ", ".join(f"{name}: {type}" for name, type in zip("abcd", types, strict=False))
        torch = self.t  # which the program's names are looked up among
        unit = torch.jit.CompilationUnit(f"def f({parameters}):\n    return {expression}\n")
        function: Callable[..., Any] = unit.f
        return function

    def answer(self, form: str, expression: str, texts: Sequence[str]) -> Any:
        """The facts of a case's value, or of its refusal."""
        try:
            args = [self.argument(text, "_(" in expression) for text in texts]
            return fact(self.t, getattr(self, f"in_{form}")(expression, args))
        except Exception as error:
            return refusal(error)

    def argument(self, text: str, written: bool) -> Any:
        known = self.pool.get(text)
        if known is None:
            return eval(text, {"math": math})
        return known.clone() if written else known

    def in_eager(self, expression: str, args: list[Any]) -> Any:
        return self.eager(expression)(*args, *[None] * (4 - len(args)))

    def in_scripted(self, expression: str, args: list[Any]) -> Any:
        types = tuple("Tensor" if isinstance(a, self.t.Tensor) else type(a).__name__ for a in args)
        return self.scripted(expression, types)(*args)

    def in_traced(self, expression: str, args: list[Any]) -> Any:
        places = [i for i, a in enumerate(args) if isinstance(a, self.t.Tensor)]
        function = self.eager(expression)

        def traced(*tensors: Any) -> Any:
            given: list[Any] = [*args, *[None] * (4 - len(args))]
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            return function(*given)

        given = tuple(args[i] for i in places)
        fresh = [a.clone() for a in given]
        return self.t.jit.trace(traced, given, check_trace=False)(*fresh)


def answers(t: Any, cases: Sequence[Any]) -> list[Any]:
    """The facts of every case."""
    asked = Asked(t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [asked.answer(*case) for case in cases]


def main() -> None:
    t = importlib.import_module(sys.argv[1])
    with t.jit.optimized_execution(False):
        json.dump(answers(t, json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
