"""`torch.amp`: mixed precision.

In: code in a `with` block; gradients.  Out: the block with matrix products in a smaller dtype; gradients scaled so that
they do not vanish in it.
"""

from __future__ import annotations

from engine.torch.amp.autocast_mode import autocast as autocast
from engine.torch.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from engine.torch.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from engine.torch.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from engine.torch.amp.grad_scaler import GradScaler as GradScaler
from engine.torch.namespace.missing_names import refuse_unknown_names

refuse_unknown_names(__name__)
