"""Products of small matrices as entries, in LLVM's text: they call the function of BLAS that numpy would.

In: which operator.  Out: its `Work`.

What it is made for: matrices of floats of one dtype with more than one row and column, each in order or transposed; for
`linear` also a batch of rows, and a bias.  More work is left to numpy, which lets other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi as abi
from engine.fuser.entries import product_text, samples
from engine.fuser.entries.operands import plain_tensor
from engine.fuser.entries.row_shapes import shape_functions
from engine.fuser.expression import FLOATS
from engine.fuser.lower import LLVM_TYPES, SIZES, Library
from engine.fuser.writing import Layout, pointer

MOST: Final = 1 << 16
"""Multiplications."""


_IN_ORDER: Final = 0x1
"""The flag of an array in order."""


@dataclass(frozen=True, slots=True)
class Product:
    """`is_linear`: by the transposed second matrix, with a bias that may be None; `is_batched`: as many of each."""

    is_linear: bool = False
    is_batched: bool = False
    kinds: tuple[str, ...] = FLOATS

    @property
    def written(self) -> int | None:
        return None

    def text(self, at: Layout, name: str, library: Library) -> Iterator[str]:
        yield from shape_functions(at)
        yield plain_tensor(at)
        yield plain_tensor(at, "aligned", abi.PLAIN & ~_IN_ORDER)
        yield product_text.MATRIX
        for kind in self.kinds:
            yield product_text.PRODUCT.format(
                k=kind, T=LLVM_TYPES[kind], gemm=pointer(at.products[f"gemm.{kind}"]),
                syrk=pointer(at.products[f"syrk.{kind}"]),
            )  # fmt: skip
        if self.is_batched:
            yield _try_batches(at, name, self)
            return
        yield (product_text.LINEAR if self.is_linear else product_text.MM).format(name=name, none=pointer(at.none))
        yield _try(at, name, self)

    def samples(self, kind: str) -> Iterator[tuple[Any, ...]]:
        for m, k, n in ((2, 3, 4), (4, 4, 4), (5, 17, 3), (16, 16, 9), (2, 40, 40), (33, 5, 31)):
            shapes = (m, k), (k, n), (n,)
            first, second, bias = (samples.rows(kind, 3, shape, False)[i] for i, shape in enumerate(shapes))
            turned = second.T.copy()
            if self.is_batched:
                yield (
                    Tensor(np.stack([first, first + 1, first * 2])),
                    Tensor(np.stack([second, second - 1, second * 3])),
                )
                continue
            if not self.is_linear:
                for a in (first, first.T.copy().T):
                    yield from ((Tensor(a), Tensor(b)) for b in (second, turned.T, a.T))
                continue
            for b in (turned, second.copy().T):
                yield Tensor(first), Tensor(b), None
                yield Tensor(first), Tensor(b), Tensor(bias)
            yield Tensor(first), Tensor(first), Tensor(bias[:1].repeat(m))
            yield Tensor(np.stack([first, first + 1])), Tensor(turned), Tensor(bias)

    def takes(self, args: Sequence[Any]) -> str | None:
        arrays = [a.array for a in args if isinstance(a, Tensor)]
        first, second = arrays[0], arrays[1]
        if self.is_batched:
            return self._takes_batches(first, second)
        alike = all(a.dtype is first.dtype and a.flags.aligned for a in arrays)
        rows = first.size // max(first.shape[-1], 1) if first.ndim else 0
        is_small = second.ndim == 2 and min(rows, *second.shape) > 1 and rows * second.size <= MOST
        in_order = first.flags.c_contiguous or (not self.is_linear and first.flags.f_contiguous)
        in_order = in_order and (second.flags.c_contiguous or second.flags.f_contiguous)
        kind = samples.kind_of(first)
        return kind if alike and is_small and in_order and first.ndim >= 2 and kind in FLOATS else None

    def _takes_batches(self, first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> str | None:
        alike = first.dtype is second.dtype and first.ndim == 3 == second.ndim and len(first) == len(second) > 0
        in_order = all(a.flags.c_contiguous and a.flags.aligned for a in (first, second))
        is_small = alike and min(first.shape[1:] + second.shape[1:]) > 1 and first.size * second.shape[2] <= MOST
        kind = samples.kind_of(first)
        return kind if in_order and is_small and kind in FLOATS else None


PRODUCTS: Final = {
    "aten::mm": Product(),
    "aten::matmul": Product(),
    "aten::linear": Product(is_linear=True),
    "aten::bmm": Product(is_batched=True),
}
"""The operators that multiply matrices."""


def _try(at: Layout, name: str, work: Product) -> str:
    cases = "\n".join(
        f"is.{kind}:\n  call void @product.{kind}(ptr %a.data, i1 %ta, ptr %b.data, i1 %tb, ptr %out, i64 %m, i64 %n, "
        f"i64 %k)\n  call void @add_bias.{kind}(ptr %out, ptr %bias.data, i64 %m, i64 %n)\n  br label %done"
        for kind in work.kinds
    )
    first, second = work.kinds[0], work.kinds[-1]
    given = ", ".join(f"ptr %a{i}" for i in range(3 if work.is_linear else 2))
    return product_text.TRY.format(
        name=name, given=given, first=first, second=second,
        first_dtype=pointer(at.dtypes[first]), second_dtype=pointer(at.dtypes[second]), cases=cases, most=MOST,
        linear=int(work.is_linear),
    )  # fmt: skip


def _try_batches(at: Layout, name: str, work: Product) -> str:
    cases = "\n".join(
        f"is.{kind}:\n  call void @product.{kind}(ptr %a.i, i1 0, ptr %b.i, i1 0, ptr %out.i, i64 %m, i64 %n, i64 %k)\n"
        f"  br label %next"
        for kind in work.kinds
    )
    first, second = work.kinds[0], work.kinds[-1]
    return product_text.BATCHES.format(
        name=name, first=first, second=second, first_dtype=pointer(at.dtypes[first]), sizes=SIZES[first],
        second_sizes=SIZES[second], second_dtype=pointer(at.dtypes[second]), cases=cases, most=MOST,
    )  # fmt: skip
