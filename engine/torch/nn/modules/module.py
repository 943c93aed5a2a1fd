"""`Module`: parameters, buffers and further modules under names.

In: the assignments to `self` in `__init__`.  Out: a tree of modules that can be called, traversed, moved, saved as a
`state_dict`, and compiled by `torch.jit.script`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, TypeVar

from engine.aten.dispatch.calls import call
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import did_you_mean
from engine.torch.compiled.objects import CompiledModule
from engine.torch.namespace.python_functions import typename
from engine.torch.nn.modules.hooks import BackwardHooks, Hook, Registered, RemovableHandle
from engine.torch.nn.modules.state import IncompatibleKeys as IncompatibleKeys
from engine.torch.nn.modules.state import Stateful
from engine.torch.nn.parameter import Buffer, Parameter

M = TypeVar("M", bound="Module")
_TABLES: Final = ("_parameters", "_buffers", "_modules")


class Module(Stateful):
    """The base of all modules; subclasses define `forward`."""

    _torchscript_module: ClassVar[bool] = True
    """Marks the class for the compiler as one of modules."""
    dump_patches: ClassVar[bool] = False
    call_super_init: ClassVar[bool] = False
    forward: Callable[..., Any]
    training: bool
    _is_full_backward_hook: bool | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            given = next(iter(kwargs), None)
            what = f"an unexpected keyword argument '{given}'" if given else f"{len(args) + 1} arguments, but takes one"
            raise TypeError(f"{type(self).__name__}.__init__() got {what}")
        for table in (*_TABLES, "_forward_hooks", "_forward_pre_hooks"):
            object.__setattr__(self, table, OrderedDict())
        object.__setattr__(self, "_other_hooks", {})
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "training", True)
        object.__setattr__(self, "_is_full_backward_hook", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.module(self, args, kwargs)) is not NOT_TRACED:
            return traced
        try:
            forward = self.forward
        except AttributeError:
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
            ) from None
        if self._forward_hooks or self._forward_pre_hooks or self._other_hooks:
            return self._call_with_hooks(args, kwargs)
        return forward(*args, **kwargs)

    def _call_with_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], forward: Callable[..., Any] | None = None
    ) -> Any:
        """Call `forward` (by default the module's own) between the hooks."""
        for pre_hook in tuple(self._forward_pre_hooks.values()):
            if pre_hook.with_kwargs:
                changed = pre_hook(self, args, kwargs)
                args, kwargs = (args, kwargs) if changed is None else changed
                continue
            changed = pre_hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        hooks, pre_hooks = self._hooks("backward"), self._hooks("backward_before")
        watched = BackwardHooks(self, pre_hooks, hooks) if hooks or pre_hooks else None
        result = (forward or self.forward)(*(watched.enter(args) if watched else args), **kwargs)
        for hook in tuple(self._forward_hooks.values()):
            changed = hook(self, args, kwargs, result) if hook.with_kwargs else hook(self, args, result)
            result = result if changed is None else changed
        return watched.leave(result) if watched else result

    _call_impl = __call__

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
        if table == "_buffers" and isinstance(value, Buffer):
            self._note_persistence(name, value.persistent)

    def _table_of(self, name: str, value: Any) -> str | None:
        """The table that the attribute belongs to; None for an ordinary one.  Raises TypeError for a wrong value."""
        for table, kind, what in _KINDS:
            if isinstance(value, kind):
                if table not in self.__dict__:
                    raise AttributeError(f"cannot assign {what} before Module.__init__() call")
                return table
        for table, allowed in _ALLOWED.items():
            if name in self.__dict__.get(table, ()):
                if value is None or isinstance(value, allowed):
                    return table
                raise TypeError(f"cannot assign '{typename(value)}' as {_WANTED[table].format(name)} or None expected)")
        return None

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in _TABLES:
            if table in own and name in own[table]:
                return own[table][name]
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
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer; only persistent ones are part of the `state_dict`."""
        self._check_new(name, "buffer")
        if name in self._parameters or name in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        self._note_persistence(name, persistent)

    def _note_persistence(self, name: str, persistent: bool) -> None:
        change = self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add
        change(name)

    def register_module(self, name: str, module: Any) -> None:
        self._check_new(name, "module")
        if module is not None and not isinstance(module, (Module, CompiledModule)):
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

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, inputs, output)` runs after `forward`; its result, unless None, replaces the output."""
        return RemovableHandle(self._forward_hooks, Registered(hook, with_kwargs), prepend)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, inputs)` runs before `forward`; its result, unless None, replaces the inputs."""
        return RemovableHandle(self._forward_pre_hooks, Registered(hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` may return other gradients of the inputs."""
        return RemovableHandle(self.hooks("backward"), hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` may return other gradients of the outputs."""
        return RemovableHandle(self.hooks("backward_before"), hook, prepend)

    # -- parts

    def named_children(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Any]:
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all its submodules, each once (unless `remove_duplicate` is False), under its first path."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            path = f"{prefix}.{name}" if prefix else name
            if isinstance(module, Module):
                yield from module.named_modules(memo, path, remove_duplicate)
            elif module is not None:
                yield from module.named_modules(path)

    def modules(self) -> Iterator[Any]:
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_parameters("", recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._named_tensors("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (tensor for _, tensor in self.named_buffers("", recurse))

    def _named_tensors(self, table: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(None, prefix, once) if recurse else [(prefix, self)]:
            for name, tensor in _tensors(module, table):
                if not once or id(tensor) not in seen:
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

    def get_buffer(self, target: str) -> Tensor:
        """The buffer under a dotted name.  Raises AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        found: Tensor = module._buffers[name]
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Set the module under a dotted name.  Raises ValueError, AttributeError for an unknown path."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"{type(parent).__name__} has no submodule `{name}`")
        parent.register_module(name, module) if name not in parent._modules else setattr(parent, name, module)

    def apply(self: M, fn: Callable[[Any], None]) -> M:
        """Call `fn` with every submodule, and then with this module."""
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
        """Set `requires_grad` of all parameters.  Raises TypeError for anything but a bool."""
        if not isinstance(requires_grad, bool):
            raise TypeError(f"requires_grad must be a bool, not {type(requires_grad).__name__}")
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else parameter.grad.detach().zero_()

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move parameters and buffers to a device, or change the dtype of floating-point ones."""
        wanted = kwargs.get("dtype", next((each for each in args if isinstance(each, scalars.dtype)), None))
        if wanted is not None and not (wanted.is_floating_point or wanted.is_complex):
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes")
        device = kwargs.get("device", next((each for each in args if not isinstance(each, scalars.dtype)), None))
        options = {} if device is None else {"device": device}

        def moved(tensor: Tensor) -> Any:
            changes = {"dtype": wanted} if wanted is not None and tensor.dtype.category in ("float", "complex") else {}
            return tensor.data.to(**options, **changes) if options or changes else tensor

        return self._apply(moved)

    def float(self: M) -> M:
        return self.to(scalars.float32)

    def double(self: M) -> M:
        return self.to(scalars.float64)

    def half(self: M) -> M:
        return self.to(scalars.float16)

    def bfloat16(self: M) -> M:
        return self.to(scalars.bfloat16)

    def cpu(self: M) -> M:
        return self.to("cpu")

    def type(self: M, dst_type: Any) -> M:
        """Change the dtype of all parameters and buffers."""
        return self._apply(lambda tensor: tensor.data.type(dst_type))

    def cuda(self: M, device: Any = None) -> M:
        """Move to a GPU.  Raises OperatorError without one."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Replace all parameters and buffers by uninitialized ones on the device."""
        return self._apply(
            lambda tensor: call("empty_like", (tensor.data,), {"device": scalars.device(device)}), recurse
        )

    def share_memory(self: M) -> M:
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """No effect: modules run eagerly; `torch.jit.script` compiles."""

    def _apply(self: M, fn: Callable[[Tensor], Any], recurse: bool = True) -> M:
        """Replace the values of every parameter and buffer by `fn` of them; they remain the same objects."""
        if recurse:
            for child in self.children():
                if isinstance(child, Module):
                    child._apply(fn)
                else:
                    replace_each((*child.parameters(), *child.buffers()), fn)
        replace_each([t for table in ("_parameters", "_buffers") for _, t in _tensors(self, table)], fn)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a pickled or copied module."""
        self.__dict__.update(state)
        for table in (*_TABLES, "_forward_hooks", "_forward_pre_hooks"):
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_other_hooks", {})
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    # -- text

    def extra_repr(self) -> str:
        """The text that `repr` shows in the module's parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {_indented(repr(child))}" for name, child in self._modules.items()]
        return shown(self._get_name(), extra, children)

    def _get_name(self) -> str:
        return type(self).__name__


def shown(name: str, extra: Iterable[str], children: Iterable[str]) -> str:
    """The text of a module, on one line without children."""
    lines = [*extra, *children]
    if list(extra) == lines and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def replace_each(tensors: Iterable[Tensor], fn: Callable[[Tensor], Any]) -> None:
    """Replace the values of tensors, and of their gradients, by `fn` of them."""
    for tensor in tensors:
        gradient = tensor._grad
        for each in (tensor,) if gradient is None else (tensor, gradient):
            new = fn(each)
            if new is not each:
                each.array, each._storage = new.array, new.memory


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


_KINDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("_parameters", Parameter, "parameters"), ("_modules", (Module, CompiledModule), "module"),
    ("_buffers", Buffer, "buffers"),
)  # fmt: skip
"""Table -> the class of values that are registered in it on assignment, and the table's word in messages."""
_ALLOWED: Final[dict[str, Any]] = {
    "_parameters": Parameter, "_buffers": Tensor, "_modules": (Module, CompiledModule),
}  # fmt: skip
"""Table -> the class of values that may replace an entry."""
_WANTED: Final = {
    "_parameters": "parameter '{}' (torch.nn.Parameter", "_buffers": "buffer '{}' (torch.nn.Buffer, torch.Tensor",
    "_modules": "child module '{}' (torch.nn.Module",
}  # fmt: skip
"""Table -> the description of an allowed value in error messages."""
