"""`weight_norm` and `spectral_norm` in their older form: the weight is computed before every call.

In: a module with a weight.  Out: the module; the trained parameters are `weight_g` and `weight_v`, or `weight_orig`.
"""

from __future__ import annotations

from typing import Any

from engine.torch.nn.parameter import Parameter
from engine.torch.nn.utils.parametrizations import _SpectralNorm, _WeightNorm
from engine.torch.nn.utils.parametrize import with_property


class _Computed:
    """A hook that computes the weight before every call from the parameters `names`.

    In programs the weight is a property of the module, which computes it.
    """

    def __init__(self, name: str, rule: Any, names: tuple[str, ...]) -> None:
        self.name, self.rule, self.names = name, rule, names

    def value(self, module: Any) -> Any:
        return self.rule.train(module.training)(*(getattr(module, each) for each in self.names))

    def __call__(self, module: Any, inputs: Any) -> None:
        module.__dict__[self.name] = self.value(module)

    def __prepare_scriptable__(self, module: Any) -> Any:
        """The module with the weight as a property, which shares parameters and buffers with this one."""
        rule = f"{self.name}_rule"
        made = with_property(module, self, self.name, f"self.{rule}({', '.join(f'self.{n}' for n in self.names)})")
        made._modules[rule] = self.rule.train(module.training)
        return made


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split the weight into lengths (`weight_g`) and directions (`weight_v`) for training."""
    rule = _WeightNorm(dim)
    length, direction = rule.right_inverse(module._parameters.pop(name).data)
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(direction))
    return _install(module, _Computed(name, rule, (f"{name}_g", f"{name}_v")))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Keep the weight's largest singular value at one; `weight_orig` is trained."""
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    weight = module._parameters.pop(name)
    rule = _SpectralNorm(weight, n_power_iterations, dim, eps)
    module.register_parameter(f"{name}_orig", weight)
    for suffix in ("_u", "_v"):
        module.register_buffer(f"{name}{suffix}", rule._buffers[suffix])
    return _install(module, _Computed(name, rule, (f"{name}_orig",)))


def _install(module: Any, hook: _Computed) -> Any:
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight an ordinary parameter again.  Raises ValueError if it is not computed."""
    for key, registered in module._forward_pre_hooks.items():
        hook = registered.call
        if isinstance(hook, _Computed) and hook.name == name:
            value = hook.value(module).detach()
            for each in hook.names:
                del module._parameters[each]
            for each in (f"{name}_u", f"{name}_v"):
                module._buffers.pop(each, None)
            del module._forward_pre_hooks[key], module.__dict__[name]
            module.register_parameter(name, Parameter(value))
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


remove_spectral_norm = remove_weight_norm
