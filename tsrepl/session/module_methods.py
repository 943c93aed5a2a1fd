"""Modules at the prompt as in Python: `m.layer1[0](x)`, `m.eval()`, `for p in m.parameters(): ...`.

In: the statements of an entry, and the session's variables.  Out: statements that TorchScript understands, with the
values of the calls in them; and for a call that is a statement of its own, its value and a reply.  A method that the
program has of its own is the program's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import children_of, is_module
from engine.aten.values.tensor import Tensor
from engine.frontend.syntax.name_uses import COMPREHENSIONS, names_of
from engine.frontend.syntax.tree import Tree, variables
from engine.frontend.syntax.views import Apply, Assign, Const, ExprStmt, Select, StringLiteral, Subscript, Var
from engine.lang.counts import counted
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME
from engine.lang.types import STR, TENSOR, ClassType, DictType, ListType, TupleType, Type
from tsrepl.session.failures import UsageError
from tsrepl.session.replies import Reply, ReportReply, Section, TextReply

if TYPE_CHECKING:
    from engine.torch.jit.scripting import python_program, script_module
else:
    python_program = deferred("engine.torch.jit.scripting.python_program")
    script_module = deferred("engine.torch.jit.scripting.script_module")

_DTYPES: Final = {**DTYPE_BY_NAME, **DTYPE_ALIASES}
_HIDDEN: Final = "$part"
"""The variables that stand for calls begin so: no program can write them."""


class Variable(Protocol):
    """A variable of the session."""

    value: Any
    type: Type


class Answer(NamedTuple):
    """The value of a call on a module, with its type, and the reply where the call stands alone."""

    value: Any
    type: Type
    reply: Reply


class Called(NamedTuple):
    """A statement that is a call on a module; `target` is the name that it gives the value, "" if none."""

    answer: Answer
    target: str


@dataclass(slots=True)
class Plain:
    """Statements as TorchScript takes them; `found` are (value, type) of the hidden variables in them."""

    variables: Mapping[str, Variable]
    found: dict[str, tuple[Any, Type]] = field(default_factory=dict)

    def tree(self, tree: Tree) -> Tree:
        """The tree with names for numbers of parts, and hidden variables for calls.

        Raises CompileError, UsageError.
        """
        inner = self.without(variables(tree.trees[-2])) if tree.kind in COMPREHENSIONS else self
        children = tuple(inner.tree(each) if isinstance(each, Tree) else each for each in tree.children)
        if any(new is not old for new, old in zip(children, tree.children, strict=True)):
            tree = Tree(tree.kind, children, tree.range)
        if tree.kind == Subscript.kind:
            return self._part(tree)
        return self._call(tree) if tree.kind == Apply.kind else tree

    def without(self, names: Sequence[str]) -> Plain:
        """The same where names stand for something else, as in a comprehension."""
        return Plain({name: each for name, each in self.variables.items() if name not in names}, self.found)

    def _part(self, tree: Tree) -> Tree:
        """`m.layers[0]` as the attribute that it is."""
        owner, key = object_at(Subscript(tree).value, self.variables), _key_of(tree)
        if key is None or owner is None or "__getitem__" in owner.type.methods:
            return tree
        names = [name for name, _ in children_of(owner)]
        if isinstance(key, int) and not -len(names) <= key < len(names):
            raise CompileError(f"there is no part {key}: {counted(len(names), 'module')} inside", tree.range)
        if isinstance(key, str) and key not in names:
            raise CompileError(f"there is no part '{key}'", tree.range, hints=(f"there is {', '.join(names)}",))
        return Select.make(tree.range, Subscript(tree).value, names[key] if isinstance(key, int) else key)

    def _call(self, tree: Tree) -> Tree:
        """`m.parameters()` as a variable with its value."""
        module, method = _method_of(tree, self.variables)
        if module is None:
            return tree
        if method in _REFUSED:
            raise CompileError(f"modules at the prompt have no {method}", tree.range, hints=(_REFUSED[method],))
        if method in _ALONE:
            raise CompileError(f"{method} stands alone, in an entry of its own", tree.range, hints=(_why(method),))
        if method not in _METHODS:
            python_program.MODULES.method(module.type, method)  # compiled now, if only its class in Python has it
            return tree
        name = f"{_HIDDEN}{len(self.found)}"
        answer = _answer(module, tree, self.variables)
        self.found[name] = answer.value, answer.type
        return Var.make(tree.range, name)


def plain(statements: Sequence[Tree], known: Mapping[str, Variable]) -> tuple[list[Tree], dict[str, Any]]:
    """The statements as TorchScript takes them, and (value, type) of the hidden variables in them.

    Raises CompileError, UsageError.
    """
    if not any(is_module(each.value) for each in known.values()):
        return list(statements), {}
    names = names_of(statements)
    made = Plain(known).without([*names.assigned, *names.counters])
    return [made.tree(each) for each in statements], made.found


def called(statement: Tree, variables: Mapping[str, Variable]) -> Called | None:
    """The answer to a statement that is a call on a module, or gives its value a name; else None.

    Raises CompileError, UsageError.
    """
    call, target = _alone(statement)
    if call is None or call.kind != Apply.kind:
        return None
    callee = Apply(call).callee
    if callee.kind == Select.kind:
        owner = Plain(variables).tree(Select(callee).value)
        callee = Select.make(callee.range, owner, Select(callee).name)
        call = Tree(call.kind, (callee, *call.children[1:]), call.range)
    module, method = _method_of(call, variables)
    if module is None or method not in _METHODS:
        return None
    return Called(_answer(module, call, variables), target)


def _alone(statement: Tree) -> tuple[Tree | None, str]:
    """The expression of a statement, and the one name that it is assigned to."""
    if statement.kind == ExprStmt.kind:
        return ExprStmt(statement).expression, ""
    if statement.kind == Assign.kind and Assign(statement).annotation is None:
        targets = Assign(statement).targets
        if len(targets) == 1 and targets[0].kind == Var.kind:
            return Assign(statement).value, Var(targets[0]).name
    return None, ""


def object_at(tree: Tree, variables: Mapping[str, Variable]) -> Object | None:
    """The module at a path into a variable; None for anything else."""
    found: Any = None
    if tree.kind == Var.kind and Var(tree).name in variables:
        found = variables[Var(tree).name].value
    elif tree.kind == Select.kind:
        owner, name = object_at(Select(tree).value, variables), Select(tree).name
        found = owner.get(name) if owner is not None and owner.type.attribute(name) is not None else None
    return found if is_module(found) else None


def path_of(tree: Tree) -> str:
    """The path that a tree of names is: `m.layers.0`; "" for another tree."""
    if tree.kind == Var.kind:
        return Var(tree).name
    owner = path_of(Select(tree).value) if tree.kind == Select.kind else ""
    return f"{owner}.{Select(tree).name}" if owner else ""


def methods_of(type: ClassType) -> list[str]:
    """The methods of Python's modules that a module of this type answers to at the prompt."""
    return [name for name in _METHODS if name not in type.methods and type.attribute(name) is None]


