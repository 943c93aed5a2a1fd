"""`torch.nn.utils.prune`: parts of parameters fixed at zero.

In: a module and the name of a parameter.  Out: the module; `NAME_orig` is trained, `NAME_mask` selects the remaining
parts, and their product is the parameter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter
from engine.torch.nn.utils.parametrize import with_property


class BasePruningMethod:
    """The base of pruning methods: `compute_mask(scores, mask)` returns the new mask from the present one."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        raise NotImplementedError

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **options: Any) -> Any:
        """Prune further parts of the parameter."""
        rule = cls(*args, **options)
        mask = module._buffers.get(f"{name}_mask")
        original = getattr(module, f"{name}_orig" if mask is not None else name)
        so_far = original.detach() * 0 + 1 if mask is None else mask
        scores = original.detach() if importance_scores is None else importance_scores
        custom_from_mask(module, name, rule.compute_mask(scores, so_far))
        return rule


class _Product:
    """The hook that computes the parameter before every call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, inputs: Any) -> None:
        mask = module._buffers[f"{self.name}_mask"]
        module.__dict__[self.name] = module._parameters[f"{self.name}_orig"] * mask

    def __prepare_scriptable__(self, module: Any) -> Any:
        """The module with the parameter as a property, for programs."""
        return with_property(module, self, self.name, f"self.{self.name}_orig * self.{self.name}_mask")


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune the elements where the mask is zero."""
    if f"{name}_mask" not in module._buffers:
        module.register_parameter(f"{name}_orig", module._parameters.pop(name))
        module.register_forward_pre_hook(_Product(name))
        module.__dict__.pop(name, None)
    module._buffers[f"{name}_mask"] = mask.to(getattr(module, f"{name}_orig").dtype)
    _Product(name)(module, None)
    return module


class _Unstructured(BasePruningMethod):
    """Pruning of single elements: `amount` of them, or that share."""

    def __init__(self, amount: float) -> None:
        _check(amount)
        self.amount = amount

    def _order(self, scores: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        left = default_mask.reshape(-1).nonzero().reshape(-1)
        worst = left[self._order(t.reshape(-1)[left])[: _count(self.amount, left.numel())]]
        mask = default_mask.clone().reshape(-1)
        mask[worst] = 0
        return mask.reshape(default_mask.shape)  # type: ignore[no-any-return]


class L1Unstructured(_Unstructured):
    """Pruning of the elements of the smallest size."""

    def _order(self, scores: Tensor) -> Tensor:
        return scores.abs().argsort()  # type: ignore[no-any-return]


class RandomUnstructured(_Unstructured):
    """Pruning of random elements."""

    def _order(self, scores: Tensor) -> Tensor:
        order: Tensor = call("randperm", (scores.numel(),), {})
        return order


class LnStructured(BasePruningMethod):
    """Pruning of rows along `dim` with the smallest norm."""

    def __init__(self, amount: float, n: float = 2, dim: int = -1) -> None:
        _check(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _order(self, rows: Tensor) -> Tensor:
        return call("linalg_vector_norm", (rows, self.n, [1]), {}).argsort()  # type: ignore[no-any-return]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        kept = default_mask.movedim(self.dim, 0).flatten(1).any(1).nonzero().reshape(-1)
        rows = (t * default_mask).movedim(self.dim, 0).flatten(1)
        worst = kept[self._order(rows[kept])[: _count(self.amount, t.shape[self.dim])]]
        return default_mask.clone().index_fill(self.dim, worst, 0)  # type: ignore[no-any-return]


class RandomStructured(LnStructured):
    """Pruning of random rows along `dim`."""

    def _order(self, rows: Tensor) -> Tensor:
        order: Tensor = call("randperm", (rows.shape[0],), {})
        return order


class Identity(BasePruningMethod):
    """Pruning of nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


def identity(module: Any, name: str) -> Any:
    """Prepare the parameter for pruning, and prune nothing."""
    Identity.apply(module, name)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prune the elements of the smallest size."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prune random elements."""
    RandomUnstructured.apply(module, name, amount)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: float, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prune the rows of the smallest norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prune random rows."""
    RandomStructured.apply(module, name, amount, dim=dim)
    return module


def global_unstructured(parameters: Iterable[tuple[Any, str]], pruning_method: Any, **options: Any) -> None:
    """Prune elements of several parameters, compared across all of them."""
    pairs = list(parameters)
    originals = [getattr(m, f"{n}_orig" if f"{n}_mask" in m._buffers else n).detach() for m, n in pairs]
    masks = [m._buffers.get(f"{n}_mask", o * 0 + 1) for (m, n), o in zip(pairs, originals, strict=True)]
    flat, so_far = (call("cat", ([each.reshape(-1) for each in part],), {}) for part in (originals, masks))
    mask, at = pruning_method(**options).compute_mask(flat, so_far), 0
    for (module, name), original in zip(pairs, originals, strict=True):
        custom_from_mask(module, name, mask[at : at + original.numel()].reshape(original.shape))
        at += original.numel()


def is_pruned(module: Module) -> bool:
    """True if a parameter of the module or of a submodule is pruned."""
    return any(
        isinstance(hook.call, _Product)
        for each in module.modules()
        for hook in vars(each)["_forward_pre_hooks"].values()
    )


def remove(module: Any, name: str) -> Any:
    """Make the parameter an ordinary one again, with zeros where it was pruned.  Raises ValueError for another."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook.call, _Product) and hook.call.name == name:
            hook.call(module, None)
            value = module.__dict__.pop(name).detach()
            del module._forward_pre_hooks[key], module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
            module.register_parameter(name, Parameter(value))
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def _check(amount: float) -> None:
    if (isinstance(amount, float) and not 0.0 <= amount <= 1.0) or amount < 0:
        raise ValueError(f"amount={amount} should be a count, or a share between 0 and 1")


def _count(amount: float, size: int) -> int:
    """The number of elements to prune.  Raises ValueError for more than there are."""
    if isinstance(amount, int) and amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount if isinstance(amount, int) else round(amount * size)
