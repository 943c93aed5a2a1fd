"""Forms of programs that are older than others, or rarer: constructors of one dtype, blocks left to Python, numbers of
`math`, sizes of `torch.nn.common_types`, types that are not shared."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import CompileError, NotSupportedError
from engine.torch import nn
from engine.torch.jit import script
from engine.torch.jit.python_types import BroadcastingList2

_size_2_t = Any


def unit(call: str) -> Any:
    return torch.jit.CompilationUnit(f"def f(x):\n    return {call}\n").f


@pytest.mark.parametrize("name", "Bool Byte Char Double Float Half Int Long Short".split())
def test_a_constructor_of_a_dtype_makes_what_it_makes_in_python(name: str) -> None:
    for arguments in ("[1, 0]", "2, 3", "4", ""):
        made = unit(f"torch.{name}Tensor({arguments})")(torch.ones(1))
        wanted = eval(f"torch.{name}Tensor({arguments})")
        assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
        assert not arguments.startswith("[") or made.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [("1, [2]", "multiple positional arguments that were not all integers"), ("hello=1", "Got kwarg hello")],
)
def test_other_arguments_are_refused(arguments: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        _ = unit(f"torch.LongTensor({arguments})")


def with_results(a: int, b: int) -> int:
    c: int = 0
    d: int = 6
    with torch.jit._IgnoreContextManager(a="inp:int", b="inp:int", c="out:int", d="out:int"):
        found = [2 for i in range(a) if i > 2]
        c = found[0] + a + b
        d = 9
    return c + d


def with_a_list() -> int:
    with torch.jit._IgnoreContextManager(c="out:List[int]"):
        c = [2 for i in range(7) if i > 2]
    c[0] = 3
    return c[0] + c[1]


def with_nothing(a: int) -> int:
    with torch.jit._IgnoreContextManager(a="inp:int"):
        _ = [b for b in range(a) if b % 2]
    return a


@pytest.mark.parametrize(("function", "arguments"), [(with_results, (4, 5)), (with_a_list, ()), (with_nothing, (4,))])
def test_a_block_is_left_to_python(function: Any, arguments: tuple[int, ...]) -> None:
    scripted = script(function)
    assert scripted(*arguments) == function(*arguments)
    assert "prim::PythonOp" in str(scripted.graph) or "^__ignored" in str(scripted.graph)


def test_a_declaration_of_a_block_has_two_forms() -> None:
    def wrong(a: int) -> int:
        with torch.jit._IgnoreContextManager(a="int"):
            pass
        return a

    with pytest.raises(NotSupportedError, match="'a' is declared as 'int'"):
        script(wrong)


def test_inf_and_nan_of_math_are_values() -> None:
    def f(x: float):
        return x < inf, nan

    assert str(script(f)(1.0)) == "(True, nan)"


def test_one_number_stands_for_sizes() -> None:
    def sizes(x: _size_2_t) -> int:
        return x[0] + x[1]

    def floats(x: BroadcastingList2[float]) -> float:
        return x[0] + x[1]

    assert (script(sizes)(4), script(sizes)([1, 2])) == (8, 3)
    assert script(floats)(4.5) == 9.0


def test_types_need_not_be_shared() -> None:
    class Same(nn.Module):
        def forward(self, x):
            return x

    recursive = torch.jit._recursive
    made = [
        recursive.create_script_module(Same(), recursive.infer_methods_to_compile, share_types=False) for _ in range(2)
    ]
    assert made[0]._c._type() != made[1]._c._type()
    assert script(Same())._c._type() == script(Same())._c._type()


def test_operators_behind_interfaces_are_exported() -> None:
    @torch.jit.interface
    class One(nn.Module):
        def one(self, x: torch.Tensor) -> torch.Tensor:
            pass

    class Halved(nn.Module):
        def one(self, x: torch.Tensor) -> torch.Tensor:
            return 2 / x

    class Holder(nn.Module):
        part: One

        def __init__(self) -> None:
            super().__init__()
            self.part = Halved()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.part.one(x)

    assert {"aten::reciprocal", "aten::mul.Scalar"} <= {*torch.jit.export_opnames(script(Holder()))}


def test_a_unit_takes_graphs() -> None:
    made = torch.jit.CompilationUnit()
    made.create_function("twice", unit("x * 2").graph)
    assert made.twice(torch.ones(1)).tolist() == [2.0]
    assert made.find_function("thrice") is None


def test_unsafe_indexing_is_indexing() -> None:
    x, places, values = torch.arange(4.0), torch.tensor([0, 2]), torch.tensor([5.0, 6.0])
    put = torch.ops.aten._unsafe_index_put
    assert put(x, [places], values).tolist() == put.hacked_twin(x, [places], values).tolist() == [5.0, 1.0, 6.0, 3.0]
    assert torch.ops.aten._unsafe_index.Tensor_hacked_twin(x, [places]).tolist() == [0.0, 2.0]


def test_a_block_of_a_class_is_refused_with_its_place() -> None:
    class Counter:
        def up(self, a: int) -> int:
            with torch.jit._IgnoreContextManager(a="inp:int"):
                print(a)
            return a

    with pytest.raises(NotSupportedError, match="functions and in methods of modules only") as error:
        script(Counter)
    assert "print(a)" in str(error.value)


def test_methods_of_a_module_have_blocks_of_their_own() -> None:
    class Two(nn.Module):
        def forward(self, a: int) -> int:
            b: int = 0
            with torch.jit._IgnoreContextManager(a="inp:int", b="out:int"):
                b = a + 1
            return b + self.other(a)

        def other(self, a: int) -> int:
            b: int = 0
            with torch.jit._IgnoreContextManager(a="inp:int", b="out:int"):
                b = a * 50
            return 2 * b

    assert script(Two())(2) == 203