def _key_of(tree: Tree) -> int | str | None:
    keys = Subscript(tree).subscripts
    if len(keys) != 1:
        return None
    key = keys[0]
    if key.kind == StringLiteral.kind:
        return StringLiteral(key).text
    value = Const(key).value if key.kind == Const.kind else None
    return value if isinstance(value, int) else None


def _method_of(tree: Tree, variables: Mapping[str, Variable]) -> tuple[Object | None, str]:
    """The module that a call is a method of, and the method's name, unless the program has one of that name."""
    callee = Apply(tree).callee
    module = object_at(Select(callee).value, variables) if callee.kind == Select.kind else None
    name = Select(callee).name if module is not None else ""
    is_own = module is not None and (name in module.type.methods or module.type.attribute(name) is not None)
    return (None if is_own else module), name


_Arguments = tuple[list[Any], dict[str, Any]]


def _answer(module: Object, call: Tree, variables: Mapping[str, Variable]) -> Answer:
    callee = Select(Apply(call).callee)
    method = callee.name
    given = call.range.source.text[callee.range.end : call.range.end]
    return _METHODS[method](module, path_of(callee.value), method, _arguments(given, variables))


def _changed(module: Object, path: str, method: str, given: _Arguments) -> Answer:
    args, kwargs = given
    try:
        getattr(script_module.wrap(module), method)(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{path}.{method}: {error}") from None
    return Answer(module, module.type, TextReply(f"{method} has changed {path}", "done"))


def _tensors(module: Object, path: str, method: str, given: _Arguments) -> Answer:
    _check_none(method, given)
    named = method if method == "state_dict" or method.startswith("named_") else f"named_{method}"
    listed = getattr(script_module.wrap(module), named)()
    found: dict[str, Tensor] = dict(listed.items() if named == "state_dict" else listed)
    rows = tuple((name, each.dtype.name, " × ".join(map(str, each.shape)) or "scalar") for name, each in found.items())
    reply = _table(path, method, ("name", "dtype", "shape"), rows, "tensor")
    if method == "state_dict":
        return Answer(found, DictType(STR, TENSOR), reply)
    if named == method:
        return Answer(list(found.items()), ListType(TupleType((STR, TENSOR))), reply)
    return Answer(list(found.values()), ListType(TENSOR), reply)


def _modules(module: Object, path: str, method: str, given: _Arguments) -> Answer:
    _check_none(method, given)
    named = method if method.startswith("named_") else f"named_{method}"
    listed = [(name, each.original_name) for name, each in getattr(script_module.wrap(module), named)()]
    rows = tuple((name or "(the module)", kind) for name, kind in listed)
    names = [name for name, _ in listed]
    return Answer(names, ListType(STR), _table(path, method, ("path", "class"), rows, "module"))


def _table(path: str, method: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], noun: str) -> Reply:
    return ReportReply("", (Section(f"{path}.{method}(): {counted(len(rows), noun)}", columns, rows),))


