"""`torch.nn.utils`: gradients kept small, parameters as one vector, sequences of many lengths."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.torch.lacking import UnknownNameError
from engine.torch.nn.utils import rnn as rnn
from engine.torch.nn.utils.gradients import clip_grad_norm as clip_grad_norm
from engine.torch.nn.utils.gradients import clip_grad_norm_ as clip_grad_norm_
from engine.torch.nn.utils.gradients import clip_grad_value_ as clip_grad_value_
from engine.torch.nn.utils.gradients import get_total_norm as get_total_norm
from engine.torch.nn.utils.vectors import parameters_to_vector as parameters_to_vector
from engine.torch.nn.utils.vectors import vector_to_parameters as vector_to_parameters


def __getattr__(name: str) -> Any:
    # It builds on modules, which build on sequences of many lengths here.
    if name in _LATER:
        return import_module(f"engine.torch.nn.utils.{name}")
    if name in _NORMS:
        return getattr(import_module("engine.torch.nn.utils.norms"), name)
    raise UnknownNameError(name, __name__, lambda: {*globals(), *_NORMS, *_LATER})


_LATER = frozenset({"parametrize", "parametrizations", "prune"})
_NORMS = frozenset({"weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm"})
