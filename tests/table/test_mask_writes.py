"""The law of masks: what is written where a mask is set, and its gradients, are PyTorch's.

`peer/mask_writes.py` writes what is compared with.
"""

from __future__ import annotations

import json

import pytest

import engine.torch as torch
from tests.table.mask_calls import CALLS, DTYPES, MASKS, RECORDED, outcome

WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("mask", MASKS)
def test_masked_writes_are_those_of_pytorch(mask: str, mode: str) -> None:
    wrong = {}
    for call in (each for each in CALLS if each[0] == mask):
        wanted = WANTED[" | ".join(call)]
        found = [outcome(torch, *call, dtype) for dtype in DTYPES]
        differs = [(d, w, f) for d, w, f in zip(DTYPES, wanted, found, strict=True) if w is not None and w != f]
        if differs:
            wrong[call] = differs
    assert not wrong
