"""Recurrent layers and their cells.

In: sequences `(L, N, input_size)`, `(N, L, input_size)` with `batch_first`, `(L, input_size)`, a `PackedSequence`; and
the state to begin with.  Out: what each step gave, `(L, N, directions * hidden_size)` or likewise, and the last state.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import engine.torch as torch
from engine.aten.tensor import Tensor
from engine.torch.nn import init
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter
from engine.torch.nn.utils.rnn import PackedSequence


class RNNBase(Module):
    """What recurrent layers share: one set of weights for each layer and direction."""

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
    )  # fmt: skip
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    _flat_weights: list[Tensor]
    _gates: ClassVar[int]
    _operator: ClassVar[str]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1]")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError("hidden_size and num_layers must be greater than zero")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        object.__setattr__(self, "_flat_weights_names", [])
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                self._add_weights(layer, suffix, dtype)
        self.reset_parameters()
        self.flatten_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _add_weights(self, layer: int, suffix: str, dtype: Any) -> None:
        rows = self._gates * self.hidden_size
        width = self.input_size if layer == 0 else self.hidden_size * self._directions
        shapes = {"weight_ih": [rows, width], "weight_hh": [rows, self.hidden_size]}
        if self.bias:
            shapes.update(bias_ih=[rows], bias_hh=[rows])
        for name, shape in shapes.items():
            full_name = f"{name}_l{layer}{suffix}"
            self.register_parameter(full_name, Parameter(init.empty(shape, dtype)))
            self._flat_weights_names.append(full_name)

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Let the operator's list of weights hold what the parameters are now."""
        self.__dict__["_flat_weights"] = [getattr(self, name) for name in self._flat_weights_names]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.__dict__.get("_flat_weights_names", ()):
            self.flatten_parameters()

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        size = 4 if self.bias else 2
        return [self._flat_weights[at : at + size] for at in range(0, len(self._flat_weights), size)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], PackedSequence):
            return self._packed(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _packed(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, Any]:
        """The same over sequences of many lengths."""
        states = _each(hx, lambda state: state if input.sorted_indices is None else state[:, input.sorted_indices])
        if states is None:
            states = self._zeros(input.data, int(input.batch_sizes[0]))
        output, *last = getattr(torch, self._operator)(
            input.data, input.batch_sizes, states, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional,
        )  # fmt: skip
        hidden = tuple(last) if len(last) > 1 else last[0]
        order = input.unsorted_indices
        hidden = _each(hidden, lambda state: state if order is None else state[:, order])
        return PackedSequence(output, input.batch_sizes, input.sorted_indices, order), hidden

    def _zeros(self, like: Tensor, batch: int) -> Any:
        shape = [self.num_layers * self._directions, batch, self.hidden_size]
        return like.new_zeros(shape)

    def extra_repr(self) -> str:
        options = (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False),
        )  # fmt: skip
        changed = [f"{name}={getattr(self, name)}" for name, usual in options if getattr(self, name) != usual]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


def _each(state: Any, change: Any) -> Any:
    if state is None:
        return None
    return tuple(map(change, state)) if isinstance(state, tuple) else change(state)


class RNN(RNNBase):
    """`h = tanh(W_ih x + b_ih + W_hh h + b_hh)` at each step; `nonlinearity="relu"` takes that instead of tanh."""

    _gates = 1
    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", **options: Any
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.nonlinearity = nonlinearity
        self.mode = "RNN_" + nonlinearity.upper()

    @property
    def _operator(self) -> str:  # type: ignore[override]
        return "rnn_" + self.nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            layers = self.num_layers * (2 if self.bidirectional else 1)
            hx = torch.zeros(
                layers, input.size(batch_dim), self.hidden_size, dtype=input.dtype, device=input.device
            )  # fmt: skip
        elif not batched:
            hx = hx.unsqueeze(1)
        if self.mode == "RNN_TANH":
            output, hidden = torch.rnn_tanh(
                input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional, self.batch_first,
            )  # fmt: skip
        else:
            output, hidden = torch.rnn_relu(
                input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional, self.batch_first,
            )  # fmt: skip
        if not batched:
            output = output.squeeze(batch_dim)
            hidden = hidden.squeeze(1)
        return output, hidden


class GRU(RNNBase):
    """A gate decides how much of the state is replaced, another how much of it is used for what replaces it."""

    _gates, _operator = 3, "gru"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"GRU: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            layers = self.num_layers * (2 if self.bidirectional else 1)
            hx = torch.zeros(
                layers, input.size(batch_dim), self.hidden_size, dtype=input.dtype, device=input.device
            )  # fmt: skip
        elif not batched:
            hx = hx.unsqueeze(1)
        output, hidden = torch.gru(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first,
        )  # fmt: skip
        if not batched:
            output = output.squeeze(batch_dim)
            hidden = hidden.squeeze(1)
        return output, hidden


class LSTM(RNNBase):
    """Gates decide what a cell forgets, takes in and gives out; the state is `(hidden, cell)`."""

    _gates, _operator = 4, "lstm"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mode = "LSTM"

    def _zeros(self, like: Tensor, batch: int) -> Any:
        zeros = super()._zeros(like, batch)
        return zeros, zeros

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            layers = self.num_layers * (2 if self.bidirectional else 1)
            zeros = torch.zeros(
                layers, input.size(batch_dim), self.hidden_size, dtype=input.dtype, device=input.device
            )  # fmt: skip
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        output, hidden, cell = torch.lstm(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first,
        )  # fmt: skip
        if not batched:
            output = output.squeeze(batch_dim)
            hidden = hidden.squeeze(1)
            cell = cell.squeeze(1)
        return output, (hidden, cell)


class RNNCellBase(Module):
    """What cells share: the weights of one step."""

    __constants__: tuple[str, ...] = ("input_size", "hidden_size", "bias")
    input_size: int
    hidden_size: int
    bias: bool
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    _gates: ClassVar[int]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self._gates * hidden_size
        self.weight_ih = Parameter(init.empty([rows, input_size], dtype))
        self.weight_hh = Parameter(init.empty([rows, hidden_size], dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(init.empty([rows], dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")
    _gates = 1
    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", **options: Any
    ) -> None:
        super().__init__(input_size, hidden_size, bias, **options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        if self.nonlinearity == "tanh":
            result = torch.rnn_tanh_cell(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            result = torch.rnn_relu_cell(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    _gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        result = torch.gru_cell(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state is `(hidden, cell)`."""

    _gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        hidden, cell = torch.lstm_cell(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            hidden = hidden.squeeze(0)
            cell = cell.squeeze(0)
        return hidden, cell
