"""Operators of the `torchaudio` namespace: recursive filters, transducers' loss, texts laid along speech.

In: signals (batch, channels, time); scores (batch, time, targets + 1, symbols) or (batch, time, symbols).  Out:
signals; costs with their gradients; the best path of a text with the scores it goes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import op
from engine.aten.stepwise import filtering
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ filters


_STEP: Final = 1000
"""Number of loop steps that take about as long as one step over arrays."""


def _check_filter(signals: Array, factors: Array, padded: Array) -> None:
    if signals.ndim != 3 or factors.ndim != 2 or padded.ndim != 3:
        raise OperatorError("a recursive filter takes signals and results of 3 dimensions and factors of 2")
    if not signals.dtype is factors.dtype is padded.dtype or signals.dtype not in xp.FLOATS:
        raise OperatorError("a recursive filter takes float32 or float64, the same for all that it is given")
    batch, channels, length = signals.shape
    wanted = (batch, channels, length + factors.shape[1] - 1)
    if factors.shape[0] != channels or factors.shape[1] < 1 or padded.shape != wanted:
        raise OperatorError(
            f"a recursive filter of signals {list(signals.shape)} with factors {list(factors.shape)} gives "
            f"{list(wanted)}, not {list(padded.shape)}"
        )


def _filter(signals: Array, factors: Array, padded: Array) -> None:
    """Each output is its input minus the earlier outputs times their factors (recursive filter)."""
    batch, channels, length = signals.shape
    order = factors.shape[1]
    x, a = np.ascontiguousarray(signals), np.ascontiguousarray(factors)
    work = length * max(batch * channels * order, _STEP)
    if filtering.recursive.run(work, x, a, padded, batch * channels, channels, length, order) is not None:
        return
    for i in range(length):
        window = padded[:, :, i : i + order]
        padded[:, :, i + order - 1] = x[:, :, i] - (window * a).sum(-1)


def lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor) -> Tensor:
    """Writes the filtered signals into the last argument."""
    given, factors, result = (t.array for t in (input_signal_windows, a_coeff_flipped, padded_output_waveform))
    _check_filter(given, factors, result)
    filled = np.ascontiguousarray(result)
    _filter(given, factors, filled)
    if filled is not result:
        result[...] = filled
    return padded_output_waveform


def all_pole(x: Array, factors: Array) -> Array:
    """y[t] = x[t] - the sum of factors[k] * y[t - 1 - k]; factors (channels, k)."""
    order = factors.shape[1] + 1
    padded = np.zeros((*x.shape[:2], x.shape[2] + order - 1), x.dtype)
    flipped = np.zeros((len(factors), order), x.dtype)
    flipped[:, :-1] = factors[:, ::-1]
    _check_filter(x, flipped, padded)
    _filter(x, flipped, padded)
    return padded[:, :, order - 1 :]


def all_pole_backward(grad: Array, factors: Array, result: Array) -> tuple[Array, Array]:
    """Of the signals and of the factors."""
    of_signals = all_pole(grad[:, :, ::-1], factors)[:, :, ::-1]
    of_factors = np.zeros_like(factors)
    for k in range(min(factors.shape[1], grad.shape[2] - 1)):
        of_factors[:, k] = -(of_signals[:, :, k + 1 :] * result[:, :, : -k - 1]).sum((0, 2))
    return np.ascontiguousarray(of_signals), of_factors


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor) -> Tensor:
    """Signals (batch, channels, time) through a filter for each channel, with factors of outputs and of inputs."""
    if waveform.ndim != 3 or a_coeffs.ndim != 2 or b_coeffs.shape != a_coeffs.shape or not a_coeffs.shape[1]:
        raise OperatorError("_lfilter takes signals of 3 dimensions, and as many factors of outputs as of inputs")
    scale, more = a_coeffs.narrow(1, 0, 1), a_coeffs.shape[1] - 1
    taps = (b_coeffs / scale).flip([1]).unsqueeze(1)
    summed = run("conv1d", run("constant_pad_nd", waveform, [more, 0], 0), taps, None, [1], [0], [1], waveform.shape[1])
    found: Tensor = run("_all_pole", summed, (a_coeffs / scale).narrow(1, 1, more))
    return found


def overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Writes into the last three: the last input and output of each row, and the signals."""
    x, driven, before, out, result = (t.array for t in (waveform, temp, last_in, last_out, output_waveform))
    rows, length = x.shape if x.ndim == 2 else (0, 0)
    if x.ndim != 2 or driven.shape != x.shape or result.shape != x.shape or before.shape != (rows,) != out.shape:
        raise OperatorError("_overdrive_core_loop takes signals of 2 dimensions, and one number for each of their rows")
    if len({a.dtype for a in (x, driven, before, out, result)}) > 1 or x.dtype not in xp.FLOATS:
        raise OperatorError("_overdrive_core_loop takes float32 or float64, the same for all that it is given")
    if filtering.overdriven.run(max(x.size, length * _STEP), x, driven, before, out, result, rows, length) is None:
        d = x.dtype.type
        for i in range(length):
            out[...] = driven[:, i] - before + d(0.995) * out
            before[...] = driven[:, i]
            result[:, i] = x[:, i] * d(0.5) + out * d(0.75)
    return last_in, last_out, output_waveform


