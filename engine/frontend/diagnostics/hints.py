"""Hints for mistakes of types and names.

In: the types, names and ranges that an error is about.  Out: hints.  The message of an error says what is wrong, in
PyTorch's words; hints say what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.lang.errors import did_you_mean
from engine.lang.source import SourceRange
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
    interface_gap,
    unwrap_optional,
)  # fmt: skip

Hints = tuple[str, ...]

_LONGEST: Final = 40
_NUMBERS: Final = frozenset([INT, FLOAT, COMPLEX, BOOL, NUMBER])
_CASTS: Final = {INT: "int", FLOAT: "float", COMPLEX: "complex", BOOL: "bool", STR: "str"}


def source_text(range: SourceRange | None, otherwise: str = "...") -> str:
    """The program's text of a value if it is short, else `otherwise`."""
    text = range.text if range is not None else ""
    return text if 0 < len(text) <= _LONGEST and "\n" not in text else otherwise


def narrowing_hints(type: Type, text: str) -> Hints:
    """Hints for a value that may be None or of several types."""
    if isinstance(type, OptionalType):
        return (f"{text} may be None; make sure that it is not: `if {text} is not None:`",)
    if isinstance(type, UnionType) or type is ANY:
        return (f"{text} may be of several types; tell them apart with isinstance",)
    return ()


def conversion_hints(actual: Type, wanted: Type, range: SourceRange | None) -> Hints:
    """Hints to convert a value of one type to another."""
    text = source_text(range)
    inner = unwrap_optional(wanted)
    doubtful = narrowing_hints(actual, text)
    if doubtful or wanted is ANY:
        return doubtful
    if isinstance(inner, InterfaceType) and isinstance(actual, (ClassType, InterfaceType)):
        return (interface_gap(actual, inner) or "",)
    if actual is NONE:
        return (f"where None may stand, the type is Optional[{inner.annotation_str}]",)
    if actual is STR and text[:1] in ("'", '"'):
        return ()
    if inner in _CASTS and (actual in _NUMBERS or isinstance(actual, TensorType) or actual is STR):
        return (f"convert it: {_CASTS[inner]}({text})",)
    if isinstance(inner, TensorType) and actual in _NUMBERS:
        return (f"make a tensor of it: torch.tensor({text})",)
    if isinstance(inner, ListType) and actual.is_subtype_of(inner.element):
        return (f"put it into a list: [{text}]",)
    if type(actual) is type(inner) and is_unannotated(actual):
        return (f"annotate the variable where it is made: `{_example(inner)}`",)
    return ()


def is_unannotated(type: Type) -> bool:
    """True for the type that an empty list or dict without an annotation has."""
    inner = type.element if isinstance(type, ListType) else type.value if isinstance(type, DictType) else None
    return isinstance(inner, TensorType)


def _example(type: Type) -> str:
    return f"x: {type.annotation_str} = {'[]' if isinstance(type, ListType) else '{}'}"


# -- names

_METHODS: Final[Mapping[type[Type], Mapping[str, str]]] = {
    ListType: {
        "push": "a list grows with append", "add": "a list grows with append", "push_back": "a list grows with append",
        "length": "the length is len(x)", "size": "the length is len(x)", "shape": "a list has no shape; it has len(x)",
        "map": "write a comprehension: [f(i) for i in x]", "filter": "write a loop that appends what fits",
        "join": "the separator has the method: ', '.join(x)", "to": "make a tensor of it first: torch.tensor(x)",
    },
    DictType: {
        "has_key": "write `key in x`", "iteritems": "write x.items()", "iterkeys": "write x.keys()",
        "itervalues": "write x.values()", "length": "the number of keys is len(x)",
        "size": "the number of keys is len(x)",
        "append": "write x[key] = value", "add": "write x[key] = value", "fromkeys": "write a comprehension",
    },
    TensorType: {
        "append": "write torch.cat([x, y])", "extend": "write torch.cat([x, y])", "length": "write x.numel() or len(x)",
        "astype": "write x.to(torch.float32)", "copy": "write x.clone()", "np": "TorchScript has no NumPy",
        "nelement": "write x.numel()", "bool": "write x.to(torch.bool)", "backward_": "write x.backward()",
        "register_hook": "hooks belong to Python: register it outside of the compiled code",
        "numpy": "TorchScript has no NumPy arrays; return the tensor", "grad_fn": "TorchScript does not see the tape",
    },
}  # fmt: skip
"""Methods that other libraries and languages have, and older versions had -> what to write instead."""


