"""Recurrent layers and cells whose weights are packed, and embeddings.

In: tensors of numbers, objects that hold weights.  Out: tensors of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import op
from engine.aten.kernels import rowwise
from engine.aten.ops.quantized_layers import content_of, shown
from engine.aten.ops.recurrent import CELLS, Layer, State, in_layers, one_direction
from engine.aten.quantized import layers
from engine.aten.quantized.packed import (
    CELL,
    DYNAMIC,
    EMBEDDING,
    HALVES,
    LINEAR,
    Cell,
    Embedding,
    cell_state,
    embedding,
    of_state,
    packed,
)  # fmt: skip
from engine.aten.values.ivalue import CustomObject
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ layers


def make_dynamic(
    w_ih: CustomObject, w_hh: CustomObject, bias_ih: Tensor, bias_hh: Tensor, reduce_range: bool
) -> CustomObject:
    return of_state(CELL, cell_state(DYNAMIC, w_ih, w_hh, (bias_ih, bias_hh), reduce_range))


def make_halves(w_ih: CustomObject, w_hh: CustomObject) -> CustomObject:
    return of_state(CELL, cell_state(HALVES, w_ih, w_hh))


def layer_of(cell: Cell) -> Layer:
    """The layer for `one_direction`: functions in the place of weights, which know their biases."""
    if cell.kind == HALVES:
        return Layer(_halves(cell.w_ih), _halves(cell.w_hh), None, None, None)
    return Layer(_dynamic(cell.w_ih, cell.reduce_range), _dynamic(cell.w_hh, cell.reduce_range), None, None, None)


def _halves(weight: Any) -> Any:
    return lambda x: Tensor(layers.linear_halves(x.array, weight))


def _dynamic(weight: Any, reduce_range: bool) -> Any:
    return lambda x: Tensor(layers.linear_dynamic(x.array, weight, reduce_range))


def _stack(
    kind: str, x: Tensor, hx: list[Tensor], params: Sequence[CustomObject], num_layers: int, dropout: float,
    train: bool, bidirectional: bool, sizes: Sequence[int] | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Layers upon layers.  `hx` holds each state as (layers * directions, batch, features)."""
    directions = 2 if bidirectional else 1
    if len(params) != num_layers * directions or not all(map(_is_cell, params)):
        raise OperatorError(f"got {len(params)} objects with weights for {num_layers * directions} layers")

    def direction(x: Tensor, state: State, at: int, backwards: bool) -> tuple[Tensor, State]:
        return one_direction(CELLS[kind], x, state, layer_of(content_of(params[at])), sizes, backwards=backwards)

    return in_layers(direction, x, hx, num_layers, directions, dropout if train else 0.0)


def _is_cell(value: Any) -> bool:
    return isinstance(value, CustomObject) and value.type is CELL


def _states(kind: str, hx: Any) -> list[Tensor]:
    states = list(hx) if kind == "lstm" else [hx]
    if kind == "lstm" and len(states) != 2:
        raise OperatorError("lstm expects two hidden states")
    return states


def _input_form(kind: str) -> Callable[..., Any]:
    def layer(
        input: Tensor, hx: Any, params: list[CustomObject], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool, *_: Any,
    ) -> Any:  # fmt: skip
        x = input.transpose(0, 1) if batch_first else input
        output, *ends = _stack(kind, x, _states(kind, hx), params, num_layers, dropout, train, bidirectional, None)
        return (output.transpose(0, 1) if batch_first else output, *ends)

    return layer


def _data_form(kind: str) -> Callable[..., Any]:
    def layer(
        data: Tensor, batch_sizes: Tensor, hx: Any, params: list[CustomObject], has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool, *_: Any,
    ) -> Any:  # fmt: skip
        sizes = batch_sizes.tolist()
        return _stack(kind, data, _states(kind, hx), params, num_layers, dropout, train, bidirectional, sizes)

    return layer


def _cell(kind: str) -> Callable[..., Any]:
    """One step; the range of inputs is reduced, as in all these cells."""

    def step(input: Tensor, hx: Any, w_ih: CustomObject, w_hh: CustomObject, *_: Any) -> Any:
        gates = _dynamic(content_of(w_ih), True)(input)
        after = CELLS[kind](gates, tuple(_states(kind, hx)), _dynamic(content_of(w_hh), True), None)
        return after if kind == "lstm" else after[0]

    return step


op(f"quantized::make_quantized_cell_params_dynamic({LINEAR} w_ih, {LINEAR} w_hh, Tensor bias_ih, Tensor bias_hh, "
   f"bool reduce_range=False) -> {CELL}", python=make_dynamic)  # fmt: skip
