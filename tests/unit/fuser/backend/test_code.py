"""Code that is loaded, held and given back, by many threads at once."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from engine.fuser.backend import code, machine
from engine.fuser.ir.kernel_text import parse

ADD = "def added(a: i64, b: i64):\n    return a + b\n"
THREADS, ROUNDS = 4, 300
MAPS: Final = Path("/proc/self/maps")


@pytest.fixture
def _often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_often")
def test_threads_load_and_drop_the_same_code() -> None:
    """Whatever one thread drops another may be giving back just then; nothing is given back twice."""
    data, mistakes = machine._compile(machine.program(parse(ADD))), list[BaseException]()

    def work() -> None:
        try:
            for i in range(ROUNDS):
                held = [code.placed(data) for _ in range(3)]
                for each in held:
                    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(each.addresses["added"])
                    assert run(i, 2) == i + 2
        except BaseException as error:
            mistakes.append(error)

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert not mistakes


@pytest.mark.skipif(not MAPS.exists(), reason="the system lists no mappings")
def test_what_nobody_holds_is_unmapped() -> None:
    data = machine._compile(machine.program(parse(ADD)))
    found = code.placed(data)
    address = found.addresses["added"]
    assert _is_mapped(address)
    del found
    assert _is_mapped(address), "until code is loaded next"
    code._give_back()
    assert not _is_mapped(address)


def _is_mapped(address: int) -> bool:
    spans = (line.split()[0].split("-") for line in MAPS.read_text().splitlines())
    return any(int(begin, 16) <= address < int(end, 16) for begin, end in spans)
