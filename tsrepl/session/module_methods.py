"""Modules at the prompt as in Python: `m.layer1[0]`, `m.eval()`, `m.to(torch.float64)`, `w = m.state_dict()`.

In: an entry that is nothing but a path to a module, or a call of a method that Python's modules have.  Out: replies.
TorchScript knows neither, so such entries are answered here, on the module itself; a method that the program has of
its own is the program's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import children_of, is_module
from engine.aten.values.tensor import Tensor
from engine.ir.constants import type_of
from engine.lang.counts import counted
from engine.lang.deferred import deferred
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME
from engine.lang.types import STR, TENSOR, DictType, ListType, Type
from tsrepl.session.failures import UsageError
from tsrepl.session.replies import Reply, ReportReply, Section, TextReply
from tsrepl.session.workspace import LAST, Workspace

if TYPE_CHECKING:
    from engine.torch.jit.scripting import script_module
else:
    script_module = deferred("engine.torch.jit.scripting.script_module")

_PATH: Final = r"[A-Za-z_]\w*(?:\.\w+|\[-?\d+\])*?"
_PLACE: Final = re.compile(rf"(?P<path>{_PATH})(?:\[-?\d+\]|\.\d+)(?:\.\w+|\[-?\d+\])*")
_CALL: Final = re.compile(rf"(?:(?P<target>[A-Za-z_]\w*)\s*=\s*)?(?P<path>{_PATH})\.(?P<method>\w+)\((?P<given>.*)\)")
_PART: Final = re.compile(r"\.?(\w+)|\[(-?\d+)\]")
_DTYPES: Final = {**DTYPE_BY_NAME, **DTYPE_ALIASES}

_CHANGES: Final = frozenset(
    "eval train to half float double bfloat16 cpu cuda requires_grad_ zero_grad".split(),
)
"""Methods that change the module and give it back."""


def module_entry(workspace: Workspace, text: str) -> Iterator[Reply] | None:
    """The replies to an entry that is a path to a module or a call of one of Python's methods; else None."""
    text = text.strip()
    if _PLACE.fullmatch(text):
        found = value_at(workspace, text)
        return None if found is None else iter([workspace.show(*found)])
    match = _CALL.fullmatch(text)
    if match is None or match["method"] not in _METHODS:
        return None
    found = value_at(workspace, match["path"])
    if found is None or not is_module(found[0]) or match["method"] in found[0].type.methods:
        return None
    return _called(workspace, match, found[0])


def value_at(workspace: Workspace, path: str) -> tuple[Any, Type] | None:
    """The value at a path into a variable, with its type; None where there is none."""
    name, *parts = (match[1] or int(match[2]) for match in _PART.finditer(path))
    variable = workspace.variables.get(str(name))
    value = None if variable is None else variable.value
    for part in parts:
        if not isinstance(value, Object):
            return None
        value = _inside(value, part)
    return None if value is None else (value, type_of(value))


def _inside(owner: Object, part: str | int) -> Any:
    if isinstance(part, str):
        return owner.get(part) if owner.type.attribute(part) is not None else None
    children = children_of(owner)
    return children[part][1] if -len(children) <= part < len(children) else None


def _called(workspace: Workspace, match: re.Match[str], module: Object) -> Iterator[Reply]:
    path, method, target = match["path"], match["method"], match["target"]
    value, type, reply = _METHODS[method](module, path, method, _arguments(match["given"]))
    workspace.bind(target or LAST, value, type)
    if not target:
        yield reply


_Answer = tuple[Any, Type, Reply]
_Arguments = tuple[list[Any], dict[str, Any]]


def _changed(module: Object, path: str, method: str, given: _Arguments) -> _Answer:
    args, kwargs = given
    try:
        getattr(script_module.wrap(module), method)(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{path}.{method}: {error}") from None
    return module, module.type, TextReply(f"{method} has changed {path}", "done")


def _tensors(module: Object, path: str, method: str, given: _Arguments) -> _Answer:
    _check_none(method, given)
    named = method if method == "state_dict" or method.startswith("named_") else f"named_{method}"
    found: dict[str, Tensor] = dict(getattr(script_module.wrap(module), named)().items() if named == "state_dict" else
                                    getattr(script_module.wrap(module), named)())  # fmt: skip
    rows = tuple((name, each.dtype.name, " × ".join(map(str, each.shape)) or "scalar") for name, each in found.items())
    reply = _table(path, method, ("name", "dtype", "shape"), rows, "tensor")
    if named == method:
        return found, DictType(STR, TENSOR), reply
    return list(found.values()), ListType(TENSOR), reply


def _modules(module: Object, path: str, method: str, given: _Arguments) -> _Answer:
    _check_none(method, given)
    named = method if method.startswith("named_") else f"named_{method}"
    found = dict(getattr(script_module.wrap(module), named)())
    rows = tuple((name or "(the module)", each.original_name) for name, each in found.items())
    return list(found), ListType(STR), _table(path, method, ("path", "class"), rows, "module")


def _table(path: str, method: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], noun: str) -> ReportReply:
    found = tuple(rows)
    return ReportReply("", (Section(f"{path}.{method}(): {counted(len(found), noun)}", columns, found),))


_METHODS: Final[dict[str, Callable[[Object, str, str, _Arguments], _Answer]]] = {
    **dict.fromkeys(_CHANGES, _changed),
    **dict.fromkeys("state_dict parameters named_parameters buffers named_buffers".split(), _tensors),
    **dict.fromkeys("modules named_modules children named_children".split(), _modules),
}


def _check_none(method: str, given: _Arguments) -> None:
    if any(given):
        raise UsageError(f"{method} takes no arguments at the prompt")


def _arguments(text: str) -> _Arguments:
    """The arguments of a call: literals, and dtypes by name.  Raises UsageError."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError:
        raise UsageError(f"'{text}' is no list of arguments") from None
    assert isinstance(call, ast.Call)
    named = {each.arg: _argument(each.value) for each in call.keywords if each.arg is not None}
    return [_argument(each) for each in call.args], named


def _argument(tree: ast.expr) -> Any:
    if isinstance(tree, ast.Attribute) and ast.unparse(tree.value) == "torch" and tree.attr in _DTYPES:
        return _DTYPES[tree.attr]
    try:
        return ast.literal_eval(tree)
    except ValueError:
        hint = "write a literal, or a dtype such as torch.float64"
        raise UsageError(f"'{ast.unparse(tree)}' cannot be an argument here", hints=(hint,)) from None
