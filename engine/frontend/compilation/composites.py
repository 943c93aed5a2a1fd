"""Operators that are written in TorchScript.

In: an entry of the operator table with a `composite` text: an expression of its arguments, or statements that end with
`return`.  Out: a function of all its arguments, in whose graph no other function is called.

Texts may call the functions of `_COMMON`, beside all that programs have.
"""

from __future__ import annotations

import hashlib
from functools import cache
from textwrap import dedent, indent
from typing import Final

from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import CompilationUnit, Function
from engine.lang.locks import lock
from engine.lang.schema import Argument
from engine.passes.pipeline import run_pass

_COMMON: Final = """
def widened(x: Tensor) -> Tensor:
    if x.dtype == torch.float16 or x.dtype == torch.bfloat16:
        return x.float()
    return x

def reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 0:
        return loss
    return loss.mean() if reduction == 1 else loss.sum()

def last(count: int) -> List[int]:
    return [-1 - i for i in range(count)]

def check_last(x: Tensor, sizes: List[int]) -> None:
    if x.size()[x.dim() - len(sizes):] != sizes:
        raise RuntimeError("Given normalized_shape={}, but got input of size {}".format(sizes, x.size()))

def along(values: Tensor, rank: int, axis: int) -> Tensor:
    return values.reshape([1] * axis + [-1] + [1] * (rank - axis - 1))

def channels(values: Tensor, x: Tensor) -> Tensor:
    return along(values, x.dim(), 1)

def repeated_heads(x: Tensor, heads: int) -> Tensor:
    size = x.size()
    times = heads // size[-3]
    return x.unsqueeze(-3).expand(size[:-2] + [times] + size[-2:]).flatten(-4, -3)

def shares(scores: Tensor) -> Tensor:
    top = scores.amax([-1], True)
    powers = torch.exp(scores - top)
    return torch.where(top == -float("inf"), 0.0, powers / powers.sum([-1], True))

def is_among(axis: int, rank: int, dims: Optional[List[int]]) -> bool:
    return dims is None or len(dims) == 0 or axis in dims or axis - rank in dims

def unreduced(grad: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    if not keepdim and len(size) > 0:
        shape = torch.jit.annotate(List[int], [])
        for i in range(len(size)):
            shape.append(1 if is_among(i, len(size), dim) else size[i])
        grad = grad.reshape(shape)
    return grad.expand(size)

def reduced_count(size: List[int], dim: Optional[List[int]]) -> int:
    count = 1
    for i in range(len(size)):
        if is_among(i, len(size), dim):
            count = count * size[i]
    return count

def mean_back(grad: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return unreduced(grad, size, dim, keepdim) / max(reduced_count(size, dim), 1)

def extreme_back(grad: Tensor, x: Tensor, result: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    chosen = x == unreduced(result, x.size(), dim, keepdim)
    found = torch.where(chosen, unreduced(grad, x.size(), dim, keepdim), 0)
    return found / chosen.to(x.dtype).sum(dim, True) if x.dim() > 0 else found

def summed_to(x: Tensor, size: List[int]) -> Tensor:
    lead = x.dim() - len(size)
    dims = [i for i in range(lead)]
    for i in range(len(size)):
        if size[i] == 1 and x.size(i + lead) != 1:
            dims.append(i + lead)
    return x.sum(dims, True).reshape(size) if len(dims) > 0 else x

def unit(x: Tensor, dim: int, eps: float) -> Tensor:
    length = torch.linalg_vector_norm(x, 2, [dim], True)
    return x / (length + (eps - length.detach()).clamp_min(0))

def affine(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor]) -> Tensor:
    if weight is not None:
        x = x * weight
    if bias is not None:
        x = x + bias
    return x

def affine_channels(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor]) -> Tensor:
    if weight is not None:
        x = x * channels(weight, x)
    if bias is not None:
        x = x + channels(bias, x)
    return x
"""
"""`widened`: half types as they are computed with, in float32.  `reduced`: a loss (0), its mean (1) or its sum (2).
`shares`: a softmax over the last dimension, with zeros in rows that attend to nothing.
`unreduced`: the gradient of what was reduced over dimensions, all for None and an empty list.
`unit`: divided by the length along a dimension, at least `eps`, whose gradient is that of the length all the same.
`last`: so many last dimensions.  `along`: a vector along a dimension of so many; `channels`: along the second.
"""


def compile_composite(op: Op) -> Function:
    """The operator as a function.  Raises CompileError where its text does not compile."""
    unit, name = _common(), _name(op)
    with _ALONE:
        if name not in unit.functions:
            compile_source(text_of(op), unit=unit, filename=f"<{op.qualified_name}>", strict=False)
        function = unit.functions[name]
        for each in ("inline", "constant_propagation", "dce"):
            run_pass(each, function.graph)
    return function


_ALONE: Final = lock()


@cache
def _common() -> CompilationUnit:
    return compile_source(_COMMON, filename="<composites>", strict=False)


def _name(op: Op) -> str:
    """A name that operators with the same schema and text share."""
    digest = hashlib.sha256(f"{op.text}\n{op.composite}".encode()).hexdigest()[:12]
    return f"composite_{digest}"


def text_of(op: Op) -> str:
    """The definition of the operator's function."""
    assert op.composite is not None
    body = dedent(op.composite).strip()
    parameters = ", ".join(map(_parameter, op.schema.arguments))
    results = [result.type.annotation_str for result in op.schema.returns]
    returns = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]"
    statements = body if "return " in body else f"return {body}"
    return f"def {_name(op)}({parameters}) -> {returns}:\n{indent(statements, '    ')}\n"


def _parameter(argument: Argument) -> str:
    return f"{argument.name}: {argument.type.annotation_str}"