op(f"quantized::make_quantized_cell_params_fp16({LINEAR} w_ih, {LINEAR} w_hh) -> {CELL}", python=make_halves)
_LAYER: Final = f"{CELL}[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
for _kind, _more in (("lstm", ", *, ScalarType? dtype=None, bool use_dynamic=False"), ("gru", "")):
    _is_lstm = _kind == "lstm"
    _hx, _returns = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if _is_lstm else ("Tensor hx", "(Tensor, Tensor)")
    op(f"aten::quantized_{_kind}.input(Tensor input, {_hx}, {_LAYER}, bool batch_first{_more}) -> {_returns}",
       python=_input_form(_kind))  # fmt: skip
    op(f"aten::quantized_{_kind}.data(Tensor data, Tensor batch_sizes, {_hx}, {_LAYER}{_more}) -> {_returns}",
       python=_data_form(_kind))  # fmt: skip
for _kind in CELLS:
    _hx, _returns = ("Tensor[] hx", "(Tensor, Tensor)") if _kind == "lstm" else ("Tensor hx", "Tensor")
    _b = "bias_ih, Tensor bias_hh" if _kind == "lstm" else "b_ih, Tensor b_hh"
    op(f"quantized::quantized_{_kind}_cell_dynamic(Tensor input, {_hx}, {LINEAR} w_ih, {LINEAR} w_hh, Tensor {_b}) -> "
       f"{_returns}", python=_cell(_kind))  # fmt: skip

# ------------------------------------------------------------------ embeddings


def _rows_of(object_: CustomObject, bits: int) -> Tensor:
    found: Embedding = content_of(object_)
    if found.bits != bits:
        raise OperatorError(f"the embedding has {found.bits} bits, and the operator wants {bits}")
    return Tensor(found.rows)


def _lookup(bits: int) -> Callable[..., Tensor]:
    def look_up(weight: CustomObject, indices: Tensor, pruned_weights: bool) -> Tensor:
        result: Tensor = run("embedding", _rows_of(weight, bits), indices, -1, False, False)
        return result

    return look_up


def _bag(rows_of: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def sum_bags(
        weight: Any, indices: Tensor, offsets: Tensor | None, scale_grad_by_freq: bool, mode: int,
        pruned_weights: bool, per_sample_weights: Tensor | None, mapping: Tensor | None, include_last_offset: bool,
    ) -> Tensor:  # fmt: skip
        """Sums of rows, or weighted ones.  Rows of a matrix of indices are bags without offsets."""
        if mapping is not None and mapping.array.size > 1:
            raise OperatorError("embeddings with rows left out are not supported")
        if offsets is None:
            if indices.ndim != 2:
                raise OperatorError("embedding_bag operator expects offsets to be set for 1D indices.")
            count, size = indices.shape
            offsets = Tensor(np.arange(count, dtype=np.int64) * size)
            indices, include_last_offset = indices.reshape([-1]), False
        given = None if per_sample_weights is None else per_sample_weights.reshape([-1])
        result: Tensor = run("embedding_bag", rows_of(weight), indices, offsets, False, 0, False, given,
                             include_last_offset)[0]  # fmt: skip
        return result

    return sum_bags


def _packed_rows(bits: int) -> Callable[[CustomObject], Tensor]:
    return lambda weight: _rows_of(weight, bits)


def _plain_rows(bits: int) -> Callable[[Tensor], Tensor]:
    return lambda weight: Tensor(rowwise.unpacked(weight.array, bits))


def unpack(object_: CustomObject) -> Tensor:
    found: Embedding = content_of(object_)
    return shown(found.original)


op(f"quantized::embedding_bag_prepack(Tensor weight) -> {EMBEDDING} W_prepack",
   python=lambda weight: packed(EMBEDDING, embedding(weight)))  # fmt: skip
op(f"quantized::embedding_bag_unpack({EMBEDDING} W_prepack) -> Tensor W_origin", python=unpack)
_BAG: Final = ("Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool "
               "pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool "
               "include_last_offset=False")  # fmt: skip
for _word, _bits in (("byte", 8), ("4bit", 4)):
    op(f"quantized::embedding_{_word}({EMBEDDING} weight, Tensor indices, bool pruned_weights=False) -> Tensor",
       python=_lookup(_bits))  # fmt: skip
    op(f"quantized::embedding_bag_{_word}({EMBEDDING} weight, {_BAG}) -> Tensor",
       python=_bag(_packed_rows(_bits)))  # fmt: skip
    op(f"quantized::embedding_bag_{_word}_rowwise_offsets(Tensor weight, {_BAG}) -> Tensor",
       python=_bag(_plain_rows(_bits)))  # fmt: skip
    op(f"quantized::embedding_bag_{_word}_unpack(Tensor weight) -> Tensor", python=_plain_rows(_bits))
op("quantized::embedding_bag_byte_prepack(Tensor weight) -> Tensor",
   python=lambda weight: Tensor(rowwise.packed_bytes(weight.array)))  # fmt: skip
op("quantized::embedding_bag_4bit_prepack(Tensor weight, bool optimized_qparams=False, int nbins=200, float "
   "ratio=0.16) -> Tensor", python=lambda weight, *_: Tensor(rowwise.packed_halves(weight.array)))  # fmt: skip
