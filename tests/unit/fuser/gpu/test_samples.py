"""The groups that the host's tests try are kernels for threads, too: they give the same, and are assembled."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser.gpu import assemble, emulated, ptx
from engine.fuser.gpu.assemble import NotAssembled
from engine.fuser.gpu.prepared import numbers_of, prepared
from tests.unit.fuser import samples_of_groups as samples
from tests.unit.fuser.gpu_kernels import arrays_of, binding_of, check, check_call, lowered, renamed
from tests.unit.fuser.kernels_of_groups import tensor
from tests.unit.fuser.random_programs import arguments, program

pytestmark = pytest.mark.skipif(not emulated.is_possible(), reason="the C library has no contexts")

_SPECIAL: Final = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -88.0, 0.5, 1.5]


def special() -> Any:
    return torch.from_numpy(np.array(_SPECIAL * 3, np.float32).reshape(4, 9))


def _cases() -> dict[str, tuple[list[Any], list[list[Any]]]]:
    """Of each sample: arguments, and others."""
    found: dict[str, tuple[list[Any], list[list[Any]]]] = {}
    for text in samples.POINTWISE:
        found[text] = [special()], [[tensor(5, 77)], [tensor(0, 3)], [tensor(64, 33)]]
    for text in (*samples.CHOOSING, *samples.RESHAPING, *samples.PARTS):
        found[text] = [tensor(4, 6)], [[tensor(8, 6)]]
    for text in samples.MOVED:
        found[text] = [tensor(2, 3, 5)], [[tensor(4, 3, 2)]]
    for text in (*samples.REDUCING, *samples.NORMS):
        found[text] = [tensor(5, 33)], [[tensor(3, 200)], [tensor(1, 7)], [tensor(70, 6)]]
    for text in samples.COLUMNS:
        found[text] = [tensor(40, 300)], [[tensor(3, 128)], [tensor(70, 15)], [tensor(2, 1)]]
    for text in samples.REARRANGING:
        found[f"x: {text}"] = [tensor(4, 4, 6)], [[tensor(6, 4, 6)]]
    return {text: case for text, case in found.items() if "@" not in text}


CASES: Final = _cases()


@pytest.mark.parametrize("text", CASES)
def test_kernels_for_threads_give_what_programs_give(text: str) -> None:
    args, others = CASES[text]
    check(text, *args, others=others, tolerance=1e-4)


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int) -> None:
    choose = random.Random(seed)
    unit = torch.jit.CompilationUnit(program(choose, choose.randint(2, 7)))
    args, others = arguments(4, choose), arguments(10, choose)
    binding = lowered(unit, args)
    for given in (args, others):
        check_call(binding, given, unit.f, tolerance=3e-4)


@cache
def one_of_each() -> list[Any]:
    """The code of the kernels of all samples: the same for each target."""
    return [
        each
        for i, (text, (args, _)) in enumerate(CASES.items())
        for binding in [binding_of(text, *args)]
        for each in renamed(prepared(binding, numbers_of(binding, arrays_of(args))).code, f"k{i}")
    ]


@pytest.mark.parametrize("target", ptx.TARGETS)
def test_all_are_assembled(target: str) -> None:
    """In modules of many kernels; registers and spills are printed."""
    try:
        known = assemble.targets_of_ptxas()
    except NotAssembled as why:
        pytest.skip(str(why))
    code = one_of_each()
    text = ptx.ptx_of(code, target)
    assert text.count(".entry") == len(code)
    if target not in known:
        pytest.skip(f"ptxas knows no {target}")
    reports = assemble.reports(text, target)
    assert len(reports) == len(code)
    print(target, "registers at most", max(each.registers for each in reports), "spilled",
          {each.name: each.spilled for each in reports if each.spilled})  # fmt: skip
    assert all(each.spilled == 0 for each in reports)
