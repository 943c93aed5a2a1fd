"""Memory between: pieces are used again, are apart while in use, and come from several threads at once."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from engine.fuser.backend import scratch
from engine.fuser.backend.to_llvm import ALLOCATE, RELEASE


@pytest.fixture(scope="module")
def functions() -> Any:
    found = scratch.addresses.__wrapped__()  # with slots of their own
    allocate = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(found[ALLOCATE])
    return allocate, ctypes.CFUNCTYPE(None, ctypes.c_int64)(found[RELEASE])


def test_large_pieces_are_used_again(functions: Any) -> None:
    allocate, release = functions
    first = allocate(scratch.LEAST * 4)
    assert first % 64 == 0
    release(first)
    assert allocate(scratch.LEAST * 3) == first
    other = allocate(scratch.LEAST * 3)
    assert other != first
    release(first)
    release(other)
    release(0)


def test_pieces_are_apart(functions: Any) -> None:
    allocate, release = functions
    sizes = [0, 1, 100, scratch.LEAST, scratch.LEAST + 1, 5 * scratch.LEAST] * 6
    pieces = sorted((allocate(size), size) for size in sizes)
    for (address, size), (following, _) in pairwise(pieces):
        assert address + size <= following
        ctypes.memset(address, 1, size)
    for address, _ in pieces:
        release(address)


def test_several_threads(functions: Any) -> None:
    allocate, release = functions

    def work(number: int) -> bool:
        for i in range(200):
            size = scratch.LEAST * (1 + (i * number) % 5)
            piece = allocate(size)
            ctypes.memset(piece, number, size)
            if ctypes.string_at(piece, size) != bytes([number]) * size:
                return False
            release(piece)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 9)))
