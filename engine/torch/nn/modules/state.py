"""The state of modules: `state_dict` and `load_state_dict`.

In: a module with its parameters, buffers and children; a mapping of names to tensors.  Out: such a mapping, with the
classes' versions as `_metadata`; the tensors' values in the module, and the names that did not fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from engine.aten.values.tensor import Tensor
from engine.torch.nn.modules.hooks import Hook, Registered, RemovableHandle
from engine.torch.nn.parameter import Buffer, Parameter

EXTRA: Final = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The keys missing from a state dict, and the unexpected keys in it."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Stateful:
    """The part of `Module` that saves and loads."""

    _version: ClassVar[int] = 1
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _other_hooks: dict[str, OrderedDict[int, Any]]

    def hooks(self, kind: str) -> OrderedDict[int, Any]:
        """The hooks of a rare kind, in order of registration."""
        return self._other_hooks.setdefault(kind, OrderedDict())

    # -- saving

    def state_dict(
        self,
        *args: Any,
        destination: OrderedDict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """Name -> tensor: for each module its parameters, then its buffers, then those of its children."""
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        found: Any = given.get("destination", destination)
        prefix, keep_vars = given.get("prefix", prefix), given.get("keep_vars", keep_vars)
        if found is None:
            found = OrderedDict()
            found._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(found, "_metadata"):
            found._metadata[prefix[:-1]] = metadata
        for hook in self._hooks("save_before"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, child in self._modules.items():
            if isinstance(child, Stateful):
                child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
            elif child is not None:
                found.update((f"{prefix}{name}.{key}", tensor) for key, tensor in child.state_dict().items())
        for hook in self._hooks("save_after"):
            replaced = hook(self, found, prefix, metadata)
            found = found if replaced is None else replaced
        return found

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add this module's own tensors to `destination`."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.data
        if _defines(self, "get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in self._parameters.items():
            if tensor is not None:
                yield name, tensor
        for name, tensor in self._buffers.items():
            if tensor is not None and name not in self._non_persistent_buffers_set:
                yield name, tensor

    def get_extra_state(self) -> Any:
        """Further state to save, for classes that also define `set_extra_state`."""
        raise RuntimeError("define get_extra_state and set_extra_state together to save more than tensors")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError("a state dict has more than tensors, and the module does not define set_extra_state")

    # -- loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors into the module's, or, with `assign`, replace the module's tensors by them.

        Raises TypeError for anything but a mapping, RuntimeError if shapes or (if `strict`) names do not match.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        load = _Load(self, OrderedDict(state_dict), getattr(state_dict, "_metadata", None) or {}, strict, assign)
        load.into(self, "")
        problems = load.errors + (_key_problems(load.missing, load.unexpected) if strict else [])
        if problems:
            raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *problems]))
        return IncompatibleKeys(load.missing, load.unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors from `state_dict`, and record mismatches in the lists."""
        for hook in self._hooks("load_before"):
            args = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
            hook(self, *args) if hook.with_module else hook(*args)
        own = dict(self._own_state())
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, tensor in own.items():
            if prefix + name in state_dict:
                problem = _put(self, name, tensor, state_dict[prefix + name], prefix + name, assign)
                error_msgs += [problem] if problem else []
            elif strict:
                missing_keys.append(prefix + name)
        extra = _defines(self, "set_extra_state")
        if extra and prefix + EXTRA in state_dict:
            self.set_extra_state(state_dict[prefix + EXTRA])
        elif extra and strict:
            missing_keys.append(prefix + EXTRA)
        if strict:
            known = {*own, *self._modules, *([EXTRA] if extra else [])}
            unexpected_keys += [key for key in state_dict if _is_strange(key, prefix, known, self._modules)]

    # -- hooks

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` runs before the module's tensors are collected."""
        return RemovableHandle(self.hooks("save_before"), hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` may change the collected state."""
        return RemovableHandle(self.hooks("save_after"), hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` runs before loading."""
        return RemovableHandle(self.hooks("load_before"), Registered(hook))

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        return RemovableHandle(self.hooks("load_before"), Registered(hook, with_module=with_module))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, incompatible_keys)` runs after loading, and may change the lists of keys."""
        return RemovableHandle(self.hooks("load_after"), hook)

    def _hooks(self, kind: str) -> tuple[Any, ...]:
        return tuple(self._other_hooks[kind].values()) if kind in self._other_hooks else ()


class _Load:
    """One call of `load_state_dict`."""

    def __init__(self, root: Stateful, state: Any, metadata: Mapping[str, Any], strict: bool, assign: bool) -> None:
        self.state, self.metadata, self.assign = state, metadata, assign
        # Names are always recorded here; a caller may ignore them.
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def into(self, module: Any, prefix: str) -> None:
        if not isinstance(module, Stateful):
            self._into_compiled(module, prefix)
            return
        local = {**self.metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if self.assign else {})}
        module._load_from_state_dict(self.state, prefix, local, True, self.missing, self.unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                self.into(child, f"{prefix}{name}.")
        keys = IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._hooks("load_after"):
            hook(module, keys)

    def _into_compiled(self, root: Any, prefix: str) -> None:
        """Load a compiled module; parts whose programs have a method `_load_from_state_dict` are left to that."""
        known, left = set(), []
        for path, module in root._paths_(""):
            place = f"{prefix}{path}." if path else prefix
            if "_load_from_state_dict" in module._ivalue.type.methods:
                about = self.metadata.get(place[:-1]) or {"version": 1}
                module.__getattr__("_load_from_state_dict")(dict(self.state), place, about, True, [], [], [])
                left.append(place)
                continue
            for name, tensor in (*module._tensors_("parameter"), *module._tensors_("buffer")):
                key = place + name
                known.add(key)
                if key in self.state:
                    problem = _put(module, name, tensor, self.state[key], key, self.assign)
                    self.errors += [problem] if problem else []
                else:
                    self.missing.append(key)
        mine = (key for key in self.state if key.startswith(prefix) and key not in known)
        self.unexpected += [key for key in mine if not key.startswith(tuple(left))]


def _put(module: Any, name: str, own: Tensor, given: Any, key: str, assign: bool) -> str | None:
    """Copy or assign one tensor; None, or an error message."""
    if not isinstance(given, Tensor):
        kind = type(given)
        return f'While copying the parameter named "{key}", expected a tensor from checkpoint but received {kind}'
    source = given.reshape(1) if own.ndim == 1 and given.ndim == 0 and own.shape[0] == 1 else given
    if source.shape != own.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
            f"model is {own.shape}."
        )
    if assign:
        value: Any = given
        if isinstance(own, Parameter) and not isinstance(given, Parameter):
            value = Parameter(given, own.requires_grad)
        setattr(module, name, Buffer(value) if isinstance(own, Buffer) else value)
        return None
    own.data.copy_(source.data)
    return None


def _is_strange(key: str, prefix: str, known: set[str], children: Mapping[str, Any]) -> bool:
    """True if the key has the prefix of the module but names nothing in it."""
    if not key.startswith(prefix):
        return False
    first, dot, _ = key[len(prefix) :].partition(".")
    return first not in known or (bool(dot) and first not in children)


def _defines(module: Any, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Stateful, method)


def _key_problems(missing: list[str], unexpected: list[str]) -> list[str]:
    named = (("Unexpected", unexpected), ("Missing", missing))
    return [f"{what} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys) + ". " for what, keys in named if keys]
