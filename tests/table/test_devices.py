"""Every operator with a sample, with its tensors on another device: the CPU's values, on that device.

The device is the double, see `device_double`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten import libraries, philox
from engine.aten import op as table
from engine.aten.body import tensors_of
from engine.aten.op import Op
from engine.aten.random import generator
from engine.aten.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import EngineError
from tests.table.device_double import double
from tests.table.samples import arguments_for

ENTRIES = table.entries()
MOVES = {"aten::cpu"}
"""Their results are elsewhere by what they mean."""
TELLS = {"prim::device", "prim::is_cuda", "prim::is_cpu", "aten::get_device", "aten::data_ptr"}
"""They tell of the device."""
UNSAID = {"aten::empty_like", "aten::empty_like.out", "aten::new_empty", "aten::new_empty.out"}
"""Their values mean nothing."""


@pytest.fixture
def cuda() -> Iterator[None]:
    with double():
        yield


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors(each)]
    return [value] if isinstance(value, Tensor) else []


def there(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(there, value))
    if not isinstance(value, Tensor):
        return value
    return Tensor(libraries.moved(value.array, scalars.device("cuda")))


OF_TENSORS = [op for op in ENTRIES if op.name.startswith(("aten::", "prim::")) and tensors_of(op.schema.arguments)]


def sampled(op: Op) -> tuple[Any, ...] | None:
    """Arguments of a call that has tensors and succeeds on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arguments = arguments_for(op)
            op.run(*arguments_for(op))
        except (EngineError, KeyError, TypeError, AttributeError):  # the schema does not tell enough
            return None
    return arguments if tensors(list(arguments)) else None


def seeded() -> None:
    generator().manual_seed(0)
    philox.restart(0)


def check(op: Op, arguments: tuple[Any, ...]) -> None:
    """The same result on the CPU and on the device."""
    seeded()
    given = [there(value) for value in arguments]
    expected = op.run(*arguments)
    seeded()
    result = op.run(*given)
    wanted, found = tensors(expected), tensors(result)
    assert len(wanted) == len(found)
    for one, other in zip(wanted, found, strict=True):
        assert other.is_cuda == (op.qualified_name not in MOVES)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if not op.nondeterministic and op.qualified_name not in UNSAID:
            np.testing.assert_allclose(*(libraries.on_host(each.array) for each in (other, one)), rtol=1e-5)
    if not wanted and op.qualified_name not in TELLS:
        assert result == expected or result != result


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op", OF_TENSORS, ids=lambda op: op.qualified_name)
def test_an_operator_on_a_device_gives_what_it_gives_on_the_cpu(op: Op) -> None:
    arguments = sampled(op)
    if arguments is None:
        pytest.skip("there is no sample for it")
    check(op, arguments)


@pytest.mark.gpu
def test_operators_on_a_gpu_give_what_they_give_on_the_cpu() -> None:
    try:
        libraries.library("cuda")
    except EngineError as error:
        pytest.skip(str(error).partition("\n")[0])
    failed = {}
    for op in OF_TENSORS:
        arguments = sampled(op)
        try:
            if arguments is not None:
                check(op, arguments)
        except Exception as error:  # all of them are to be told
            failed[op.qualified_name] = f"{type(error).__name__}: {error}"
    assert not failed


def test_most_operators_on_tensors_have_a_sample() -> None:
    assert sum(sampled(op) is not None for op in OF_TENSORS) > 1200
