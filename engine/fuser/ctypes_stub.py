"""Kernels as functions of Python values.

In: a name, `Binding`s, and the function that takes what no kernel takes.  Out: a function: the kernel of the first
binding whose arguments and guards hold runs on the arrays of its tensors; its results are new tensors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.wrapping import fresh
from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import Tensor
from engine.fuser import machine, to_llvm
from engine.fuser.binding import Binding, NumberArgument, Result, TensorArgument
from engine.fuser.fusion_group import DTYPES
from engine.fuser.kernel import SIZES, Apply, Buffer, Constant, Expression, Name
from engine.lang.generated import compile_function

Run = Callable[..., Any]
_CTYPES: Final = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "bool": ctypes.c_uint8,
}  # fmt: skip
_PYTHON: Final = {"f64": "float", "i64": "int", "bool": "bool"}


def bind(name: str, bindings: Sequence[Binding], fallback: Run) -> Run:
    """A function of the arguments of the bindings, which all have as many.  Raises MachineError."""
    run = fallback
    for binding in reversed(bindings):
        run = _bound(name, binding, run)
    return run


def _bound(name: str, binding: Binding, otherwise: Run) -> Run:
    kernel = binding.kernel
    code = machine.compile_module(to_llvm.module([kernel], name), [kernel.name])
    kinds: list[Any] = [ctypes.c_void_p if isinstance(p, Buffer) else _CTYPES[p.type] for p in kernel.parameters]
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.addresses[kernel.name])
    environment: dict[str, Any] = {
        "entry": entry, "otherwise": otherwise, "Tensor": Tensor, "Parameter": Parameter, "ndarray": np.ndarray,
        "empty": np.empty, "fresh": fresh, "mode": MODE, **{f"d_{key}": value for key, value in DTYPES.items()},
    }  # fmt: skip
    return compile_function(_text(binding), "run", environment, f"<kernel {name}>")


def _text(binding: Binding) -> str:
    """The function as text."""
    names = [f"a{i}" for i in range(len(binding.arguments))]
    given = ", ".join(names)
    lines = [f"def run({given}):"]
    miss = f"return otherwise({given})"

    def need(condition: str) -> None:
        lines.append(f"    if not ({condition}): {miss}")

    places: dict[str, str] = {}
    for value, argument in zip(names, binding.arguments, strict=True):
        if isinstance(argument, NumberArgument):
            need(f"type({value}) is {_PYTHON[argument.type]}")
            if argument.type == "i64":
                need(f"{-(2**63)} <= {value} < {2**63}")
            places[argument.name] = value
            continue
        _need_tensor(value, argument, need, places)
    for let in binding.lets:
        lines.append(f"    {let.name} = {python_text(let.value, places)}")
        places[let.name] = let.name
    for guard in binding.guards:
        need(python_text(guard, places))
    made = []
    for i, result in enumerate(binding.results):
        assert isinstance(result, Result)
        assert result.shape is not None
        shape = "".join(f"{python_text(each, places)}, " for each in result.shape)
        lines.append(f"    r{i} = empty(({shape}), d_{result.type})")
        places[result.name] = f"r{i}.__array_interface__['data'][0]"
        made.append(f"fresh(r{i})")
    passed = ", ".join(places[p.name] for p in binding.kernel.parameters)
    need(f"entry({passed}) == 0")
    lines.append(f"    return {made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'}")
    return "\n".join(lines) + "\n"


def _need_tensor(value: str, argument: TensorArgument, need: Callable[[str], None], places: dict[str, str]) -> None:
    """Checks of a tensor, after which `places` has the names of its sizes and the address of its elements."""
    array, item = f"{value}_array", SIZES[argument.type]
    need(f"type({value}) is Tensor or type({value}) is Parameter")
    need(f"not mode.enabled or not ({value}._requires_grad or {value}._base is not None and {value}.requires_grad)")
    need(f"type({array} := {value}.array) is ndarray and {array}.dtype is d_{argument.type}")
    need(f"{array}.ndim == {argument.rank} and {array}.flags.aligned")
    if argument.layout == "contiguous":
        need(f"{array}.flags.c_contiguous")
    elif argument.rank:
        need(" and ".join(f"{array}.strides[{d}] % {item} == 0" for d in range(argument.rank)))
    for d in range(argument.rank):
        places[f"{argument.name}_size_{d}"] = f"{array}.shape[{d}]"
        places[f"{argument.name}_stride_{d}"] = f"{array}.strides[{d}] // {item}"
    places[argument.name] = f"{array}.__array_interface__['data'][0]"


_OPERATORS: Final = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "quotient": "({} // {})", "rest": "({} % {})",
    "eq": "({} == {})", "ne": "({} != {})", "lt": "({} < {})", "le": "({} <= {})", "gt": "({} > {})",
    "ge": "({} >= {})", "minimum": "min({}, {})", "maximum": "max({}, {})", "bitand": "({} & {})",
    "bitor": "({} | {})",
}  # fmt: skip


def python_text(of: Expression, places: dict[str, str]) -> str:
    """An expression over sizes, which are not negative, as Python."""
    match of:
        case Constant(value=value):
            return repr(value)
        case Name(name=name):
            return places[name]
        case Apply(function=function, operands=operands):
            return _OPERATORS[function].format(*(python_text(each, places) for each in operands))
    raise AssertionError(of)
