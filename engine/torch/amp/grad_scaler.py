"""Loss scaling, which keeps small gradients from vanishing in float16.

In: losses, optimizers.  Out: scaled losses; optimizer steps with unscaled gradients, skipped if some are not finite.
"""

from __future__ import annotations

import warnings
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorAssertionError, OperatorError, OperatorValueError


class GradScaler:
    """Scales losses, and runs optimizer steps with unscaled gradients.

    The scale falls when gradients overflow, and grows after `growth_interval` steps without overflow.  Disabled (also
    when the device is missing), losses and steps pass through unchanged.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if enabled and device != "cpu" and not libraries.is_there(device):
            warnings.warn(f"There is no {device} device: GradScaler is disabled.", stacklevel=2)
            enabled = False
        if enabled and not (growth_factor > 1 and backoff_factor < 1):
            raise OperatorAssertionError("the growth factor must be greater than 1.0, the backoff factor less")
        self._device, self._enabled = device, enabled
        self._scale, self._growth, self._backoff = float(init_scale), growth_factor, backoff_factor
        self._interval, self._good = growth_interval, 0
        self._found: dict[int, bool] = {}
        """Optimizer id -> True if some of its gradients were not finite since the last update."""
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """The outputs (tensors, or lists and tuples of them) multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return call("mul", (outputs, self._scale), {})
        if not isinstance(outputs, (list, tuple)):
            raise OperatorValueError("outputs must be a Tensor or an iterable of Tensors")
        return type(outputs)(map(self.scale, outputs))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the scale.  Raises OperatorError the second time."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise OperatorError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise OperatorError("unscale_() has already been called on this optimizer since the last update().")
        self._found[id(optimizer)] = self._scaled_back(optimizer)

    def _scaled_back(self, optimizer: Any) -> bool:
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for gradient in gradients:
            gradient.detach().mul_(1.0 / self._scale)
        return not all(bool(gradient.isfinite().all()) for gradient in gradients)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Run `optimizer.step`, unless gradients are not finite.  Raises OperatorError the second time."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise OperatorError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise OperatorError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale after the steps.  Raises OperatorAssertionError if none was taken."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise OperatorAssertionError("No inf checks were recorded prior to update.")
        elif any(self._found.values()):
            self._scale, self._good = self._scale * self._backoff, 0
        else:
            self._good += 1
            if self._good == self._interval:
                self._scale, self._good = self._scale * self._growth, 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        return self._growth

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff = new_factor

    def get_growth_interval(self) -> int:
        return self._interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scaler's state for `load_state_dict`; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth, "backoff_factor": self._backoff,
            "growth_interval": self._interval, "_growth_tracker": self._good,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state.  Raises OperatorError for the state of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise OperatorError("the source state dict is empty: the GradScaler that it is from was disabled")
        self._scale, self._growth = state_dict["scale"], state_dict["growth_factor"]
        self._backoff, self._interval = state_dict["backoff_factor"], state_dict["growth_interval"]
        self._good = state_dict["_growth_tracker"]