def attribute_hints(type: Type, name: str, known: Iterable[str], owner: str) -> Hints:
    """Hints for `owner.name`, where values of the type have no such attribute."""
    inner = unwrap_optional(type)
    known_otherwise = _METHODS.get(inner.__class__, {}).get(name)
    if known_otherwise is not None:
        return (known_otherwise,)
    return narrowing_hints(type, owner) or did_you_mean(name, known)


_NAMES: Final = {
    **dict.fromkeys(("np", "numpy"), "TorchScript has no NumPy; write it with torch"),
    **dict.fromkeys(("self", "cls"), "only a method has it: make it the first parameter"),
    **dict.fromkeys(("true", "false"), "write True and False"),
    **dict.fromkeys(("null", "nil", "nullptr", "none"), "write None"),
    "nn": "write torch.nn", "F": "write torch.nn.functional", "os": "compiled code has no operating system",
    "random": "write torch.rand(()) or torch.randint(0, n, (1,))", "time": "compiled code has no clock",
    "functools": "write a loop", "itertools": "write loops",
    "nan": "write float('nan')", "inf": "write float('inf')", "pi": "write math.pi", "this": "write self",
}  # fmt: skip


def name_hints(name: str, known: Iterable[str]) -> Hints:
    """Hints for an undefined name."""
    return (_NAMES[name],) if name in _NAMES else did_you_mean(name, known)


_TYPES: Final = {
    **dict.fromkeys(("set", "Set", "frozenset", "FrozenSet"), "there are no sets: write List[T], or Dict[T, bool]"),
    **dict.fromkeys(("Callable", "function"), "functions are no values: call the function by its name"),
    **dict.fromkeys(("object", "any"), "write Any"),
    **dict.fromkeys(("string", "String", "unicode"), "write str"),
    **dict.fromkeys(("integer", "Int", "long", "int64", "int32"), "write int"),
    **dict.fromkeys(("double", "Float", "float32", "float64"), "write float"),
    **dict.fromkeys(("boolean", "Bool"), "write bool"),
    **dict.fromkeys(("Sequence", "Iterable", "Collection", "Iterator", "array", "deque"), "write List[T]"),
    **dict.fromkeys(("Mapping", "OrderedDict", "defaultdict", "Counter"), "write Dict[K, V]"),
    **dict.fromkeys(("ndarray", "FloatTensor", "LongTensor", "Variable", "Parameter", "DataFrame"), "write Tensor"),
    **dict.fromkeys(("List", "Optional", "Future", "Await", "Sequence"), "say of what, as in `{}[int]`"),
    "Dict": "say of what, as in `Dict[str, int]`", "dict": "say of what, as in `Dict[str, int]`",
    "Tuple": "say of what, as in `Tuple[int, str]`", "Union": "say of what, as in `Union[int, str]`",
    "bytes": "write str", "bytearray": "write str", "range": "write List[int]", "Literal": "write str or int",
    "TypeVar": "there are no generic functions; write one for each type", "Type": "types are no values",
    "date": "pass it as a str or an int", "device": "write torch.device", "dtype": "write torch.dtype",
}  # fmt: skip


def type_hints(name: str, known: Iterable[str]) -> Hints:
    """Hints for an annotation that names no type."""
    last = name.rpartition(".")[2]
    if last in _TYPES:
        return (_TYPES[last].replace("{}", last),)
    return did_you_mean(name, known) or did_you_mean(last, known)


_AS_VALUE: Final = {
    "function": "a function cannot be passed on or stored; call it by its name",
    "method": "a method cannot be passed on or stored; call it",
    "class": "a class cannot be passed on or stored; call it to make an object",
    "range": "a range can only be looped over; a list is [i for i in range(n)]",
    "module": "name something in it",
    "Python exception": "exceptions can only be raised",
    "exception message": "exceptions can only be raised",
}


def value_hints(kind: str) -> Hints:
    """Hints for something that is no first-class value."""
    return (_AS_VALUE[kind],) if kind in _AS_VALUE else ()


def unpacking_hints(type: Type, text: str) -> Hints:
    """Hints for unpacking something that has no fixed number of parts."""
    if isinstance(type, TensorType):
        return (f"write {text}.unbind(); its length is checked when it runs",)
    return narrowing_hints(type, text)


def iteration_hints(type: Type, range: SourceRange | None) -> Hints:
    """Hints for a loop over something that has no items."""
    text = source_text(range, "n")
    if type is INT:
        return (f"to count, write range({text})",)
    return narrowing_hints(type, text)
