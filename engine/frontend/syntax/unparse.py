"""From trees back to text.

In: a `Tree`.  Out: text that reads as the same tree.  Operators get brackets wherever they are not alone, so that no
precedence needs to be known; comments, layout and the signs that Python folds otherwise are lost.  Properties are
written with their decorators, which only the extended grammar reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from engine.frontend.syntax.tree import BINARY_KINDS, UNARY_KINDS, Tree
from engine.frontend.syntax.views import (
    Apply,
    Assert,
    Assign,
    AugAssign,
    ClassDef,
    Decl,
    Def,
    Delete,
    DictComp,
    DictLiteral,
    ExprStmt,
    For,
    Global,
    If,
    ListComp,
    ListLiteral,
    Param,
    Property,
    Raise,
    Return,
    Select,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    TernaryIf,
    TupleLiteral,
    While,
    With,
    WithItem,
)
from engine.lang.interpreter_settings import deep_recursion

_INDENT: Final = "    "
_WORDS: Final = {"True": "True", "False": "False", "None": "None", "dots": "..."}
_SPELLED: Final = {"isnot": "is not", "unary_minus": "-", "not": "not "}
_ATOMS: Final = frozenset(
    ["variable", ".", "apply", "subscript", "string_literal", "list_literal", "tuple_literal", "dict_literal",
     "list_row", "dict_row", "list_comp", "dict_comp", *_WORDS]
)  # fmt: skip
"""Kinds that need no brackets as an operand, or before a `.`."""
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}


def unparse(tree: Tree) -> str:
    """The text of an expression, a statement or a definition; one of several lines ends with a newline."""
    with deep_recursion():
        if tree.kind in _BLOCKS or tree.kind in _SIMPLE:
            return "\n".join(_statement(tree)) + "\n"
        return _expression(tree)


# --- expressions ---


def _expression(tree: Tree) -> str:
    if tree.kind in _WORDS:
        return _WORDS[tree.kind]
    if tree.kind in BINARY_KINDS:
        left, right = map(_operand, tree.trees)
        return f"{left} {_SPELLED.get(tree.kind, tree.kind).strip()} {right}"
    if tree.kind in UNARY_KINDS:
        return _SPELLED.get(tree.kind, tree.kind) + _operand(tree.child(0))
    return _EXPRESSIONS[tree.kind](tree)


def _operand(tree: Tree) -> str:
    """The expression, in brackets unless it is one piece."""
    text = _expression(tree)
    return text if tree.kind in _ATOMS or (tree.kind == "const" and text[0] != "-") else f"({text})"


def _before_suffix(tree: Tree) -> str:
    """The expression as it may stand before `.name`, `(...)` and `[...]`: a number would swallow the dot."""
    return f"({_expression(tree)})" if tree.kind == "const" else _operand(tree)


def _commas(trees: Iterable[Tree]) -> str:
    return ", ".join(map(_expression, trees))


def _number(tree: Tree) -> str:
    return tree.text.replace("inf", "1e999")


def _string(tree: Tree) -> str:
    return "'" + "".join(map(_escaped, StringLiteral(tree).text)) + "'"


def _escaped(letter: str) -> str:
    if letter < " " or letter == "\x7f":
        return _ESCAPES.get(letter) or f"\\{ord(letter):03o}"
    return _ESCAPES.get(letter, letter)


def _select(tree: Tree) -> str:
    view = Select(tree)
    return f"{_before_suffix(view.value)}.{view.name}"


def _apply(tree: Tree) -> str:
    view = Apply(tree)
    keywords = [f"{attribute.name}={_expression(attribute.value)}" for attribute in view.attributes]
    return f"{_before_suffix(view.callee)}({', '.join([*map(_expression, view.inputs), *keywords])})"


def _subscript(tree: Tree) -> str:
    view = Subscript(tree)
    return f"{_before_suffix(view.value)}[{_commas(view.subscripts)}]"


def _slice(tree: Tree) -> str:
    view = SliceExpr(tree)
    start, end = ("" if bound is None else _operand(bound) for bound in (view.start, view.end))
    return f"{start}:{end}" + ("" if view.step is None else f":{_operand(view.step)}")


def _tuple(tree: Tree) -> str:
    inputs = TupleLiteral(tree).inputs
    return f"({_commas(inputs)}{',' if len(inputs) == 1 else ''})"


def _dict(tree: Tree) -> str:
    view = DictLiteral(tree)
    pairs = zip(view.keys, view.values, strict=True)
    return "{" + ", ".join(f"{_operand(key)}: {_operand(value)}" for key, value in pairs) + "}"


def _list_comp(tree: Tree) -> str:
    view = ListComp(tree)
    return f"[{_operand(view.element)} for {_operand(view.target)} in {_operand(view.iterable)}]"


def _dict_comp(tree: Tree) -> str:
    view = DictComp(tree)
    pair = f"{_operand(view.key)}: {_operand(view.value)}"
    return f"{{{pair} for {_operand(view.target)} in {_operand(view.iterable)}}}"


def _ternary(tree: Tree) -> str:
    view = TernaryIf(tree)
    return f"{_operand(view.true_value)} if {_operand(view.condition)} else {_operand(view.false_value)}"


_EXPRESSIONS: Final[dict[str, Callable[[Tree], str]]] = {
    "const": _number,
    "string_literal": _string,
    "variable": lambda tree: tree.child(0).text,
    ".": _select,
    "apply": _apply,
    "subscript": _subscript,
    "slice_expr": _slice,
    "starred": lambda tree: f"*{_operand(Starred(tree).value)}",
    "list_literal": lambda tree: f"[{_commas(ListLiteral(tree).inputs)}]",
    "tuple_literal": _tuple,
    "dict_literal": _dict,
    "list_row": lambda tree: f"[{tree.text}]",
    "dict_row": lambda tree: f"{{{tree.text}}}",
    "list_comp": _list_comp,
    "dict_comp": _dict_comp,
    "if_expr": _ternary,
}


# --- statements ---


def _statement(tree: Tree) -> list[str]:
    """The lines of a statement."""
    if tree.kind in _BLOCKS:
        return _BLOCKS[tree.kind](tree)
    return [_SIMPLE[tree.kind](tree)]


def _block(head: str, body: Iterable[Tree]) -> list[str]:
    lines = [_INDENT + line for tree in body for line in _statement(tree)]
    return [head, *(lines or [f"{_INDENT}pass"])]


def _assign(tree: Tree) -> str:
    view = Assign(tree)
    text = " = ".join(map(_expression, view.targets))
    if view.annotation is not None:
        text += f": {_expression(view.annotation)}"
    return text if view.value is None else f"{text} = {_expression(view.value)}"


def _aug_assign(tree: Tree) -> str:
    view = AugAssign(tree)
    return f"{_expression(view.target)} {view.operator}= {_expression(view.value)}"


def _assert(tree: Tree) -> str:
    view = Assert(tree)
    return f"assert {_expression(view.condition)}" + ("" if view.message is None else f", {_expression(view.message)}")


def _if(tree: Tree) -> list[str]:
    view = If(tree)
    lines = _block(f"if {_expression(view.condition)}:", view.true_branch)
    return lines + (_block("else:", view.false_branch) if view.false_branch else [])


def _while(tree: Tree) -> list[str]:
    return _block(f"while {_expression(While(tree).condition)}:", While(tree).body)


def _for(tree: Tree) -> list[str]:
    view = For(tree)
    targets = ", ".join(map(_operand, view.targets))
    return _block(f"for {targets} in {', '.join(map(_operand, view.iterables))}:", view.body)


def _with(tree: Tree) -> list[str]:
    view = With(tree)
    return _block(f"with {', '.join(map(_with_item, view.items))}:", view.body)


def _with_item(item: WithItem) -> str:
    return _operand(item.value) + ("" if item.target is None else f" as {_expression(item.target)}")


# --- definitions ---


def _def(tree: Tree, name: str | None = None) -> list[str]:
    view = Def(tree)
    return _block(f"def {name or view.name}{_signature(view.decl)}:", view.body)


def _signature(decl: Decl) -> str:
    params: list[str] = []
    for index, param in enumerate(decl.params):
        if param.kwarg_only and not any(before.kwarg_only for before in decl.params[:index]):
            params.append("*")
        params.append(_param(param))
    returns = "" if decl.returns is None else f" -> {_expression(decl.returns)}"
    return f"({', '.join(params)}){returns}"


def _param(param: Param) -> str:
    type = "" if param.annotation is None else f": {_expression(param.annotation)}"
    return param.name + type + ("" if param.default is None else f" = {_expression(param.default)}")


def _class(tree: Tree) -> list[str]:
    view = ClassDef(tree)
    base = "" if view.superclass is None else f"({_expression(view.superclass)})"
    lines = _block(f"class {view.name}{base}:", view.body) if view.body else [f"class {view.name}{base}:"]
    lines += [_INDENT + line for property in view.properties for line in _property(property)]
    return lines if len(lines) > 1 else [*lines, f"{_INDENT}pass"]


def _property(view: Property) -> list[str]:
    lines = ["@property", *_def(view.getter.tree, view.name)]
    return lines if view.setter is None else [*lines, f"@{view.name}.setter", *_def(view.setter, view.name)]


_SIMPLE: Final[dict[str, Callable[[Tree], str]]] = {
    **{word: (lambda tree: tree.kind) for word in ("pass", "break", "continue")},
    "expression_statement": lambda tree: _expression(ExprStmt(tree).expression),
    "assign": _assign,
    "aug_assign": _aug_assign,
    "return": lambda tree: f"return {_expression(Return(tree).value)}",
    "raise": lambda tree: f"raise {_expression(Raise(tree).value)}",
    "assert": _assert,
    "delete": lambda tree: f"del {_commas(Delete(tree).targets)}",
    "global": lambda tree: f"global {', '.join(Global(tree).names)}",
}
_BLOCKS: Final[dict[str, Callable[[Tree], list[str]]]] = {
    "if": _if, "while": _while, "for": _for, "with": _with, "def": _def, "class_def": _class,
}  # fmt: skip
