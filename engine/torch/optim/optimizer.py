"""`Optimizer`: groups of parameters with their options, and the state of each parameter.

In: parameters (or dicts of them with options of their own), and options for the rest.  Out: an object whose `step`
runs `_update` for every parameter that has a gradient; an optimizer defines that, or `step` itself.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from engine.aten.autograd import enable_grad, no_grad
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.scalars import float32
from engine.torch.nn.modules.hooks import RemovableHandle

Group = dict[str, Any]
State = dict[str, Any]
Closure = Callable[..., Any]


class Optimizer:
    """The base of all optimizers.

    `param_groups` is a list of dicts: the parameters under "params", and the options.  `state` has a dict for every
    updated parameter.
    """

    param_groups: list[Group]
    state: defaultdict[Tensor, State]

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts")
        self.defaults = dict(defaults)
        self.state = defaultdict(dict)
        self.param_groups = []
        self._hooks: dict[str, OrderedDict[int, Any]] = {}
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters.  Raises TypeError, ValueError for non-leaf or repeated parameters."""
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else _unnamed(given)
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor: give what it is computed from, or its .detach()")
        known = {id(param) for group in self.param_groups for param in group["params"]}
        if known & {id(param) for param in params}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**param_group, "params": params, **_missing(self.defaults, param_group)})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients to None, or to zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param.grad = None if set_to_none else param.grad.detach().zero_()

    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient; the closure, if given, recomputes the loss first."""
        self._run_hooks("before step", (closure,), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(param, _direction(param.grad, group), self.state[param], group)
        self._run_hooks("after step", (closure,), {})
        return loss

    def register_step_pre_hook(self, hook: Closure) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before every step."""
        return RemovableHandle(self._hooks.setdefault("before step", OrderedDict()), hook)

    def register_step_post_hook(self, hook: Closure) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after every step."""
        return RemovableHandle(self._hooks.setdefault("after step", OrderedDict()), hook)

    def _run_hooks(self, when: str, *args: Any) -> None:
        for hook in tuple(self._hooks[when].values()) if when in self._hooks else ():
            hook(self, *args)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """Update one parameter by its gradient."""
        raise NotImplementedError(f"{type(self).__name__} defines neither step nor _update")

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter index, and the groups with indices in place of parameters."""
        numbers = self._numbers()
        groups = [
            {**_options(group), "params": [numbers[id(param)] for param in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items() if s}, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state of an optimizer with equal groups.  Raises ValueError if the groups differ in size."""
        given = state_dict["param_groups"]
        lengths = [len(group["params"]) for group in given]
        if len(given) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if lengths != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of ours")
        params = [param for group in self.param_groups for param in group["params"]]
        numbers = [number for group in given for number in group["params"]]
        by_number = dict(zip(numbers, params, strict=True))
        self.state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            if number in by_number:
                self.state[by_number[number]] = {k: _loaded(k, v, by_number[number]) for k, v in state.items()}
        for group, loaded in zip(self.param_groups, given, strict=True):
            group.update(deepcopy(_options(loaded)))

    def _numbers(self) -> dict[int, int]:
        params = (param for group in self.param_groups for param in group["params"])
        return {id(param): number for number, param in enumerate(params)}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [
                *([""] if number else []),
                f"Parameter Group {number}",
                *(f"    {k}: {v}" for k, v in sorted(_options(group).items())),
            ]
        return "\n".join([*lines, ")"])


def check(**options: float) -> None:
    """Raise ValueError for a negative option."""
    for name, value in options.items():
        if value < 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Iterable[float]) -> None:
    """Raise ValueError for a share outside of [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def with_implementation_options(options: Group, known: str, wishes: Mapping[str, Any]) -> Group:
    """The options with those that select an implementation of steps (`foreach`, `fused`, …), which have no effect.

    Raises TypeError for an unknown option.
    """
    usual: Group = {name: None if name in ("foreach", "fused") else False for name in known.split()}
    unknown = [name for name in wishes if name not in usual]
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; there are {', '.join((*options, *usual))}")
    return {**options, **usual, **wishes}


def begin(param: Tensor, state: State, *names: str) -> None:
    """Initialize the state with a count of steps, and zeros under these names."""
    state["step"] = tensor(0.0, dtype=float32)
    state.update((name, param.detach() * 0) for name in names)


def step_number(state: State) -> float:
    """Increment the count of steps, and return it."""
    state["step"] += 1
    number: float = state["step"].item()
    return number


def decayed(grad: Tensor, param: Tensor, group: Group) -> Tensor:
    """The gradient plus the weight decay; decoupled weight decay shrinks the parameter instead."""
    decay = group["weight_decay"]
    if not decay:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * decay)
        return grad
    added: Tensor = grad.add(param, alpha=decay)
    return added


def _unnamed(params: Iterable[Any]) -> list[Any]:
    """The parameters without their optional names."""
    return [param[1] if isinstance(param, tuple) else param for param in params]


def _missing(defaults: Mapping[str, Any], group: Mapping[str, Any]) -> Group:
    return {name: value for name, value in defaults.items() if name not in group}


def _options(group: Mapping[str, Any]) -> Group:
    return {name: value for name, value in group.items() if name != "params"}


def _direction(grad: Tensor, group: Group) -> Tensor:
    return -grad if group.get("maximize") else grad


def _loaded(name: str, value: Any, param: Tensor) -> Any:
    """A loaded value of the state; tensors other than the count of steps take the parameter's dtype and device."""
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if name == "step":
        return value.clone()
    dtype = param.dtype if param.dtype.is_floating_point else value.dtype
    return value.detach().to(device=param.device, dtype=dtype, copy=True)
