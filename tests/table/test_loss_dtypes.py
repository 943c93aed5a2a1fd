"""The law of losses: of operands of two dtypes the result has PyTorch's dtype, or the call is refused, in each mode.

`peer/loss_dtypes.py` writes what is compared with.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
import engine.torch.nn.functional as functional
from engine.fuser.backend import tiering
from tests.table.loss_calls import DTYPES, EXPRESSIONS, NAMES, RECORDED, evaluated, operands, outcome

PROGRAMS = [pytest.param(each, marks=() if i % 12 == 7 else pytest.mark.slow) for i, each in enumerate(EXPRESSIONS)]
WANTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_losses_have_the_dtype_of_pytorch(expression: str) -> None:
    call = evaluated(functional, expression)
    found = [[outcome(call, operands(torch, a, b)) for b in DTYPES] for a in DTYPES]
    assert found == WANTED[expression]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The expressions as functions of a module whose source compilers can read."""
    path: Path = tmp_path_factory.mktemp("losses") / "losses_as_programs.py"
    head = f"import {torch.__name__} as torch\nimport {functional.__name__} as F\n"
    parameters = ", ".join(f"{name}: torch.Tensor" for name in NAMES)
    texts = [f"def f{i}({parameters}):\n    return {each}\n" for i, each in enumerate(EXPRESSIONS)]
    path.write_text(head + "\n".join(texts), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {each: getattr(module, f"f{i}") for i, each in enumerate(EXPRESSIONS)}


@pytest.mark.parametrize(
    "expression",
    [pytest.param(each, marks=() if i % 12 == 7 else pytest.mark.slow) for i, each in enumerate(EXPRESSIONS)],
)
def test_programs_of_losses_have_the_dtype_of_pytorch(expression: str, mode: str, programs: dict[str, Any]) -> None:
    """For operands of one dtype after the other, twice each, and again once kernels are there."""
    program = torch.jit.script(programs[expression])
    pairs = [(a, b) for a in range(len(DTYPES)) for b in range(len(DTYPES)) if (a + 2 * b) % 5 == 1]
    for a, b in pairs:
        given = operands(torch, DTYPES[a], DTYPES[b])
        for _ in range(3):
            assert outcome(program, given) == WANTED[expression][a][b], (DTYPES[a], DTYPES[b])
            tiering.wait()
