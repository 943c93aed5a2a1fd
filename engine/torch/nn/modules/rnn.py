"""Recurrent layers and their cells.

In: sequences `(L, N, input_size)`, `(N, L, input_size)` with `batch_first`, `(L, input_size)`, a `PackedSequence`; and
the initial state.  Out: the output of each step, `(L, N, directions * hidden_size)` or likewise, and the last state.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.frontend.python.overloads import declare_overload
from engine.torch.nn import init
from engine.torch.nn.modules.module import Module
from engine.torch.nn.modules.packed_sequence import PackedSequence
from engine.torch.nn.parameter import Parameter


class _Recurrent(Module):
    """The base of layers and cells: the initialization of weights."""

    hidden_size: int

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)


class RNNBase(_Recurrent):
    """The base of recurrent layers, with a set of weights for each layer and direction."""

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    )  # fmt: skip
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    """The size of projected hidden states, of an LSTM; 0: they are not projected."""
    _flat_weights: list[Tensor]
    _gates: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout should be a number in range [0, 1], but is {dropout}")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError("hidden_size and num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size and self._mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        object.__setattr__(self, "_flat_weights_names", [])
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                self._add_weights(layer, suffix, dtype, device)
        self.reset_parameters()
        self.flatten_parameters()
        self.mode = self._mode

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _add_weights(self, layer: int, suffix: str, dtype: Any, device: Any) -> None:
        rows = self._gates * self.hidden_size
        outputs = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else outputs * self._directions
        shapes = {"weight_ih": [rows, width], "weight_hh": [rows, outputs]}
        if self.bias:
            shapes.update(bias_ih=[rows], bias_hh=[rows])
        if self.proj_size:
            shapes.update(weight_hr=[self.proj_size, self.hidden_size])
        for name, shape in shapes.items():
            full_name = f"{name}_l{layer}{suffix}"
            self.register_parameter(full_name, Parameter(init.empty(shape, dtype, device)))
            self._flat_weights_names.append(full_name)

    def flatten_parameters(self) -> None:
        """Rebuild the list of weights for the operator from the parameters."""
        self.__dict__["_flat_weights"] = [getattr(self, name) for name in self._flat_weights_names]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.__dict__.get("_flat_weights_names", ()):
            self.flatten_parameters()

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        size = (4 if self.bias else 2) + (self.proj_size > 0)
        return [self._flat_weights[at : at + size] for at in range(0, len(self._flat_weights), size)]

    # -- what programs compile

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Check the input's shape.  Raises RuntimeError."""
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError("input must have {} dimensions, got {}".format(dims, input.dim()))  # noqa: UP032
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected {}, got {}".format(  # noqa: UP032
                    self.input_size, input.size(-1)
                )
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that a state must have."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Check the state's shape.  Raises RuntimeError."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def _zeros(self, input: Tensor, max_batch_size: int, size: int) -> Tensor:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        return torch.zeros(layers, max_batch_size, size, dtype=input.dtype, device=input.device)

    def _check_dims(self, hx: Tensor, batched: bool) -> None:
        if batched and hx.dim() != 3:
            raise RuntimeError(
                "For batched 3-D input, hx should also be 3-D but got {}-D tensor".format(hx.dim())  # noqa: UP032
            )
        if not batched and hx.dim() != 2:
            raise RuntimeError(
                "For unbatched 2-D input, hx should also be 2-D but got {}-D tensor".format(hx.dim())  # noqa: UP032
            )

    def _state(self, input: Tensor, hx: Tensor | None, max_batch_size: int, batched: bool) -> Tensor:
        """The initial state for a padded batch."""
        if hx is None:
            return self._zeros(input, max_batch_size, self.hidden_size)
        self._check_dims(hx, batched)
        return hx if batched else hx.unsqueeze(1)

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises RuntimeError."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
        """The state with its sequences reordered."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def extra_repr(self) -> str:
        options = (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
            ("bidirectional", False),
        )  # fmt: skip
        changed = [f"{name}={getattr(self, name)}" for name, usual in options if getattr(self, name) != usual]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


class RNN(RNNBase):
    """`h = tanh(W_ih x + b_ih + W_hh h + b_hh)` at each step; `nonlinearity="relu"` replaces tanh."""

    _gates = 1
    _mode = "RNN"
    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", **options: Any
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.nonlinearity = nonlinearity
        self.mode = f"{self._mode}_{nonlinearity.upper()}"

    @declare_overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @declare_overload  # type: ignore[no-redef]
    def forward(  # noqa: F811
        self, input: PackedSequence, hx: Tensor | None = None
    ) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, input, hx=None):  # type: ignore[no-redef, no-untyped-def]  # noqa: F811
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is None:
                state = self._zeros(data, batch_sizes[0], self.hidden_size)  # type: ignore[arg-type]
            else:
                state = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, state, batch_sizes)
            if self.mode == "RNN_TANH":
                output, hidden = torch.rnn_tanh(
                    data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                    self.training, self.bidirectional,
                )  # fmt: skip
            else:
                output, hidden = torch.rnn_relu(
                    data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                    self.training, self.bidirectional,
                )  # fmt: skip
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(hidden, unsorted_indices)
        else:  # noqa: RET505  (either branch is compiled alone)
            if input.dim() != 2 and input.dim() != 3:
                raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if not batched:
                input = input.unsqueeze(batch_dim)
            state = self._state(input, hx, input.size(batch_dim), batched)
            self.check_forward_args(input, state, None)
            if self.mode == "RNN_TANH":
                output, hidden = torch.rnn_tanh(
                    input, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                    self.training, self.bidirectional, self.batch_first,
                )  # fmt: skip
            else:
                output, hidden = torch.rnn_relu(
                    input, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                    self.training, self.bidirectional, self.batch_first,
                )  # fmt: skip
            if not batched:
                output = output.squeeze(batch_dim)
                hidden = hidden.squeeze(1)
            return output, hidden


class GRU(RNNBase):
    """Gated recurrent units: gates control how much of the state is replaced, and its part in the replacement."""

    _gates = 3
    _mode = "GRU"

    @declare_overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @declare_overload  # type: ignore[no-redef]
    def forward(  # noqa: F811
        self, input: PackedSequence, hx: Tensor | None = None
    ) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, input, hx=None):  # type: ignore[no-redef, no-untyped-def]  # noqa: F811
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is None:
                state = self._zeros(data, batch_sizes[0], self.hidden_size)  # type: ignore[arg-type]
            else:
                state = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, state, batch_sizes)
            output, hidden = torch.gru(
                data, batch_sizes, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                self.training, self.bidirectional,
            )  # fmt: skip
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(hidden, unsorted_indices)
        else:  # noqa: RET505  (either branch is compiled alone)
            if input.dim() != 2 and input.dim() != 3:
                raise ValueError(f"GRU: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if not batched:
                input = input.unsqueeze(batch_dim)
            state = self._state(input, hx, input.size(batch_dim), batched)
            self.check_forward_args(input, state, None)
            output, hidden = torch.gru(
                input, state, self._flat_weights, self.bias, self.num_layers, self.dropout,
                self.training, self.bidirectional, self.batch_first,
            )  # fmt: skip
            if not batched:
                output = output.squeeze(batch_dim)
                hidden = hidden.squeeze(1)
            return output, hidden


class LSTM(RNNBase):
    """Long short-term memory: gates control the changes and the output of a cell; the state is `(hidden, cell)`.

    With a `proj_size`, hidden states are multiplied with `weight_hr`, `(proj_size, hidden_size)`, and have that size.
    """

    _gates = 4
    _mode = "LSTM"

    def check_forward_args(  # type: ignore[override]
        self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        of_cell = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], of_cell, "Expected hidden[1] size {}, got {}")

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that the state of the cells must have."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def permute_hidden(  # type: ignore[override]
        self, hx: tuple[Tensor, Tensor], permutation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _zero_states(self, input: Tensor, max_batch_size: int) -> tuple[Tensor, Tensor]:
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self._zeros(input, max_batch_size, size), self._zeros(input, max_batch_size, self.hidden_size)

    def _state(  # type: ignore[override]
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None, max_batch_size: int, batched: bool
    ) -> tuple[Tensor, Tensor]:
        if hx is None:
            return self._zero_states(input, max_batch_size)
        self._check_dims(hx[0], batched)
        self._check_dims(hx[1], batched)
        return hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    @declare_overload
    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...

    @declare_overload  # type: ignore[no-redef]
    def forward(  # noqa: F811
        self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

    def forward(self, input, hx=None):  # type: ignore[no-redef, no-untyped-def]  # noqa: F811
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is None:
                states = self._zero_states(data, batch_sizes[0])  # type: ignore[arg-type]
            else:
                states = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, states, batch_sizes)
            output, hidden, cell = torch.lstm(
                data, batch_sizes, states, self._flat_weights, self.bias, self.num_layers, self.dropout,
                self.training, self.bidirectional,
            )  # fmt: skip
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden((hidden, cell), unsorted_indices)
        else:  # noqa: RET505  (either branch is compiled alone)
            if input.dim() != 2 and input.dim() != 3:
                raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if not batched:
                input = input.unsqueeze(batch_dim)
            states = self._state(input, hx, input.size(batch_dim), batched)
            self.check_forward_args(input, states, None)
            output, hidden, cell = torch.lstm(
                input, states, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional, self.batch_first,
            )  # fmt: skip
            if not batched:
                output = output.squeeze(batch_dim)
                hidden = hidden.squeeze(1)
                cell = cell.squeeze(1)
            return output, (hidden, cell)


class RNNCellBase(_Recurrent):
    """The base of cells, with the weights of one step."""

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
        self.weight_ih = Parameter(init.empty([rows, input_size], dtype, device))
        self.weight_hh = Parameter(init.empty([rows, hidden_size], dtype, device))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(init.empty([rows], dtype, device)) if bias else None)
        self.reset_parameters()

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
