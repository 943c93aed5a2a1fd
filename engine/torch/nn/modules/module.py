"""`Module`: parameters, buffers and further modules under names.

In: what `__init__` assigns to `self`.  Out: a tree of modules that can be called, walked, moved, saved as a
`state_dict`, and compiled by `torch.jit.script`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from engine.aten.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import did_you_mean
from engine.torch.modules import ScriptModule
from engine.torch.nn.modules.hooks import RemovableHandle
from engine.torch.nn.parameter import Parameter

M = TypeVar("M", bound="Module")
Hook = Callable[..., Any]
_TABLES: Final = ("_parameters", "_buffers", "_modules")


class IncompatibleKeys(NamedTuple):
    """Names that a state dict lacks, and names in it that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all modules; a module defines `forward`."""

    _torchscript_module: ClassVar[bool] = True
    """Tells the compiler that instances are modules."""
    forward: Callable[..., Any]
    training: bool
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]

    def __init__(self) -> None:
        for table in (*_TABLES, "_forward_hooks", "_forward_pre_hooks"):
            object.__setattr__(self, table, OrderedDict())
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "training", True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "forward"):
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')
        for hook in tuple(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in tuple(self._forward_hooks.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    # -- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        table = self._table_of(name, value)
        if table is None:
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)
        for other in _TABLES:
            if other != table:
                self.__dict__[other].pop(name, None)
        self.__dict__[table][name] = value

    def _table_of(self, name: str, value: Any) -> str | None:
        """Which table the attribute belongs to; None for an ordinary one.  Raises TypeError for a wrong value."""
        for table, kind, what in _KINDS:
            if isinstance(value, kind):
                if table not in self.__dict__:
                    raise AttributeError(f"cannot assign {what} before Module.__init__() call")
                return table
        for table, allowed in _ALLOWED.items():
            if name in self.__dict__.get(table, ()):
                if value is None or isinstance(value, allowed):
                    return table
                raise TypeError(f"cannot assign '{type(value).__name__}' to '{name}', one of the {table[1:]}")
        return None

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        known = [*self.__dict__, *(n for table in _TABLES for n in self.__dict__.get(table, ()))]
        hint = "".join(f"; {h}" for h in did_you_mean(name, known)) if not name.startswith("_") else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")

    def __delattr__(self, name: str) -> None:
        table = next((table for table in _TABLES if name in self.__dict__[table]), None)
        if table is None:
            object.__delattr__(self, name)
            return
        del self.__dict__[table][name]
        self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        self._check_new(name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}'")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; only persistent ones are in the `state_dict`."""
        self._check_new(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}'")
        self._buffers[name] = tensor
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Any) -> None:
        self._check_new(name, "module")
        if module is not None and not isinstance(module, (Module, ScriptModule)):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = module

    add_module = register_module

    def _check_new(self, name: str, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"{what} name can't be empty or contain '.', got: '{name}'")
        if hasattr(self, name) and not any(name in self.__dict__[table] for table in _TABLES):
            raise KeyError(f"attribute '{name}' already exists")

    # -- hooks

    def register_forward_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, inputs, output)` runs after `forward`; what it returns, unless None, is the output."""
        return RemovableHandle(self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, inputs)` runs before `forward`; what it returns, unless None, are the inputs."""
        return RemovableHandle(self._forward_pre_hooks, hook)

    # -- parts

    def named_children(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Any]:
        return (module for _, module in self.named_children())

    def named_modules(self, memo: set[int] | None = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This module and all inside, each once, under the first of its names."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            path = f"{prefix}.{name}" if prefix else name
            if isinstance(module, Module):
                yield from module.named_modules(memo, path)
            elif module is not None:
                yield from module.named_modules(path)

    def modules(self) -> Iterator[Any]:
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_buffers("", recurse))

    def _named_tensors(self, table: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(None, prefix) if recurse else [(prefix, self)]:
            for name, tensor in _tensors(module, table):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def get_submodule(self, target: str) -> Any:
        """The module under a dotted name.  Raises AttributeError."""
        module: Any = self
        for part in target.split(".") if target else ():
            module = getattr(module, part)
        return module

    def get_parameter(self, target: str) -> Tensor:
        """The parameter under a dotted name.  Raises AttributeError."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def apply(self: M, fn: Callable[[Any], None]) -> M:
        """Call `fn` with every module inside, and then with this one."""
        for child in self.children():
            child.apply(fn) if isinstance(child, Module) else fn(child)
        fn(self)
        return self

    # -- modes, dtypes

    def train(self: M, mode: bool = True) -> M:
        self.training = bool(mode)
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            parameter.grad = None if set_to_none or parameter.grad is None else parameter.grad * 0

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move to a device, or change the dtype of what holds fractions."""
        wanted = kwargs.get("dtype", next((each for each in args if isinstance(each, scalars.dtype)), None))
        if wanted is not None and not wanted.is_floating_point:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes")
        device = kwargs.get("device", next((each for each in args if not isinstance(each, scalars.dtype)), None))
        options = {} if device is None else {"device": device}

        def moved(tensor: Tensor) -> Any:
            changes = {"dtype": wanted} if wanted is not None and tensor.dtype.is_floating_point else {}
            return tensor.data.to(**options, **changes) if options or changes else tensor

        return self._apply(moved)

    def float(self: M) -> M:
        return self.to(scalars.DTYPE_ALIASES["float"])

    def double(self: M) -> M:
        return self.to(scalars.DTYPE_ALIASES["double"])

    def half(self: M) -> M:
        return self.to(scalars.DTYPE_ALIASES["half"])

    def bfloat16(self: M) -> M:
        return self.to(scalars.DTYPE_BY_NAME["bfloat16"])

    def cpu(self: M) -> M:
        return self.to("cpu")

    def _apply(self: M, fn: Callable[[Tensor], Any]) -> M:
        """Give every parameter and buffer the values that `fn` makes of it; they stay the same objects."""
        for tensor in (*self.parameters(), *self.buffers()):
            new = fn(tensor)
            if new is not tensor:
                tensor.array, tensor._storage = new.array, new.storage
        return self

    # -- state

    def state_dict(self, prefix: str = "") -> OrderedDict[str, Tensor]:
        """Name -> tensor: of each module first its parameters, then its buffers, then what its children have."""
        return OrderedDict((name, tensor.data) for name, tensor in self._state(prefix))

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> IncompatibleKeys:
        """Copy the tensors in.  Raises RuntimeError when names (if `strict`) or shapes do not fit; nothing is copied
        then."""
        own = dict(self._state())
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        wrong = [
            f"size mismatch for {key}: copying a param with shape {state_dict[key].shape} from checkpoint, the shape "
            f"in current model is {tensor.shape}."
            for key, tensor in own.items()
            if key in state_dict and state_dict[key].shape != tensor.shape
        ]
        problems = wrong + (_key_problems(missing, unexpected) if strict else [])
        if problems:
            shown = "\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *problems])
            raise RuntimeError(shown)
        for key, tensor in own.items():
            if key in state_dict:
                tensor.data.copy_(state_dict[key].data)
        return IncompatibleKeys(missing, unexpected)

    def _state(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The tensors themselves under their paths; what is shared, under each."""
        for name, tensor in self._own_state():
            yield prefix + name, tensor
        for name, child in self._modules.items():
            if isinstance(child, Module):
                yield from child._state(f"{prefix}{name}.")
            elif child is not None:
                yield from ((f"{prefix}{name}.{key}", tensor) for key, tensor in child.state_dict().items())

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        yield from _tensors(self, "_parameters")
        for name, tensor in _tensors(self, "_buffers"):
            if name not in self._non_persistent_buffers_set:
                yield name, tensor

    # -- text

    def extra_repr(self) -> str:
        """What `repr` shows in the module's brackets."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {_indented(repr(child))}" for name, child in self._modules.items()]
        return shown(type(self).__name__, extra, children)


def shown(name: str, extra: Iterable[str], children: Iterable[str]) -> str:
    """A module's text: on one line where there are no children."""
    lines = [*extra, *children]
    if list(extra) == lines and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _tensors(module: Any, table: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors in one table of one module, which may be a compiled one."""
    if not isinstance(module, Module):
        yield from module.named_parameters("", False) if table == "_parameters" else module.named_buffers("", False)
        return
    for name, tensor in module.__dict__[table].items():
        if tensor is not None:
            yield name, tensor


def _key_problems(missing: list[str], unexpected: list[str]) -> list[str]:
    named = (("Unexpected", unexpected), ("Missing", missing))
    return [f"{what} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys) + ". " for what, keys in named if keys]


_KINDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("_parameters", Parameter, "parameters"), ("_modules", (Module, ScriptModule), "module"),
)  # fmt: skip
"""Values that belong into a table because of what they are."""
_ALLOWED: Final[dict[str, Any]] = {
    "_parameters": Parameter, "_buffers": Tensor, "_modules": (Module, ScriptModule),
}  # fmt: skip
"""What may take the place of something in a table."""
