"""`torch.nn.utils`: gradient clipping, parameters as one vector, packed sequences, parametrizations, pruning.

In: a name.  Out: the function or module; what few programs ask for is imported at their first use.
"""

from __future__ import annotations

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.nn.utils import rnn as rnn
from engine.torch.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from engine.torch.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from engine.torch.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from engine.torch.nn.utils.clip_grad import get_total_norm as get_total_norm
from engine.torch.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from engine.torch.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters

_MODULES = ("fusion", "parametrize", "parametrizations", "prune")
_NORMS = ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")
refuse_unknown_names(
    __name__,
    {**{name: f"{__name__}.{name}" for name in _MODULES}, **dict.fromkeys(_NORMS, f"{__name__}.norms")},
)