CHANGES: Final = "eval train to half float double bfloat16 cpu cuda requires_grad_ zero_grad".split()
"""Methods that change the module and give it back."""
_LISTS: Final = "modules named_modules children named_children".split()
"""Methods that list modules, which no list of TorchScript can hold: their names stand for them."""
_ALONE: Final = frozenset([*CHANGES, *_LISTS])
_METHODS: Final[dict[str, Callable[[Object, str, str, _Arguments], Answer]]] = {
    **dict.fromkeys(CHANGES, _changed),
    **dict.fromkeys("state_dict parameters named_parameters buffers named_buffers".split(), _tensors),
    **dict.fromkeys(_LISTS, _modules),
}
_FIXED: Final = "a program's modules are fixed; m.name = value sets an attribute that is there"
_WATCHED: Final = "%tap m part -- m(x) shows what comes out of a part, %debug m(x) stops in it"
_REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys("add_module register_module register_buffer register_parameter".split(), _FIXED),
    **dict.fromkeys("register_forward_hook register_forward_pre_hook register_full_backward_hook".split(), _WATCHED),
    "apply": "loop over m.parameters(), with torch.no_grad()",
    "load_state_dict": "with torch.no_grad(): m.weight.copy_(new) takes values over, one by one",
    "compile": "it is compiled already: %explain m(x) tells how it runs",
    "get_submodule": "write the path: m.layers[0]",
    "get_parameter": "write the path: m.layers[0].weight",
    "get_buffer": "write the path: m.layers[0].running_mean",
    "save": "write %save m path",
}  # fmt: skip
"""Methods that Python's modules have and modules here do not -> the hint."""


def _why(method: str) -> str:
    if method in _LISTS:
        return "modules differ in type, so no list of a program holds them"
    return "it changes the module: give it an entry before this one"


def _check_none(method: str, given: _Arguments) -> None:
    if any(given):
        raise UsageError(f"{method} takes no arguments at the prompt")


def _arguments(text: str, variables: Mapping[str, Variable]) -> _Arguments:
    """The arguments of a call: literals, dtypes by name, variables.  Raises UsageError."""
    try:
        call = parse_python_expression(f"f{text}")
    except SyntaxError:
        raise UsageError(f"'{text}' is no list of arguments") from None
    assert isinstance(call, ast.Call)
    named = {each.arg: _argument(each.value, variables) for each in call.keywords if each.arg is not None}
    return [_argument(each, variables) for each in call.args], named


def _argument(tree: ast.expr, variables: Mapping[str, Variable]) -> Any:
    if isinstance(tree, ast.Attribute) and ast.unparse(tree.value) == "torch" and tree.attr in _DTYPES:
        return _DTYPES[tree.attr]
    if isinstance(tree, ast.Name) and tree.id in variables:
        return variables[tree.id].value
    try:
        return ast.literal_eval(tree)
    except ValueError:
        hint = "write a literal, the name of a variable, or a dtype such as torch.float64"
        raise UsageError(f"'{ast.unparse(tree)}' cannot be an argument here", hints=(hint,)) from None
