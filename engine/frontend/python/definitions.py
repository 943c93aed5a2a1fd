"""From Python's `ast` to trees: functions and classes.

In: an `ast` definition and the `PythonSource` it came from.  Out: the same `Tree` as the text front end makes,
with the types that `# type:` comments give (PEP 484, in one line or one for each parameter).  Decorators are dropped.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from engine.aten.values.tensor import Tensor
from engine.frontend.names.type_annotations import dotted_name
from engine.frontend.python.expressions import PythonSource, annotation, expression, literal, refused
from engine.frontend.python.statements import annotated, statement, statements
from engine.frontend.syntax.desugar import add_property
from engine.frontend.syntax.parser import parse_expression, parse_type_comment
from engine.frontend.syntax.tree import PythonDefault, Tree
from engine.frontend.syntax.type_comments import merge_types
from engine.frontend.syntax.views import ClassDef, Const, Decl, Def, Param, Subscript
from engine.lang.errors import AnnotationError, CompileError, NotSupportedError
from engine.lang.python_syntax import parse_python
from engine.lang.source import Source, SourceRange

_NO_VARIABLE_ARGUMENTS: Final = (
    "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults"
)
_NOT_GIVEN: Final = object()
_CALLED: Final = "Cannot call @unused methods"


def definition(place: PythonSource, node: ast.stmt) -> Tree:
    """The tree of a function, a class, or another statement at the top level of a text."""
    if isinstance(node, ast.FunctionDef):
        return function(place, node)
    if isinstance(node, ast.ClassDef):
        return class_def(place, node)
    return statement(place, node)


def function(
    place: PythonSource,
    node: ast.FunctionDef,
    *,
    is_method: bool = False,
    defaults: Mapping[str, object] | None = None,
    is_overloaded: bool = False,
) -> Tree:
    """The tree of a function.

    `defaults` has the run-time values of defaults; they replace expressions that only Python can evaluate.  Of a
    function that `is_overloaded`, other declarations give the types.
    """
    range = place.range(node)
    if node.name != "__init__":
        _refuse_late_attributes(place, node)
    name = _name_after("def", range, node.name)
    decl = declaration(place, node, is_method=is_method, defaults=defaults)
    if not is_overloaded:
        _check_defaults(decl, defaults or {})
    return Def.make(range, name, decl, statements(place, node.body))


def declaration(
    place: PythonSource, node: ast.FunctionDef, *, is_method: bool = False, defaults: Mapping[str, object] | None = None
) -> Tree:
    """The parameters and the result of a function, with the types of annotations and comments."""
    _check_comments(place, node)
    start = _name_after("def", place.range(node), node.name).range.end
    decl = _decl(place, node, start, defaults or {})
    if node.type_comment is not None and not node.type_comment.startswith("(...)"):
        decl = merge_types(decl, _signature(place, start, node.type_comment), is_method=is_method)
    return _with_float_defaults(decl) if defaults else decl


def class_def(
    place: PythonSource, node: ast.ClassDef, unused: Collection[str] = (), *, as_python: bool = False
) -> Tree:
    """The tree of a class: its methods, properties and assignments; static methods are left out.

    Assignments that are no TorchScript are left out, too: a class may have attributes for Python alone.  The methods
    named in `unused` raise when they are called.  A class that exists in Python (`as_python`) may have several bases
    and a metaclass.
    """
    range = place.range(node)
    if (len(node.bases) > 1 or node.keywords) and not as_python:
        raise NotSupportedError(
            "a class has at most one base class, and no metaclass",
            range,
            hints=("TorchScript classes stand alone; a module is derived from nn.Module",),
        )
    body: list[Tree] = []
    properties: dict[str, Tree] = {}
    for entry in node.body:
        if isinstance(entry, ast.FunctionDef):
            _add_method(place, node, _raising(entry) if entry.name in unused else entry, body, properties)
        elif isinstance(entry, (ast.Assign, ast.AnnAssign, ast.Pass)):
            with suppress(NotSupportedError):
                body.append(annotated(place, entry) if isinstance(entry, ast.AnnAssign) else statement(place, entry))
        elif isinstance(entry, ast.AsyncFunctionDef):
            raise refused(entry, place.range(entry))
    superclass = expression(place, node.bases[0]) if node.bases else None
    return ClassDef.make(range, _name_after("class", range, node.name), superclass, body, list(properties.values()))


def _of_class(node: ast.FunctionDef, cls: ast.ClassDef) -> ast.FunctionDef:
    """The class method as a method of instances, whose first parameter then stands for the class."""
    (statement,) = parse_python(f"{node.args.args[0].arg} = {cls.name}").body
    for part in ast.walk(statement):
        ast.copy_location(part, node.body[0])
    made = copy.copy(node)
    made.body = [statement, *node.body]
    return made


def _raising(node: ast.FunctionDef) -> ast.FunctionDef:
    """The method with a body that only raises, and parameters that take anything."""
    (statement,) = parse_python(f"raise RuntimeError({_CALLED!r})").body
    for part in ast.walk(statement):
        ast.copy_location(part, node.body[0])
    made = copy.copy(node)
    made.body, made.args, made.type_comment = [statement], copy.copy(node.args), None
    made.args.vararg = made.args.kwarg = None
    made.args.args = [*node.args.args[:1], *map(_of_any_type, node.args.args[1:])]
    made.args.kwonlyargs = list(map(_of_any_type, node.args.kwonlyargs))
    return made


def _of_any_type(node: ast.arg) -> ast.arg:
    anything = ast.copy_location(ast.Name("Any", ast.Load()), node)
    return ast.copy_location(ast.arg(node.arg, anything), node)


def _add_method(
    place: PythonSource, cls: ast.ClassDef, node: ast.FunctionDef, body: list[Tree], properties: dict[str, Tree]
) -> None:
    named = [decorator for decorator in node.decorator_list if isinstance(decorator, (ast.Name, ast.Attribute))]
    kinds = {decorator.id for decorator in named if isinstance(decorator, ast.Name)}
    if "staticmethod" in kinds:
        return
    method = function(place, _of_class(node, cls) if "classmethod" in kinds else node, is_method=True)
    if not add_property(properties, [expression(place, decorator) for decorator in named], method):
        body.append(method)


def _refuse_late_attributes(place: PythonSource, node: ast.FunctionDef) -> None:
    """Raises AnnotationError for `self.x: T = ...` outside of `__init__`: it declares an attribute."""
    for inner in ast.walk(node):
        target = inner.target if isinstance(inner, ast.AnnAssign) else None
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            raise AnnotationError(
                f"Type annotations on instance attributes must be declared in __init__, not '{node.name}'",
                place.range(target),
                hints=("leave out the annotation here",),
            )


_TYPE_COMMENT: Final = re.compile(r"#[ \t]*type[ \t]*:(?![ \t]*ignore\b)")


def _check_comments(place: PythonSource, node: ast.FunctionDef) -> None:
    """Raises CompileError for type comments before the body that say too little, or that are written in another way."""
    begin, end = place.range(node).start, place.range(node.body[0]).start
    found = list(_TYPE_COMMENT.finditer(place.source.text, begin, end))
    where = [SourceRange(place.source, each.start(), each.end()) for each in found]
    wrong = next((at for at in where if at.text != "# type:"), None)
    if wrong is not None:
        raise CompileError(
            f"The annotation prefix in line {wrong.line} is probably invalid. It must be '# type:'",
            wrong,
            hints=("or write annotations: def f(x: int) -> int",),
        )
    if len(found) > 1 and not any(place.source.text.startswith(" (...) ->", at.end) for at in where):
        raise CompileError(
            "Return type line '# type: (...) -> ...' not found on multiline type annotation",
            where[-1],
            hints=("behind comments for each parameter, a line `# type: (...) -> Tensor` says what is returned",),
        )
    arguments = [each for each in (*node.args.args, *node.args.kwonlyargs) if each.arg != "self"]
    typed = sum(each.type_comment is not None for each in arguments)
    if typed not in (0, len(arguments)) and all(each.annotation is None for each in arguments):
        raise CompileError(
            f"Number of type annotations ({typed}) did not match the number of function parameters ({len(arguments)})",
            where[-1],
            hints=("every parameter has a comment of its own, or none has",),
        )


def _comment(place: PythonSource, start: int, comment: str) -> tuple[Source, int, int]:
    """The range of the text of the first type comment after `start`."""
    match = re.compile(rf"#[ \t]*type:[ \t]*{re.escape(comment)}").search(place.source.text, start)
    if match is None:
        return Source(comment, place.source.filename), 0, len(comment)
    return place.source, match.end() - len(comment), match.end()


def _signature(place: PythonSource, start: int, comment: str) -> Tree:
    """The declaration with the types of `(int, str) -> float`."""
    source, begin, end = _comment(place, start, comment)
    return parse_type_comment(source, begin, end)


def _name_after(keyword: str, range: SourceRange, name: str) -> Tree:
    """The `(ident name)` of a definition, whose range `ast` does not have."""
    match = re.compile(rf"{keyword}\s+").match(range.source.text, range.start)
    start = match.end() if match else range.start
    return Tree("ident", (name,), SourceRange(range.source, start, start + len(name)))


def _decl(place: PythonSource, node: ast.FunctionDef, start: int, values: Mapping[str, object]) -> Tree:
    arguments = node.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kw_defaults):
        if extra is not None:
            raise NotSupportedError(_NO_VARIABLE_ARGUMENTS, place.range(extra), hints=("name the arguments",))
    for given in arguments.posonlyargs:
        raise NotSupportedError(
            "positional-only parameters aren't supported", place.range(given), hints=("leave out the /",)
        )
    positional = arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    params = [_param(place, arg, default, values) for arg, default in zip(positional, defaults, strict=True)]
    params += [_param(place, arg, None, values, kwarg_only=True) for arg in arguments.kwonlyargs]
    returns = annotation(place, node.returns)
    if returns is None and node.type_comment is not None and node.type_comment.startswith("(...)"):
        returns = Decl(_signature(place, start, node.type_comment)).returns
    end = max([start, *(param.range.end for param in params), *([] if returns is None else [returns.range.end])])
    return Decl.make(SourceRange(place.source, start, end), params, returns)


def _param(
    place: PythonSource,
    node: ast.arg,
    default: ast.expr | None,
    values: Mapping[str, object],
    *,
    kwarg_only: bool = False,
) -> Tree:
    range = place.range(node)
    name = Tree("ident", (node.arg,), SourceRange(range.source, range.start, range.start + len(node.arg)))
    type = annotation(place, node.annotation)
    if node.type_comment is not None:
        source, begin, end = _comment(place, range.end, node.type_comment)
        type = parse_expression(source, begin=begin, end=end)
    value = None if default is None else _default(place, default, values.get(node.arg, _NOT_GIVEN))
    given = values.get(node.arg)
    if value is not None and isinstance(given, Tensor):
        value = PythonDefault(value.range, given)
    elif value is not None and value.kind == "None" and _is_tensor(type):
        value = PythonDefault(value.range, None)
    whole = range if value is None else range.to(value.range)
    return Param.make(whole, name, type, value, kwarg_only)


def _check_defaults(decl: Tree, values: Mapping[str, object]) -> None:
    """Raises CompileError for a parameter without a type whose default is no tensor."""
    for param in Decl(decl).params:
        default = param.default
        is_typed = param.annotation is not None or isinstance(default, PythonDefault)
        if default is not None and not is_typed and param.name in values:
            raise _untyped_default(param.name, values[param.name], default.range)


def _untyped_default(name: str, default: object, range: SourceRange) -> CompileError:
    """The error for a parameter without annotation whose default is no tensor."""
    simple = type(default).__name__ if isinstance(default, (bool, int, float, str)) else "…"
    text = f'Expected a default value of type Tensor (inferred) on parameter "{name}".'
    why = f"Because \"{name}\" was not annotated with an explicit type it is assumed to be type 'Tensor'."
    return CompileError(text + why, range, hints=(f"write its type: `{name}: {simple} = …`",))


def _is_tensor(annotation: Tree | None) -> bool:
    return annotation is None or (dotted_name(annotation) or "").endswith("Tensor")


def _is_float(annotation: Tree) -> bool:
    if annotation.kind == "subscript" and dotted_name(Subscript(annotation).value) in ("Optional", "typing.Optional"):
        annotation = Subscript(annotation).subscripts[0]
    return dotted_name(annotation) == "float"


def _with_float_defaults(decl: Tree) -> Tree:
    """The declaration, where the default 1 of a float is 1.0, as it is for Python."""
    view = Decl(decl)
    return Decl.make(decl.range, [_with_float_default(param) for param in view.params], view.returns)


def _with_float_default(param: Param) -> Tree:
    type, default = param.annotation, param.default
    if type is None or default is None or default.kind != "const" or not _is_float(type):
        return param.tree
    return Param.make(param.range, param.tree.children[0], type, _as_float(default), param.kwarg_only)


def _as_float(value: Tree) -> Tree:
    """An integer as the default of a float parameter, converted."""
    text = Const(value).text
    return Const.make(value.range, f"{text}.") if text.isdigit() else value


def _default(place: PythonSource, node: ast.expr, value: object) -> Tree:
    """A parameter's default: the literal that is written, else its run-time value if that can be a literal."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        tree = None if value is _NOT_GIVEN else literal(value, place.range(node))
        if tree is not None:
            return tree
    return expression(place, node)
