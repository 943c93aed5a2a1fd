"""Mistakes that programs make, and the kind of error that PyTorch answers with.

In: the namespace to make them in.  Out: the kind of error that each gives.  `mistakes.txt` has one a line: the kind, a
tab, the program.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

KINDS: tuple[type[Exception], ...] = (
    KeyError, IndexError, NotImplementedError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError,
    AssertionError, RuntimeError,
)  # fmt: skip
"""The first that an error is an instance of is its kind."""
MISTAKES = [line.split("\t") for line in (Path(__file__).parent / "mistakes.txt").read_text().splitlines()]


def answer(t: Any, program: str) -> tuple[str, str]:
    """The kind of error that the program gives, and its text; "none" when there is none."""
    names = {
        "torch": t, "F": t.nn.functional, "nn": t.nn, "np": np, "x": t.arange(6.0).reshape(2, 3),
        "i": t.tensor([0, 1]), "s": t.tensor(3.0), "b": t.tensor([True, False]), "g": t.ones(2, 3, requires_grad=True),
        "c": t.ones(2, dtype=t.complex64),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(program, names)
        except Exception as error:
            kind = next((kind.__name__ for kind in KINDS if isinstance(error, kind)), type(error).__name__)
            return kind, str(error)
    return "none", ""
