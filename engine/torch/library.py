"""`torch.library`: operators that are given from Python.

In: a schema, and functions that compute (for a type of device, or for all), that differentiate, that tell the results'
sizes.  Out: an operator of the table, so that `torch.ops`, programs, traces and archives have it like any other.

    library = torch.library.Library("mine", "DEF")
    library.define("scaled(Tensor x, float by) -> Tensor")
    library.impl("scaled", lambda x, by: x * by, "CPU")
    torch.ops.mine.scaled(torch.ones(2), 3.0)

Operators of a Library are gone with it.  Namespaces of the engine's own operators take new names; a kernel in the
place of one of theirs is refused.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from engine.aten.autograd import is_grad_enabled, no_grad
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.executor.conversion.from_python import Mismatch, from_python
from engine.lang import scalars
from engine.lang.errors import ArgumentError, OperatorDtypeError, OperatorError, SchemaError, did_you_mean
from engine.lang.schema import FunctionSchema
from engine.lang.schema_parser import parse_schema
from engine.torch import ops
from engine.torch.amp.autocast_mode import autocast, is_autocast_enabled
from engine.torch.operator_gradients import Gradient, differentiated, undifferentiable
from engine.torch.operator_schemas import infer_schema as infer_schema

Kernel = Callable[..., Any]
_REGISTERED: Final[dict[str, Operator]] = {}
"""The operators of libraries, by qualified name (`mine::scaled`, `mine::scaled.out`)."""
_DEFINED: Final[set[str]] = set()
"""Namespaces that a Library of kind DEF has."""
_KEPT: Final[dict[str, Library]] = {}
"""Libraries of functions of this module that were not given one, by namespace; they stay."""


class Operator:
    """An operator of a library: its entry of the table, once it is defined, and its functions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entry: Op | None = None
        self.kernels: dict[str, Kernel] = {}
        self.disabled: set[str] = set()
        self.fake: Kernel | None = None
        self.gradient: Gradient | None = None
        self.needs_gradient = False
        """True if kernels are no compositions: without a gradient the backward pass raises."""

    def __call__(self, *args: Any) -> Any:
        """The results for all arguments of the schema, recorded for gradients as the operator says.

        A program that was compiled before the library was withdrawn runs what has been defined in its place.
        Raises OperatorError where that is nothing, or has another schema.
        """
        if _REGISTERED.get(self.name) is not self:
            return self._successor()(*args)
        if not (is_grad_enabled() and any(map(_requires_grad, args))):
            return self.compute(args)
        if (autograd := self._kernel_of(_AUTOGRAD, args)) is not None:
            return self._checked(self._called(autograd, args))
        if self.gradient is not None:
            return differentiated(self.schema, self.gradient, self.compute, args)
        if self.needs_gradient:
            return undifferentiable(self.schema, self.compute, args)
        return self._checked(self._called(self._kernel(args), args))

    @property
    def schema(self) -> FunctionSchema:
        assert self.entry is not None
        return self.entry.schema

    def _successor(self) -> Operator:
        """The operator of this name now that this one is withdrawn."""
        now = _REGISTERED.get(self.name)
        if now is None or now.entry is None:
            raise OperatorError(
                f"operator {self.name} is gone, as is the library that defined it",
                hints=("define it again, and keep its Library for as long as programs call it",),
            )
        if now.schema != self.schema:
            raise OperatorError(
                f"operator {self.name} was compiled as {self.schema}, and is {now.schema} now",
                hints=("script the program again, or load its archive again",),
            )
        return now

    def compute(self, args: Sequence[Any]) -> Any:
        """The results, without history."""
        with no_grad():
            return self._checked(self._called(self._kernel(args), args))

    def _kernel(self, args: Sequence[Any]) -> Kernel:
        """The kernel for the device of the tensors.  Raises NotImplementedError."""
        kernel = self._kernel_of((*_PLAIN, _IMPLICIT), args)
        if kernel is None:
            device = _device(args)
            hints = [f"it has kernels for {', '.join(sorted(self.kernels)) or 'no device'}"]
            hints.append(f'give it one: torch.library.register_kernel("{self.name}", "{device}", function)')
            raise OperatorDtypeError(f"operator {self.name} has no kernel for device '{device}'", hints=hints)
        return kernel

    def _kernel_of(self, keys: Sequence[str], args: Sequence[Any]) -> Kernel | None:
        device = _device(args).upper()
        names = (key.format(device) for key in keys)
        return next((self.kernels[name] for name in names if name in self.kernels and name not in self.disabled), None)

    def _called(self, kernel: Kernel, args: Sequence[Any]) -> Any:
        """The kernel's result; arguments at their defaults that it does not name are left out."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        parameters = inspect.signature(kernel).parameters.values()
        takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        names = {p.name for p in parameters} if all(p.kind is not p.VAR_KEYWORD for p in parameters) else None
        for argument, value in zip(self.schema.arguments, args, strict=True):
            if argument.declared.startswith("ScalarType") and isinstance(value, int):
                value = scalars.DTYPE_BY_NUMBER[value]
            is_default = argument.has_default and not isinstance(value, Tensor) and value == argument.default
            if argument.kwarg_only:
                if not (is_default and names is not None and argument.name not in names):
                    named[argument.name] = value
            elif takes_any or len(positional) < count or not is_default:
                positional.append(value)
        return kernel(*positional, **named)

    def _checked(self, result: Any) -> Any:
        """The result as the schema says.  Raises ArgumentError for any other."""
        returns = self.schema.returns
        values = (result,) if len(returns) == 1 else () if result is None else result
        if not isinstance(values, (tuple, list)) or len(values) != len(returns):
            raise ArgumentError(
                f"operator {self.name} returned {_told(result)}, where {self.schema} has {len(returns)}"
            )
        try:
            made = tuple(from_python(each.type)(value) for each, value in zip(returns, values, strict=True))
        except Mismatch as error:
            raise ArgumentError(
                f"operator {self.name} returned {_told(result)}, which does not fit {self.schema}",
                hints=[str(error)] if str(error) else [],
            ) from None
        return made[0] if len(made) == 1 else made or None


_IMPLICIT: Final = "CompositeImplicitAutograd"
_PLAIN: Final = ("{}", "CompositeExplicitAutograd", "BackendSelect")
_AUTOGRAD: Final = ("Autograd{}", "Autograd")
_KEYS: Final = frozenset(
    {"CPU", "CUDA", "Meta", _IMPLICIT, *_PLAIN[1:], *(f"Autograd{d}" for d in ("", "CPU", "CUDA"))}
)
"""The dispatch keys for which there may be kernels; those for Meta are kept as rules of results without elements."""


def _requires_grad(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_requires_grad, value))
    return isinstance(value, Tensor) and value.requires_grad


def _device(args: Sequence[Any]) -> str:
    """The type of device of the first tensor, "cpu" without one."""
    for value in args:
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(part, Tensor):
                return str(part.device.type)
    return "cpu"


def _told(result: Any) -> str:
    if isinstance(result, (tuple, list)):
        return f"{type(result).__name__}({', '.join(type(part).__name__ for part in result)})"
    return "nothing" if result is None else f"a {type(result).__name__}"


class Library:
    """Operators of one namespace, or kernels for some: `kind` is DEF, FRAGMENT (more of a namespace), or IMPL."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; it is DEF, FRAGMENT or IMPL")
        if ns in _RESERVED and kind != "FRAGMENT":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in _DEFINED:
            raise SchemaError(
                f"Only a single Library of kind DEF can be used to register the namespace {ns}",
                hints=('Library(ns, "FRAGMENT") adds to a namespace that there is',),
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._own: list[tuple[str, str]] = []
        if kind == "DEF":
            _DEFINED.add(ns)
        self._finalizer = weakref.finalize(self, _withdraw, ns if kind == "DEF" else None, self._own)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema without namespace; its name.  Raises SchemaError."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}; it is FROM_SCHEMA or CONSERVATIVE")
        if self.kind == "IMPL":
            raise SchemaError("a Library of kind IMPL defines no operators", hints=("make one of kind FRAGMENT",))
        text = schema if "::" in schema.partition("(")[0] else f"{self.ns}::{schema.strip()}"
        if not text.startswith(f"{self.ns}::"):
            raise SchemaError(f"a Library of namespace '{self.ns}' cannot define '{text.partition('(')[0]}'")
        name = text.partition("(")[0]
        parse_schema(text)
        operator = _REGISTERED.get(name) or Operator(name)
        facts: dict[str, Any] = {} if alias_analysis == "FROM_SCHEMA" else {"side_effects": True, "hands_on": True}
        entry = table.op(text, python=operator, data_dependent=True, nondeterministic=True, **facts)
        operator.entry, _REGISTERED[name] = entry, operator
        self._own.append((name, ""))
        return name

    def impl(
        self,
        op_name: Any,
        fn: Kernel,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Give the operator a kernel for the key (without one, for all, over operators that are differentiated).

        Raises RuntimeError where it has one, NotImplementedError for keys that stand for nothing here.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or _IMPLICIT
        if key not in _KEYS or with_keyset:
            raise NotImplementedError(
                f"kernels for the dispatch key {key} are never called here; the keys are {', '.join(sorted(_KEYS))}"
            )
        operator = _operator(_qualified(op_name, self.ns))
        if key == "Meta":
            operator.fake = fn
            return
        if key in operator.kernels and not allow_override:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python overriding "
                f"{operator.name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        operator.kernels[key] = fn
        self._own.append((operator.name, key))

    def fallback(self, fn: Kernel, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        raise NotImplementedError("one kernel for all operators is not supported; give each its own with impl")

    def _register_fake(self, op_name: Any, fn: Kernel, _stacklevel: int = 1, *, allow_override: bool = False) -> None:
        _operator(_qualified(op_name, self.ns)).fake = fn

    def _destroy(self) -> None:
        """Take back all that the library gave."""
        self._finalizer()


_RESERVED: Final = frozenset({"prim"})


def _withdraw(ns: str | None, own: list[tuple[str, str]]) -> None:
    """Take back a namespace, definitions (without key) and kernels."""
    for name, key in own:
        operator = _REGISTERED.get(name)
        if operator is None:
            continue
        operator.kernels.pop(key, None)
        if not key and operator.entry is not None:
            table.withdraw(operator.entry)
            del _REGISTERED[name]
            operator.kernels.clear()
            ops.forget(name.partition(".")[0])
    own.clear()
    if ns is not None:
        _DEFINED.discard(ns)


def _qualified(op: Any, ns: str = "") -> str:
    """The qualified name of an operator that is given by its name, as an overload or as a custom operator."""
    if isinstance(op, ops.OpOverload):
        name = op.name()
    elif isinstance(op, ops.OpOverloadPacket):
        name = op._name
    elif isinstance(op, CustomOpDef):
        name = op._qualname
    elif isinstance(op, str):
        name = op if "::" in op else f"{ns}::{op}"
    else:
        raise ValueError(f"{op!r} names no operator; give its name, an operator of torch.ops or a custom operator")
    name = name.removesuffix(".default")
    if "::" not in name or name.startswith("::"):
        raise ValueError(f"the name '{name}' has no namespace: write 'namespace::name'")
    if ns and not name.startswith(f"{ns}::"):
        raise RuntimeError(f"a Library of namespace '{ns}' has no operator {name}")
    return name


def _operator(name: str) -> Operator:
    """The operator, which may be defined later.  Raises RuntimeError for the engine's own."""
    if name not in _REGISTERED and table.overloads(name.partition(".")[0]):
        raise RuntimeError(
            f"{name} is an operator of the engine, which has its own kernels; an operator of another name can call it"
        )
    return _REGISTERED.setdefault(name, Operator(name))


def _defined(op: Any) -> Operator:
    name = _qualified(op)
    operator = _REGISTERED.get(name)
    if operator is None or operator.entry is None:
        hints = "".join(f"; {hint}" for hint in did_you_mean(name, _REGISTERED))
        raise RuntimeError(f"there is no operator {name} that was given from Python{hints}")
    return operator


def _library_of(name: str, lib: Library | None) -> Library:
    ns = name.partition("::")[0]
    return lib or _KEPT.setdefault(ns, Library(ns, "FRAGMENT"))


# ------------------------------------------------------------------ functions


def define(qualname: Any, schema: Any, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator: `define("mine::f", "(Tensor x) -> Tensor")`.  Raises SchemaError.

    With a Library first and the whole schema behind it, a decorator of the kernel for all.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis)

        def given(fn: Kernel) -> Kernel:
            qualname.impl(name, fn)
            return fn

        return given
    if not isinstance(qualname, str) or "::" not in qualname:
        raise ValueError(f"define(qualname, ...) needs a name 'namespace::name', and got {qualname!r}")
    if not schema.lstrip().startswith("("):
        raise ValueError(f"define(qualname, schema): a schema like '(Tensor x) -> Tensor', and not {schema!r}")
    _library_of(qualname, lib).define(qualname.partition("::")[2] + schema.lstrip())
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an operator a kernel for types of devices ("default" for all); without `func` a decorator."""
    if isinstance(qualname, Library):
        return _decorator(lambda fn: qualname.impl(types, fn, func or ""))
    name = _qualified(qualname)
    kinds = (types,) if isinstance(types, str) else types
    keys = ["CompositeExplicitAutograd" if kind == "default" else _key_of(kind) for kind in kinds or ("default",)]

    def register(fn: Kernel) -> None:
        for key in keys:
            _library_of(name, lib).impl(name, fn, key)

    return _decorator(register) if func is None else register(func)


def _key_of(device: str) -> str:
    if device.upper() not in _KEYS:
        raise ValueError(f"there are no kernels for the device type '{device}'; it is cpu, cuda or default")
    return device.upper()


def _decorator(register: Callable[[Kernel], Any]) -> Callable[[Kernel], Kernel]:
    def given(fn: Kernel) -> Kernel:
        register(fn)
        return fn

    return given


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator a kernel for types of devices (None for all); without `func` a decorator."""
    operator, kinds = _defined(op), (device_types,) if isinstance(device_types, str) else device_types

    def register(fn: Kernel) -> None:
        for key in ["CompositeExplicitAutograd"] if kinds is None else list(map(_key_of, kinds)):
            operator.kernels[key] = fn

    return _decorator(register) if func is None else register(func)


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None, **_: Any) -> Any:
    """Give an operator the rule for its results without elements, which `opcheck` compares; a decorator without `func`.

    A rule for an operator of the engine's, or of a library that is not there, changes nothing.
    """

    def register(fn: Kernel) -> Kernel:
        operator = _REGISTERED.get(_qualified(op))
        if operator is not None:
            operator.fake = fn
        return fn

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Kernel, /, *, setup_context: Kernel | None = None, lib: Library | None = None
) -> None:
    """Give an operator its gradient: `backward(ctx, *grads)`, and what keeps values for it in `ctx`.

    Raises RuntimeError for an operator that writes to its arguments, or that has a gradient of its own kernel.
    """
    operator = _defined(op)
    if any(argument.is_write for argument in operator.schema.arguments):
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator {operator.name}")
    operator.gradient = Gradient(backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """A rule for `vmap`, which is not needed: it calls operators for every index."""
    _qualified(op)
    return _decorator(lambda _: None) if func is None else None


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Cast floating-point tensors to the dtype in blocks of autocast for that type of device."""
    operator = _defined(op)
    kernels = {key: _casting(kernel, device_type, cast_inputs) for key, kernel in operator.kernels.items()}
    operator.kernels.update(kernels)


def _casting(kernel: Kernel, device_type: str, dtype: Any) -> Kernel:
    @functools.wraps(kernel)
    def cast(*args: Any, **kwargs: Any) -> Any:
        if not is_autocast_enabled(device_type):
            return kernel(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return kernel(*map(convert, args), **{name: convert(value) for name, value in kwargs.items()})

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(convert, value))
        return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

    return cast


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library for a `with` block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def get_kernel(op: Any, dispatch_key: Any) -> Kernel:
    """The kernel that an operator was given for the key.  Raises RuntimeError."""
    operator = _defined(op)
    if str(dispatch_key) not in operator.kernels:
        raise RuntimeError(f"operator {operator.name} has no kernel for {dispatch_key}")
    return operator.kernels[str(dispatch_key)]


# ------------------------------------------------------------------ custom operators


class CustomOpDef:
    """An operator that `custom_op` made of a function; called, it is the operator."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Kernel, tags: Any = None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._qualname = f"{namespace}::{name}"
        self.torch_path = f"torch.ops.{namespace}.{name}"
        functools.update_wrapper(self, fn, updated=())
        if (before := _OF_FUNCTIONS.pop(self._qualname, None)) is not None:
            before._destroy()
        self._lib = _OF_FUNCTIONS[self._qualname] = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema)
        _defined(self).needs_gradient = True

    @property
    def _opoverload(self) -> Any:
        entry = _defined(self).entry
        assert entry is not None
        return ops.OpOverload(entry)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Kernel, /) -> Kernel:
        register_fake(self, fn)
        return fn

    def register_autograd(self, backward: Kernel, /, *, setup_context: Kernel | None = None) -> None:
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        register_autocast(self, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Use the kernel for that type of device, or that for all, in a `with` block."""
        disabled, key = _defined(self).disabled, _key_of(device_type)
        before = key in disabled
        (disabled.discard if enabled else disabled.add)(key)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(key)


_OF_FUNCTIONS: Final[dict[str, Library]] = {}
"""The libraries of custom operators, by qualified name; they stay until the function is defined again."""


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function with annotations, a kernel for all devices or for some; a decorator without `fn`.

    Raises ValueError for a name without namespace and for annotations that no schema has.
    """
    if not isinstance(name, str) or "::" not in name:
        raise ValueError(f"custom_op(name, ...) needs a name 'namespace::name', and got {name!r}")

    def given(function: Kernel) -> CustomOpDef:
        written = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, _, own = name.partition("::")
        made = CustomOpDef(namespace, own, written, function)
        register_kernel(made, device_types, function)
        return made

    return given if fn is None else given(fn)


# ------------------------------------------------------------------ checks


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    test_utils: Any = ("test_schema", "test_autograd_registration", "test_faketensor"),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Test -> "SUCCESS" or the reason against it.  The operator writes only where its schema says, has a gradient where
    it takes what requires one, and gives results like those of its rule for results without elements.

    Raises RuntimeError with the first reason, unless `raise_exception` is False.
    """
    operator, wanted = _defined(op), (test_utils,) if isinstance(test_utils, str) else test_utils
    given, named = args, dict(kwargs or {})
    found: dict[str, str] = {}
    for test in wanted:
        reason = _CHECKS[test](operator, given, named) if test in _CHECKS else None
        if reason is not None and raise_exception:
            raise RuntimeError(f"opcheck(op, ...): {test} failed with {reason}")
        found[test] = reason or "SUCCESS"
    return found


def _run(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    assert operator.entry is not None
    return ops.OpOverload(operator.entry)(*args, **kwargs)


def _check_schema(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    written = {argument.name for argument in operator.schema.arguments if argument.is_write}
    names = [argument.name for argument in operator.schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    tensors = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    before = {name: (value._version, value.detach().clone()) for name, value in tensors.items()}
    results = _run(operator, args, kwargs)
    for name, value in tensors.items():
        version, content = before[name]
        changed = value._version != version or not bool((value.detach() == content).all())
        if changed and name not in written:
            return f"argument '{name}' is written to, and the schema does not say so: {operator.schema}"
        if any(each is value for each in _tensors(results)) and operator.schema.returns[0].alias is None:
            return f"argument '{name}' is a result, and the schema does not say so: {operator.schema}"
    return None


def _check_gradient(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    asks = any(map(_requires_grad, [*args, *kwargs.values()]))
    implicit = _IMPLICIT in operator.kernels or any(key.startswith("Autograd") for key in operator.kernels)
    if asks and operator.gradient is None and not implicit:
        return (
            "an argument requires grad, and the operator has no gradient: torch.library.register_autograd gives it one"
        )
    return None


def _check_fake(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    if operator.fake is None:
        return "there is no rule for results without elements: torch.library.register_fake gives it one"
    with no_grad():
        real, fake = list(_tensors(_run(operator, args, kwargs))), list(_tensors(operator.fake(*args, **kwargs)))
    shown = [[(tuple(t.shape), str(t.dtype)) for t in each] for each in (real, fake)]
    return None if shown[0] == shown[1] else f"the results are {shown[0]}, and those of the rule {shown[1]}"


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for part in value if isinstance(value, (list, tuple)) else ():
        yield from _tensors(part)


_CHECKS: Final[dict[str, Callable[[Operator, Sequence[Any], Mapping[str, Any]], str | None]]] = {
    "test_schema": _check_schema, "test_autograd_registration": _check_gradient, "test_faketensor": _check_fake,
}  # fmt: skip
