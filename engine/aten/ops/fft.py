"""Fourier transforms, and the short-time ones of signals.

In: arrays; whole numbers become the default float, halves are transformed in float32.  Out: arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import op
from engine.aten.kernels.rules import existing_dim
from engine.aten.values import xp
from engine.aten.values.promotion import default_dtype, to_float, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function out"
_NORMS: Final = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}

# ------------------------------------------------------------------ kernels


def _prepared(x: Array, name: str, real: bool = False) -> Array:
    if real and x.dtype in xp.COMPLEX:
        raise OperatorError(f"{name} expects a real input tensor, but got {xp.ir_name(x.dtype)}")
    d = to_float(x.dtype)
    if wide(d) is not d:
        raise OperatorError(f"Unsupported dtype {xp.ir_name(d)}", hints=("convert to float32 first",))
    return x.astype(d, copy=False)


def _answer(result: Array, like: Array) -> Array:
    """The result in the precision of the input."""
    single = like.dtype in (xp.FLOAT32, xp.COMPLEX64)
    if result.dtype in xp.COMPLEX:
        return result.astype(xp.COMPLEX64 if single else xp.COMPLEX128, copy=False)
    return result.astype(xp.FLOAT32 if single else xp.FLOAT64, copy=False)


def _norm(norm: str | None) -> Any:
    if norm not in _NORMS:
        raise OperatorError(f'Invalid normalization mode: "{norm}"')
    return _NORMS[norm]


def one_dimension(name: str) -> Callable[..., Array]:
    transform = getattr(np.fft, name)

    def kernel(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
        x = _prepared(self, name, real=name in ("rfft", "ihfft"))
        axis = existing_dim(dim, x.ndim)
        size = n if n is not None else 2 * (x.shape[axis] - 1) if name in ("irfft", "hfft") else x.shape[axis]
        if size < 1:
            raise OperatorError(f"Invalid number of data points ({size}) specified")
        return _answer(np.asarray(transform(x, n, axis, _norm(norm))), x)

    return kernel


def many_dimensions(name: str) -> Callable[..., Array]:
    transform = getattr(np.fft, name)

    def kernel(self: Array, s: Sequence[int] | None, dim: Sequence[int] | None, norm: str | None) -> Array:
        x = _prepared(self, name, real=name.startswith("r"))
        sizes, axes = _geometry(x, s, dim)
        if any(size is not None and size < 1 and size != -1 for size in sizes):
            raise OperatorError(f"Invalid number of data points ({min(sizes)}) specified")
        if name == "irfftn" and s is None and axes:
            sizes[-1] = 2 * (x.shape[axes[-1]] - 1)
        lengths = [x.shape[a] if n == -1 else n for n, a in zip(sizes, axes, strict=True)]
        if axes:
            return _answer(np.asarray(transform(x, lengths, axes, _norm(norm))), x)
        if "r" in name:
            raise OperatorError(f"{name} must transform at least one axis")
        return _answer(x.astype(np.complex128), x)

    return kernel


def _geometry(x: Array, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int], tuple[int, ...]]:
    """Transform lengths (-1: unchanged) and the dimensions that they belong to."""
    if dim is not None:
        axes = tuple(existing_dim(d, x.ndim) for d in dim)
        if len(set(axes)) < len(axes):
            raise OperatorError("FFT dims must be unique")
    else:
        if s is not None and len(s) > x.ndim:
            raise OperatorError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        axes = tuple(range(x.ndim - (len(s) if s is not None else x.ndim), x.ndim))
    if s is not None and len(s) != len(axes):
        raise OperatorError("When given, dim and shape arguments must have the same length")
    return (list(s) if s is not None else [-1] * len(axes)), axes


def shift(backwards: bool) -> Callable[..., Tensor]:
    """Roll so that the frequency zero comes to the middle, or back from there."""

    def kernel(self: Tensor, dim: Sequence[int] | None) -> Tensor:
        axes = list(range(self.ndim)) if dim is None else [existing_dim(d, self.ndim) for d in dim]
        halves = [(self.shape[a] + backwards) // 2 for a in axes]
        rolled: Tensor = run("roll", self, halves, axes)
        return rolled

    return kernel


def frequencies(real: bool) -> Callable[..., Array]:
    def kernel(
        n: int, d: float, dtype: int | None = None, layout: Any = None, device: Any = None, pin_memory: Any = None
    ) -> Array:
        if n == 0:
            values = np.full(1, np.nan) if real else np.empty(0)
        else:
            values = np.fft.rfftfreq(n, d) if real else np.fft.fftfreq(n, d)
        return values.astype(default_dtype() if dtype is None else xp.numpy_dtype(dtype))

    return kernel


# ------------------------------------------------------------------ gradients

_ADJOINT: Final = {"fft": "ifft", "ifft": "fft", "rfft": "ifft", "irfft": "rfft"}
_OPPOSITE: Final = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def transform_backward(
    grad: Tensor, self: Tensor, kind: str, s: Sequence[int] | None, dim: Sequence[int] | None, norm: str | None
) -> Tensor:
    """The inverse transform, its result cut or padded to the size of the input."""
    x = self.array
    sizes, axes = _geometry(x, s, dim)
    lengths = [x.shape[a] if n == -1 else n for n, a in zip(sizes, axes, strict=True)]
    if kind == "irfft" and sizes[-1] == -1:
        lengths[-1] = 2 * (x.shape[axes[-1]] - 1)
    if kind == "rfft":
        grad = _fitted(grad, axes[-1], lengths[-1])
    back = run(f"fft_{_ADJOINT[kind]}n", grad, None, list(axes), _OPPOSITE[norm])
    if kind == "irfft":
        # Every frequency but the first and the middle one stands for itself and its mirror image.
        weight = np.full(back.shape[axes[-1]], 2.0)
        weight[[0, -1] if lengths[-1] % 2 == 0 else [0]] = 1.0
        shape = [-1] + [1] * (x.ndim - 1 - axes[-1])
        back = back * Tensor(weight.astype(grad.array.dtype).reshape(shape))
    for axis in axes:
        back = _fitted(back, axis, x.shape[axis])
    result: Tensor = back if x.dtype in xp.COMPLEX else run("real", back)
    return result


def _fitted(x: Tensor, axis: int, size: int) -> Tensor:
    """The dimension cut or filled up with zeros to that size."""
    missing = size - x.shape[axis]
    padded: Tensor = run("constant_pad_nd", x, [0, 0] * (x.ndim - 1 - axis) + [0, missing], 0) if missing else x
    return padded


def one_backward(grad: Tensor, self: Tensor, kind: str, n: int | None, dim: int, norm: str | None) -> Tensor:
    s = None if n is None else [n]
    if kind == "hfft":
        back: Tensor = transform_backward(grad, self, "irfft", s, [dim], _OPPOSITE[norm]).conj()
        return back
    if kind == "ihfft":
        return transform_backward(grad.conj(), self, "rfft", s, [dim], _OPPOSITE[norm])
    return transform_backward(grad, self, kind, s, [dim], norm)


op("aten::_fft_backward(Tensor grad, Tensor self, str kind, int? n, int dim, str? norm) -> Tensor", python=one_backward)
op("aten::_fft_backward.many(Tensor grad, Tensor self, str kind, int[]? s, int[]? dim, str? norm) -> Tensor",
   python=transform_backward)  # fmt: skip

# ------------------------------------------------------------------ entries

for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    op(f"aten::fft_{_name}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
       kernel=one_dimension(_name), variants=OUT,
       gradient={"self": f"_fft_backward(grad, self, '{_name}', n, dim, norm)"}, autocast="full")  # fmt: skip
for _name in ("fft", "ifft", "rfft", "irfft"):
    op(f"aten::fft_{_name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       kernel=many_dimensions(f"{_name}n"), variants=OUT,
       gradient={"self": f"_fft_backward(grad, self, '{_name}', s, dim, norm)"}, autocast="full")  # fmt: skip
    op(f"aten::fft_{_name}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       kernel=many_dimensions(f"{_name}n"), variants=OUT,
       gradient={"self": f"_fft_backward(grad, self, '{_name}', s, dim, norm)"}, autocast="full")  # fmt: skip
op("aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", python=shift(False))
op("aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", python=shift(True))
for _name, _real in (("fft_fftfreq", False), ("fft_rfftfreq", True)):
    op(f"aten::{_name}(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor", kernel=frequencies(_real))  # fmt: skip
    op(f"aten::{_name}.out(int n, float d=1., *, Tensor(a!) out) -> Tensor(a!)", kernel=frequencies(_real))

# ------------------------------------------------------------------ short-time transforms


def _window(given: Tensor | None, length: int, n_fft: int, like: Tensor, name: str) -> Tensor:
    """A window of `n_fft` numbers, the given one in its middle."""
    if given is not None and (given.ndim != 1 or given.shape[0] != length):
        raise OperatorError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, "
            f"but got window with size {list(given.shape)}"
        )
    d = xp.PART_OF.get(like.array.dtype, like.array.dtype)
    window = Tensor(np.ones(length, d)) if given is None else given
    left = (n_fft - length) // 2
    padded: Tensor = run("constant_pad_nd", window, [left, n_fft - length - left], 0) if length < n_fft else window
    return padded


def stft(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, normalized: bool,
    onesided: bool | None, return_complex: bool | None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Transforms of stretches of the last dimension: (batch, frequencies, stretches)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    is_complex = self.array.dtype in xp.COMPLEX or (window is not None and window.array.dtype in xp.COMPLEX)
    _check_stft(self, n_fft, hop, length, return_complex, is_complex)
    half = not is_complex if onesided is None else onesided
    batch = self.unsqueeze(0) if self.ndim == 1 else self
    frames = batch.unfold(-1, n_fft, hop) * _window(window, length, n_fft, self, "stft")
    norm = "ortho" if normalized else None
    spectrum = run("fft_rfft" if half else "fft_fft", frames, None, -1, norm).transpose(1, 2)
    spectrum = spectrum.squeeze(0) if self.ndim == 1 else spectrum
    result: Tensor = (
        spectrum if (is_complex if return_complex is None else return_complex) else run("view_as_real", spectrum)
    )
    return result


def _check_stft(self: Tensor, n_fft: int, hop: int, length: int, return_complex: bool | None, is_complex: bool) -> None:
    if return_complex is None and not is_complex:
        raise OperatorError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if self.ndim not in (1, 2):
        raise OperatorError(f"stft: expected a 1D or 2D tensor, but got {self.ndim}D")
    size = self.shape[-1]
    if not 0 < n_fft <= size:
        raise OperatorError(f"stft: expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise OperatorError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise OperatorError(f"stft: expected 0 < win_length <= n_fft, but got win_length={length}")


def stft_centered(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool,
    pad_mode: str, normalized: bool, onesided: bool | None, return_complex: bool | None,
    align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    if center:
        lead = self.reshape([1] * (3 - self.ndim) + list(self.shape))
        padded = run("pad", lead, [n_fft // 2, n_fft // 2], pad_mode, None)
        self = padded.reshape([*self.shape[:-1], -1])
    return stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)


def istft(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> Tensor:  # fmt: skip
    """The signal that a short-time transform came from: stretches overlapped, divided by their windows' squares."""
    if self.array.dtype not in xp.COMPLEX:
        raise OperatorError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    spectrum = self.unsqueeze(0) if self.ndim == 2 else self
    half = onesided if onesided is not None else spectrum.shape[1] != n_fft
    if not half and not return_complex:
        spectrum, half = spectrum.narrow(1, 0, n_fft // 2 + 1), True
    weights = _window(window, size, n_fft, self, "istft")
    norm = "ortho" if normalized else None
    frames = run("fft_irfft" if half else "fft_ifft", spectrum.transpose(1, 2), n_fft if half else None, -1, norm)
    signal = _overlapped(frames * weights, hop)
    weight = _overlapped((weights * weights).expand([1, frames.shape[1], n_fft]), hop)
    start = n_fft // 2 if center else 0
    total = n_fft + hop * (frames.shape[1] - 1)
    end = start + length if length is not None else total - (n_fft // 2 if center else 0)
    shown = min(end, total) - start
    divisor = weight.narrow(-1, start, shown)
    if np.min(np.abs(divisor.array)) < 1e-11:
        raise OperatorError("window overlap add min: 1")
    result: Tensor = signal.narrow(-1, start, shown) / divisor
    if end > total:
        result = run("constant_pad_nd", result, [0, end - total], 0)
    return result.squeeze(0) if self.ndim == 2 else result


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """(batch, stretches, size) added up where they overlap."""
    batch, count, size = frames.shape
    total = size + hop * (count - 1)
    places = Tensor((np.arange(count)[:, None] * hop + np.arange(size)).reshape(-1))
    zeros = Tensor(np.zeros((batch, total), frames.array.dtype))
    result: Tensor = run("index_add", zeros, 1, places, frames.reshape([batch, -1]), 1)
    return result


_STFT: Final = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None"
_SIDES: Final = "bool normalized=False, bool? onesided=None"
op(f"aten::stft({_STFT}, {_SIDES}, bool? return_complex=None, bool? align_to_window=None) -> Tensor", python=stft,
   variants="function method", autocast="full")  # fmt: skip
op(f'aten::stft.center({_STFT}, bool center=True, str pad_mode="reflect", {_SIDES}, bool? return_complex=None, '
   "bool? align_to_window=None) -> Tensor", python=stft_centered, variants="function method",
   autocast="full")  # fmt: skip
op(f"aten::istft({_STFT}, bool center=True, {_SIDES}, int? length=None, bool return_complex=False) -> Tensor",
   python=istft, variants="function method")  # fmt: skip

# ------------------------------------------------------------------ windows


def _cosines(length: int, periodic: bool, coefficients: Sequence[float]) -> Array:
    """A sum of cosines over one period."""
    turn = 2 * np.pi * np.arange(length) / (length if periodic else max(length - 1, 1))
    return np.asarray(np.sum([c * np.cos(k * turn) for k, c in enumerate(coefficients)], axis=0))


def hann(length: int, periodic: bool = True) -> Array:
    return _cosines(length, periodic, (0.5, -0.5))


def hamming(length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46) -> Array:
    return _cosines(length, periodic, (alpha, -beta))


def blackman(length: int, periodic: bool = True) -> Array:
    return _cosines(length, periodic, (0.42, -0.5, 0.08))


def bartlett(length: int, periodic: bool = True) -> Array:
    span = length if periodic else max(length - 1, 1)
    return np.asarray(1 - np.abs(2 * np.arange(length) / span - 1))


def kaiser(length: int, periodic: bool = True, beta: float = 12.0) -> Array:
    span = length if periodic else max(length - 1, 1)
    ratio = 2 * np.arange(length) / span - 1
    return np.asarray(np.i0(beta * np.sqrt(np.maximum(1 - ratio * ratio, 0))) / np.i0(beta))


def window(shape: Callable[..., Array], given: int) -> Callable[..., Array]:
    """The kernel of a window's overload that takes `given` arguments before dtype."""

    def kernel(*args: Any) -> Array:
        length, dtype = args[0], args[given] if len(args) > given else None
        d = default_dtype() if dtype is None else xp.numpy_dtype(dtype)
        if length < 0:
            raise OperatorError("window length must be non-negative")
        if d not in xp.FLOATING:
            raise OperatorError(f"windows are of floating point dtypes, not {xp.ir_name(d)}")
        return np.ones(length, d) if length <= 1 else np.asarray(shape(*args[:given])).astype(d)

    return kernel


_LENGTH, _PERIODIC = "int window_length", "int window_length, bool periodic"
_WINDOWS: Final = {
    "hann": (hann, {"": _LENGTH, "periodic": _PERIODIC}),
    "hamming": (hamming, {"": _LENGTH, "periodic": _PERIODIC, "periodic_alpha": f"{_PERIODIC}, float alpha",
                          "periodic_alpha_beta": f"{_PERIODIC}, float alpha, float beta"}),
    "blackman": (blackman, {"": _LENGTH, "periodic": _PERIODIC}),
    "bartlett": (bartlett, {"": _LENGTH, "periodic": _PERIODIC}),
    "kaiser": (kaiser, {"": _LENGTH, "periodic": _PERIODIC, "beta": f"{_PERIODIC}, float beta"}),
}  # fmt: skip
for _name, (_shape, _overloads) in _WINDOWS.items():
    for _overload, _arguments in _overloads.items():
        _kernel = window(_shape, _arguments.count(",") + 1)
        op(f"aten::{_name}_window{'.' if _overload else ''}{_overload}({_arguments}, *, ScalarType? dtype=None, "
           "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", kernel=_kernel)  # fmt: skip
        op(f"aten::{_name}_window.{_overload + '_' if _overload else ''}out({_arguments}, *, Tensor(a!) out) -> "
           "Tensor(a!)", kernel=_kernel)  # fmt: skip