op("torchaudio::_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, "
   "Tensor(a!) padded_output_waveform) -> Tensor(a!)", python=lfilter_core_loop)  # fmt: skip
op("torchaudio::_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor", python=lfilter)
op("torchaudio::_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
   "Tensor(c!) output_waveform) -> (Tensor(a!), Tensor(b!), Tensor(c!))", python=overdrive_core_loop)  # fmt: skip
op("aten::_all_pole(Tensor self, Tensor factors) -> Tensor", kernel=all_pole, layout="contiguous",
   gradient={"self": "_all_pole_backward(grad, factors, result)[0]",
             "factors": "_all_pole_backward(grad, factors, result)[1]"})  # fmt: skip
op("aten::_all_pole_backward(Tensor grad, Tensor factors, Tensor result) -> (Tensor, Tensor)",
   kernel=all_pole_backward)  # fmt: skip

# ------------------------------------------------------------------ transducers


def _check_transducer(logits: Array, targets: Array, lengths: Sequence[Array], blank: int) -> None:
    if logits.dtype not in (xp.FLOAT32, xp.FLOAT16):
        raise OperatorError("logits must be float32 or float16 (half) type")
    for name, given in zip(("targets", "logit_lengths", "target_lengths"), (targets, *lengths), strict=True):
        if given.dtype != np.int32:
            raise OperatorError(f"{name} must be int32 type")
    if logits.ndim != 4 or targets.ndim != 2 or any(each.ndim != 1 for each in lengths):
        raise OperatorError("logits must be 4-D (batch, time, target, class), targets 2-D, lengths 1-D")
    batch, time, more, symbols = logits.shape
    if not len(targets) == len(lengths[0]) == len(lengths[1]) == batch:
        raise OperatorError("batch dimension mismatch between logits, targets and lengths")
    if not batch or int(lengths[0].max()) != time or int(lengths[1].max()) + 1 != more or targets.shape[1] + 1 != more:
        raise OperatorError("input length mismatch: the longest of each must be as long as the logits are")
    if min(int(lengths[0].min()) - 1, int(lengths[1].min())) < 0:
        raise OperatorError("lengths must not be negative, and there must be one step at least")
    if not 0 <= blank < symbols or (targets.size and not (targets.min() >= 0 and targets.max() < symbols)):
        raise OperatorError(f"blank and targets must be within [0, {symbols})")


def _sums_of_paths(blanks: Array, symbols: Array, ends: tuple[Array, Array] | None) -> Array:
    """(batch, time, targets + 1): the log of the sum over all paths to each place, or from it to the `ends`."""
    batch, time, more = blanks.shape
    sums = np.full((batch, time + 1, more + 1), -np.inf, blanks.dtype)
    if ends is None:
        for t, u in np.ndindex(time, more):
            if t == u == 0:
                sums[:, 0, 0] = 0
                continue
            stayed = sums[:, t - 1, u] + blanks[:, t - 1, u] if t else -np.inf
            spoken = sums[:, t, u - 1] + symbols[:, t, u - 1] if u else -np.inf
            sums[:, t, u] = np.logaddexp(stayed, spoken)
        return sums
    for t in reversed(range(time)):
        for u in reversed(range(more)):
            stayed = sums[:, t + 1, u] + blanks[:, t, u]
            spoken = sums[:, t, u + 1] + (symbols[:, t, u] if u + 1 < more else -np.inf)
            is_end = (ends[0] - 1 == t) & (ends[1] == u)
            is_out = (ends[0] <= t) | (ends[1] < u)
            sums[:, t, u] = np.where(is_end, blanks[:, t, u], np.where(is_out, -np.inf, np.logaddexp(stayed, spoken)))
    return sums


