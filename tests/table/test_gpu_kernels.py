"""The law of expressions on a GPU: every operator with one is a kernel for threads, which gives what numpy's functions
give when the host runs it, and which NVIDIA's assembler takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.gpu import assemble, compiler, emulated, ptx
from engine.fuser.gpu.assemble import NotAssembled
from engine.fuser.gpu.prepared import numbers_of, prepared
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.stubs.binding import Binding
from engine.lang.errors import EngineError
from tests.table.gradient_programs import program
from tests.table.kernel_samples import FLOATS, OPERATORS, agree, arguments, dtypes, flat, strided
from tests.unit.fuser.gpu_kernels import arrays_of, emulate, renamed


def calls(op: Op) -> Iterator[tuple[Any, list[Any]]]:
    """Arguments of each dtype, and of several layouts in float32."""
    for dtype in dtypes(op):
        number = 2.5 if dtype in FLOATS else 2
        found = [arguments(op, tensors, number) for tensors in flat(dtype)]
        yield from ((dtype, call) for call in (found if dtype is np.float32 else found[2:3]))
    for tensors in strided(np.float32):
        yield np.float32, arguments(op, tensors, 2.5)


def kernel(op: Op, call: list[Any]) -> tuple[Binding, list[Tensor]]:
    """The kernel for such a call, and its tensors.  Raises NotFused."""
    function, tensors = program(op, call)
    return compiler.lower(function.graph, tensors, [op.compiled.run(*call)]), tensors


def may_have_none(op: Op, call: list[Any], dtype: Any) -> bool:
    """True for whole numbers, some of which are left to Python, and where only the C library has the function."""
    if dtype not in FLOATS:
        return True
    with pytest.raises(NotFused, match="the C library's"):
        kernel(op, call)
    return True


def is_refused(op: Op, call: list[Any]) -> bool:
    """True if the operator refuses the arguments."""
    try:
        op.compiled.run(*call)
    except EngineError:
        return True
    return False


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.skipif(not emulated.is_possible(), reason="the C library has no contexts")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_kernels_for_threads_give_what_numpy_gives(op: Op) -> None:
    made = 0
    for dtype, call in calls(op):
        if is_refused(op, call):
            continue
        try:
            binding, tensors = kernel(op, call)
        except NotFused:
            assert may_have_none(op, call, dtype)
            continue
        _, (found,) = emulate(binding, tensors)
        wanted = op.compiled.run(*call)
        (result,) = binding.results
        order = result.order or range(found.ndim)
        lying = found.reshape([found.shape[d] for d in order]).transpose(np.argsort(order)) if found.ndim else found
        agree(Tensor(lying), wanted)
        made += 1
    assert made > 0


@cache
def one_of_each() -> list[Any]:
    """The code of one kernel of each operator, of float32 or whole numbers: the same for each target."""
    code = []
    for i, op in enumerate(OPERATORS):
        _, call = next((dtype, call) for dtype, call in calls(op) if not is_refused(op, call))
        binding, tensors = kernel(op, call)
        code += renamed(prepared(binding, numbers_of(binding, arrays_of(tensors))).code, f"k{i}")
    return code


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("target", ptx.TARGETS)
def test_all_are_assembled(target: str) -> None:
    code = one_of_each()
    text = ptx.ptx_of(code, target)
    assert text.count(".entry") == len(code) >= len(OPERATORS)
    try:
        known = target in assemble.targets_of_ptxas()
    except NotAssembled as why:
        pytest.skip(str(why))
    if not known:
        pytest.skip(f"ptxas knows no {target}")
    reports = assemble.reports(text, target)
    assert len(reports) == len(code)
    assert {each.name: each.spilled for each in reports if each.spilled} == {}
