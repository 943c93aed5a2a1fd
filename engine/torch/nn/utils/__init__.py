"""`torch.nn.utils`: gradients kept small, parameters as one vector, sequences of many lengths."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.torch.nn.utils import rnn as rnn
from engine.torch.nn.utils.gradients import clip_grad_norm as clip_grad_norm
from engine.torch.nn.utils.gradients import clip_grad_norm_ as clip_grad_norm_
from engine.torch.nn.utils.gradients import clip_grad_value_ as clip_grad_value_
from engine.torch.nn.utils.gradients import get_total_norm as get_total_norm
from engine.torch.nn.utils.vectors import parameters_to_vector as parameters_to_vector
from engine.torch.nn.utils.vectors import vector_to_parameters as vector_to_parameters


def __getattr__(name: str) -> Any:
    # It builds on modules, which build on sequences of many lengths here.
    if name == "parametrize":
        return import_module("engine.torch.nn.utils.parametrize")
    raise AttributeError(f"module 'torch.nn.utils' has no attribute '{name}'")
