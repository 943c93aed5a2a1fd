"""The functions and classes of a session.

In: trees of definitions.  Out: one compilation unit.  A name may be defined again; what calls it is then compiled again
too, so that every later call sees the new one.
"""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import field
from typing import Any

from engine.frontend.compilation.compile import define
from engine.frontend.syntax.tree import Tree, variables
from engine.frontend.syntax.views import ClassDef, Def
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import CompileError, EngineError
from engine.lang.records import dataclass
from engine.lang.types import ClassType, Type
from tsrepl.session.failures import head_and_details
from tsrepl.session.names import STANDARD, DefinitionResolver
from tsrepl.session.replies import Binding, DefinitionReply

Relinked = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""The definitions that were compiled again, and (name, reason) of those that no longer compile."""


@dataclass(slots=True)
class Definitions:
    """`trees` are the definitions as they were typed, by name; `broken` those that do not compile any more, and why.

    `outside` are objects of the door's own language that definitions may use, by name; `imports` the paths for which
    names stand, `nn` for torch.nn; `refused` says where a definition stands that did not compile.
    """

    unit: CompilationUnit = field(default_factory=CompilationUnit)
    trees: dict[str, Tree] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    outside: dict[str, Any] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=lambda: dict(STANDARD))
    refused: dict[str, str] = field(default_factory=dict)

    def define(self, trees: Sequence[Tree], variables: Container[str] = ()) -> list[DefinitionReply]:
        """Define functions and classes, which may use each other.

        Raises CompileError; then what was defined before stays.
        """
        names = [name_of(tree) for tree in trees]
        were_broken = {name: self.broken.pop(name) for name in names if name in self.broken}
        before = [self._forget(name) for name in names]
        try:
            self._compile(trees, variables)
        except BaseException:
            for name in names:
                self._forget(name)
            for functions, types in before:
                self.unit.functions.update(functions)
                self.unit.types.update(types)
            self.broken.update(were_broken)
            raise
        for name in names:
            self.refused.pop(name, None)
        replaced = {name for name in names if self.trees.pop(name, None) is not None}
        self.trees.update(zip(names, trees, strict=True))
        relinked = {name: self._relink(name, names, variables) for name in names}
        return [self._reply(tree, name in replaced, relinked[name]) for name, tree in zip(names, trees, strict=True)]

    def _reply(self, tree: Tree, replaced: bool, relinked: Relinked) -> DefinitionReply:
        name = name_of(tree)
        kind = "class" if tree.kind == ClassDef.kind else "function"
        return DefinitionReply(name, kind, self.signature(name) or name, replaced, *relinked)

    def define_modules(self, name: str, cls: type) -> DefinitionReply:
        """Define a class of modules of Python, in the place of what had the name."""
        replaced = name in self.trees or self.module_class(name) is not None
        self.remove(name)
        self.outside[name] = cls
        return DefinitionReply(name, "class", self.signature(name) or name, replaced, *self._relink(name, (), ()))

    def spelled(self, path: str) -> str:
        """The path with what its first name stands for: `torch.nn.functional.relu` for `F.relu`."""
        first, dot, rest = path.partition(".")
        return self.imports.get(first, first) + dot + rest

    def module_class(self, name: str) -> Any:
        """The class of modules that was defined under the name; None without one."""
        found = self.outside.get(name)
        return found if isinstance(found, type) and "_statement" in vars(found) else None

    def text(self, name: str) -> str | None:
        """The definition as it was typed."""
        if name in self.trees:
            return self.trees[name].range.text
        found = self.module_class(name)
        return None if found is None else str(found._statement)

    def remove(self, name: str) -> None:
        """Forget a definition.  What uses it stays until it is compiled again."""
        self._forget(name)
        self.trees.pop(name, None)
        self.broken.pop(name, None)

    def relink(self, names: Sequence[str], variables: Container[str] = ()) -> Relinked:
        """Compile again what uses one of the names, because that means something else now."""
        found = [self._relink(name, (), variables) for name in names]
        return tuple(each for done, _ in found for each in done), tuple(each for _, broken in found for each in broken)

    def tree(self, name: str) -> Tree | None:
        """The definition as it was typed."""
        return self.trees.get(name)

    def functions(self, name: str) -> list[Function]:
        """The function of that name, or the methods of the class that have been compiled."""
        own = [each for key, each in self.unit.functions.items() if key == name or key.startswith(f"{name}.")]
        return [each for each in own if each.is_defined]

    def signature(self, name: str) -> str | None:
        """The function's schema, or the class and what it takes; None when there is neither."""
        function = self.unit.find_function(name)
        if function is not None:
            return str(function.schema)
        type = self.unit.find_type(name)
        if type is None and self.module_class(name) is not None:
            return _signature(name, self.module_class(name))
        if not isinstance(type, ClassType):
            return None if type is None else name
        init = type.methods.get("__init__")
        arguments = init.schema.arguments[1:] if init is not None else ()
        return f"{name}({', '.join(f'{a.type} {a.name}' for a in arguments)})"

    def bindings(self) -> Iterator[Binding]:
        """Every definition, oldest first."""
        for name, tree in self.trees.items():
            kind = "class" if tree.kind == ClassDef.kind else "function"
            summary = f"no longer compiles: {self.broken[name]}" if name in self.broken else self.signature(name) or ""
            yield Binding(name, kind, "", summary)
        for name in filter(self.module_class, self.outside):
            yield Binding(name, "class", "", self.signature(name) or "")

    def _compile(self, trees: Sequence[Tree], variables: Container[str]) -> None:
        """Add the definitions to the unit, compiled to the end.  Raises CompileError."""
        define(self.unit, trees, DefinitionResolver(self, variables))

    def _relink(self, name: str, new: Sequence[str], variables: Container[str]) -> Relinked:
        """Compile again what uses `name`, directly or not, but for what is `new` itself.

        What does not compile any more stays defined by its tree, so that defining `name` once more may mend it.
        """
        done: list[str] = []
        broken: list[tuple[str, str]] = []
        for user in self._users(name):
            if user in new:
                continue
            self._forget(user)
            self.broken.pop(user, None)
            try:
                self._compile([self.trees[user]], variables)
                done.append(user)
            except CompileError as error:
                self.broken[user] = head_and_details(error.message)[0]
                broken.append((user, self.broken[user]))
        return tuple(done), tuple(broken)

    def _users(self, name: str) -> list[str]:
        """The definitions that use `name`, and those that use these, in an order in which they can be compiled."""
        uses = {each: set(variables(tree)) - {each} for each, tree in self.trees.items() if each != name}
        reached = {name}
        while more := {each for each in uses if each not in reached and uses[each] & reached}:
            reached |= more
        order: list[str] = []
        waiting = [each for each in uses if each in reached]
        while waiting:
            # One that uses none of the others still waiting; the first, should they use each other in a circle.
            ready = next((each for each in waiting if not uses[each] & set(waiting)), waiting[0])
            waiting.remove(ready)
            order.append(ready)
        return order

    def _forget(self, name: str) -> tuple[dict[str, Function], dict[str, Type]]:
        """Take the name, and what belongs to the class of that name, out of the unit; what was taken."""
        own = [key for key in self.unit.functions if key == name or key.startswith(f"{name}.")]
        functions = {key: self.unit.functions.pop(key) for key in own}
        types = {key: self.unit.types.pop(key) for key in [name] if key in self.unit.types}
        return functions, types