def rnnt_loss(
    logits: Array, targets: Array, logit_lengths: Array, target_lengths: Array, blank: int, clamp: float,
    fused_log_softmax: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """(batch,): the costs; and of the same shape as the logits: their gradients."""
    _check_transducer(logits, targets, (logit_lengths, target_lengths), blank)
    x = logits.astype(wide(logits.dtype))
    if fused_log_softmax:
        largest = x.max(-1, keepdims=True)
        x = x - (largest + np.log(np.exp(x - largest).sum(-1, keepdims=True)))
    batch, time, more, _ = x.shape
    rows, wanted = np.arange(batch)[:, None, None], targets[:, None, :].astype(np.int64)
    symbols = x[rows, np.arange(time)[:, None], np.arange(more - 1), wanted]
    with np.errstate(invalid="ignore"):
        before = _sums_of_paths(x[..., blank], symbols, None)
        after = _sums_of_paths(x[..., blank], symbols, (logit_lengths, target_lengths))
        total = after[:, 0, 0]
        reached = before[:, :-1, :-1] - total[:, None, None]
        gradients = np.exp(x + (reached + after[:, :-1, :-1])[..., None]) if fused_log_softmax else np.zeros_like(x)
        each = np.arange(batch)
        goes_on = after[:, 1:, :-1].copy()
        goes_on[each, logit_lengths - 1, target_lengths] = 0
        gradients[..., blank] -= np.exp(reached + x[..., blank] + goes_on)
        spoken = np.exp(reached[:, :, :-1] + symbols + after[:, :-1, 1:-1])
    np.subtract.at(gradients, (rows, np.arange(time)[:, None], np.arange(more - 1), wanted), spoken)
    if clamp > 0:
        gradients = np.clip(gradients, -clamp, clamp)
    return (-total).astype(logits.dtype), gradients.astype(logits.dtype)


_TRANSDUCER: Final = (
    "(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
    "bool fused_log_softmax)"
)
op(f"aten::_rnnt_loss{_TRANSDUCER} -> (Tensor costs, Tensor gradients)", kernel=rnnt_loss,
   gradient={"logits": "grads[0].reshape([-1, 1, 1, 1]) * gradients"})  # fmt: skip
for _name, _second in (("rnnt_loss_forward", "Tensor"), ("rnnt_loss", "Tensor?")):
    op(f"torchaudio::{_name}{_TRANSDUCER} -> (Tensor, {_second})", python=lambda *args: run("_rnnt_loss", *args))

# ------------------------------------------------------------------ alignment


def forced_align(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
) -> tuple[Array, Array]:
    """(1, time): the best path of the text through the scores, symbols and blanks; and the scores."""
    if log_probs.dtype not in (xp.FLOAT64, xp.FLOAT32, xp.FLOAT16):
        raise OperatorError("log_probs must be float64, float32 or float16 (half) type")
    if targets.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise OperatorError("targets must be int32 or int64 type")
    if log_probs.ndim != 3 or targets.ndim != 2 or not len(log_probs) == len(targets) == 1:
        raise OperatorError("forced_align takes log_probs of 3 dimensions, targets of 2, and batches of one")
    symbols = log_probs.shape[2]
    if not 0 <= blank < symbols or (targets.size and not (targets.min() >= 0 and targets.max() < symbols)):
        raise OperatorError(f"blank and targets must be within [0, {symbols})")
    scores, text = log_probs[0].astype(wide(log_probs.dtype)), targets[0].astype(np.int64)
    if tuple(map(int, (*input_lengths, *target_lengths))) != (len(scores), len(text)):
        raise OperatorError("input length mismatch: lengths must be those of log_probs and targets")
    repeats = int((text[1:] == text[:-1]).sum())
    if len(scores) < len(text) + repeats:
        raise OperatorError(
            f"targets length is too long for CTC. Found log_probs length: {len(scores)}, targets length: {len(text)}, "
            f"and number of repeats: {repeats}"
        )
    path = _best_path(scores, text, blank) if len(scores) else np.zeros(0, np.int64)
    return path[None].astype(targets.dtype), log_probs.copy()


def _best_path(scores: Array, text: Array, blank: int) -> Array:
    """Blanks stand before, between and behind the symbols, of which only those between two equal ones must be."""
    states = np.full(2 * len(text) + 1, blank, np.int64)
    states[1::2] = text
    may_skip = np.zeros(len(states), np.bool_)
    may_skip[3::2] = text[1:] != text[:-1]
    best = np.full(len(states), -np.inf, scores.dtype)
    best[:2] = scores[0, states[:2]]
    steps = np.zeros((len(scores), len(states)), np.int64)
    for t in range(1, len(scores)):
        one = np.concatenate([[-np.inf], best[:-1]])
        two = np.where(may_skip, np.concatenate([[-np.inf, -np.inf], best[:-2]])[: len(states)], -np.inf)
        steps[t] = np.where((two > one) & (two > best), 2, np.where((one > best) & (one > two), 1, 0))
        best = np.choose(steps[t], [best, one, two]).astype(scores.dtype) + scores[t, states]
    at = len(states) - 1
    if at and best[at] <= best[at - 1]:
        at -= 1
    path = np.empty(len(scores), np.int64)
    for t in reversed(range(len(scores))):
        path[t] = states[at]
        at -= steps[t, at]
    return path


op("torchaudio::forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) "
   "-> (Tensor, Tensor)", kernel=forced_align)  # fmt: skip