def _signature(name: str, cls: type) -> str:
    """The class of modules and what its `__init__` takes, as it was written."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    parameters = [] if owner.__name__ == "Module" else list(inspect.signature(owner.__init__).parameters.values())[1:]  # type: ignore[misc]  # that of this very class
    return f"{name}({', '.join(map(_parameter, parameters))})"


def _annotation(hint: Any) -> str:
    own = getattr(hint, "_type", None)
    return own.name if isinstance(own, ClassType) else inspect.formatannotation(hint)


def _parameter(each: inspect.Parameter) -> str:
    star = "*" * ((each.kind is each.VAR_POSITIONAL) + 2 * (each.kind is each.VAR_KEYWORD))
    type = "" if each.annotation is each.empty else f"{_annotation(each.annotation)} "
    default = getattr(each.default, "__name__", repr(each.default))
    return f"{star}{type}{each.name}" + ("" if each.default is each.empty else f"={default}")


def without_users_of(lost: Set[str], trees: Sequence[Tree]) -> tuple[list[Tree], list[tuple[Tree, str]]]:
    """The definitions that use none of the lost names, directly or not; and those that do, with the name."""
    gone = set(lost)
    fit, unfit = list(trees), list[tuple[Tree, str]]()
    while found := [(tree, used) for tree in fit if (used := next(filter(gone.__contains__, variables(tree)), ""))]:
        unfit += found
        gone |= {name_of(tree) for tree, _ in found}
        fit = [tree for tree in fit if name_of(tree) not in gone]
    return fit, unfit


def failed_definitions(error: EngineError, trees: Sequence[Tree]) -> list[Tree]:
    """The definitions that hold the places of the error and of those found with it."""
    found = (_holder(each, trees) for each in (error, *error.others))
    return [tree for tree in found if tree is not None]


def _holder(error: EngineError, trees: Sequence[Tree]) -> Tree | None:
    """The definition that the error stands in; where that is library code, the one that calls it."""
    ranges = [error.range, *(frame.range for frame in reversed(error.frames))]
    return next((tree for range in ranges if range for tree in trees if tree.range.holds(range)), None)


def name_of(tree: Tree) -> str:
    """The name that a definition defines."""
    return ClassDef(tree).name if tree.kind == ClassDef.kind else Def(tree).name
