"""Names that Python and the session share.

In: Python's namespace (the notebook's; the session's own elsewhere), and the text of an entry.  Out: before the entry
runs, the session knows what Python has bound, changed or deleted since; after it, Python knows what the entry has.  A
name is compared with the very object that it meant when both sides last agreed, so that the side that bound it last is
the one that counts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from types import CodeType, ModuleType
from typing import Any, Final

from engine.executor.conversion.to_python import python_class
from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import variables
from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.source import Source
from engine.lang.types import ClassType, EnumType, TupleType
from engine.torch.compiled.objects import ScriptClass, ScriptFunction
from engine.torch.jit.scripting.python_program import PYTHON
from tsrepl.session.definitions import Definitions
from tsrepl.session.entries import split_entries
from tsrepl.session.names import no_longer_compiles
from tsrepl.session.outside import Refusal, code_of, forget, is_same, reachable, used_names
from tsrepl.session.twins import Twins, Unshareable
from tsrepl.session.workspace import SessionVariable, Workspace

Namespace = dict[str, Any]
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_PRIVATE: Final = re.compile(r"__\w*|_i+|_i?\d+|_(?:ih|oh|dh|exit_code)|In|Out")
"""Names that IPython keeps for itself; only the last value is shared, by its name `_`."""
_MISSING: Final = object()


@dataclass(slots=True)
class Mentioned:
    """The names of a text: `read` as values, or `used` in definitions, which see functions and classes only."""

    read: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


class Bridge:
    """The shared names of one namespace of Python and one session.

    `_linked` has, for each variable, Python's object and the session's variable when both sides last agreed; `_given`
    has, for each definition of the session, what it was and what Python got for it; `_callees` has the objects that
    functions of Python used when they were compiled; `_codes` has the code of those that are outside.
    """

    def __init__(self, workspace: Workspace, namespace: Namespace, hidden: Iterable[str] = ()) -> None:
        self.workspace, self.namespace = workspace, namespace
        self._hidden = {name: namespace.get(name) for name in hidden}
        self._twins = Twins()
        self._linked: dict[str, tuple[Any, SessionVariable]] = {}
        self._given: dict[str, tuple[Any, Any]] = {}
        self._callees: dict[str, Any] = {}
        self._codes: dict[str, tuple[CodeType, ...]] = {}
        self._of: Definitions = workspace.definitions

    # -- from Python

    def take(self, text: str = "") -> None:
        """Let the session know what Python did to shared names, and the names that the text mentions."""
        self._forget_after_reset()
        self._twins.begin()
        changed = [*self._definitions_lost(), *self._outside_changed(), *self._callees_changed()]
        for name in list(self._linked):
            self._take_again(name)
        mentioned = mentioned_in(text)
        mentioned.used.update(name for broken in self._of.broken for name in variables(self._of.trees[broken]))
        for name in mentioned.read | mentioned.used:
            if self._is_new(name):
                changed += self._take(name, name in mentioned.read)
        self._relink(changed)
        self._callees = self._called_in_python()

    def is_edited(self) -> bool:
        """True if functions, classes or modules of Python in programs have other code than when they were taken."""
        return any(map(self._is_edited, self._codes))

    def _relink(self, changed: list[str]) -> None:
        """Compile again what uses the names, in Python and in the session."""
        every = dict.fromkeys([*changed, *self._compile_again(changed)])
        self._of.relink(list(every), self.workspace.variables)

    def _forget_after_reset(self) -> None:
        if self._of is not self.workspace.definitions:
            self._of = self.workspace.definitions
            self._linked.clear()
            self._given.clear()

    def _definitions_lost(self) -> Iterator[str]:
        """The session's definitions whose names Python has bound to something else, or deleted."""
        for name, (_, given) in list(self._given.items()):
            if self.namespace.get(name, _MISSING) is not given:
                del self._given[name]
                self._of.remove(name)
                if name in self.namespace:
                    self._take(name, is_read=True)
                yield name

    def _outside_changed(self) -> list[str]:
        """The functions, classes and modules of Python that mean something else now."""
        outside = self._of.outside
        changed = [name for name, known in outside.items() if self._outside(name) is not known]
        edited = [name for name in self._codes if name not in changed and self._is_edited(name)]
        for each in reachable([outside[name] for name in edited]):
            forget(each)
        for name in [*changed, *edited]:
            del outside[name]
            if name in self.namespace and name not in self._linked:
                self._take(name, is_read=False)
        return [*changed, *edited]

    def _is_edited(self, name: str) -> bool:
        """True if the object of that name outside, or what it uses, has other code than when it was taken."""
        known = self._of.outside.get(name)
        return known is not None and not is_same(self._codes[name], code_of(known))

    def _callees_changed(self) -> list[str]:
        """The names that mean something else now in Python's functions that programs call."""
        return [name for name, known in self._callees.items() if self.namespace.get(name, _MISSING) is not known]

    def _called_in_python(self) -> dict[str, Any]:
        """The objects that Python's functions in programs mean by the names that they use, directly or not."""
        waiting = list(self._of.outside)
        found: dict[str, Any] = {}
        while waiting:
            for name in used_names(self.namespace.get(waiting.pop())):
                if name in self.namespace and name not in found:
                    found[name] = self.namespace[name]
                    waiting.append(name)
        return found

    def _outside(self, name: str) -> Any:
        """The object of that name outside; its refusal, for as long as Python has the object that was refused."""
        known, value = self._of.outside.get(name), self.namespace.get(name, _MISSING)
        return known if isinstance(known, _Refused) and known.value is value else value

    def _compile_again(self, changed: Iterable[str]) -> list[str]:
        """Let what uses the changed names in Python, directly or not, be compiled anew; the names of that."""
        waiting, found = list(changed), dict[str, None]()
        uses = {name: used_names(each) for name, each in self.namespace.items()} if waiting else {}
        while waiting:
            used = waiting.pop()
            for name in [name for name, names in uses.items() if used in names and name not in found]:
                forget(self.namespace[name])
                found[name] = None
                waiting.append(name)
        return list(found)

    def _take_again(self, name: str) -> None:
        python, variable = self._linked[name]
        value = self.namespace.get(name, _MISSING)
        if value is not python:
            self._drop(name)
            if value is not _MISSING:
                self._take(name, is_read=True)
        elif _has_parts(value):
            self._bind(name, value, variable)
        else:
            self._twins.keep(value)

    def _drop(self, name: str) -> None:
        del self._linked[name]
        self.workspace.variables.pop(name, None)

    def _is_new(self, name: str) -> bool:
        """True for a name of Python that is not shared yet."""
        is_own = _PRIVATE.fullmatch(name) or self._hidden.get(name, _MISSING) is self.namespace.get(name)
        return name in self.namespace and not is_own and name not in self._linked and name not in self._given

    def _take(self, name: str, is_read: bool) -> list[str]:
        """Share a name of Python.  The name, if it means something else in definitions now."""
        value = self.namespace[name]
        if is_definition(value):
            if _is_package(value):
                value = _refused(name, value, f"{value.__name__} is a package of Python")
            known, self._of.outside[name] = self._of.outside.get(name), value
            self._codes[name] = code_of(value)
            self.workspace.variables.pop(name, None)
            return [name] if known is not value else []
        if is_read:
            self._of.outside.pop(name, None)
            self._bind(name, value)
        elif name not in self._of.unit.functions and name not in self._of.unit.types:
            self._of.outside[name] = _hidden_variable(name, value)
        return []

    def _bind(self, name: str, value: Any, variable: SessionVariable | None = None) -> None:
        """Bind the name in the session to Python's value; what cannot be shared is refused where a program uses it."""
        variables = self.workspace.variables
        try:
            type = self._type_for(value, variable)
            inner = self._twins.take(value, type)
        except (Unshareable, RecursionError) as error:
            variables.pop(name, None)
            self._linked.pop(name, None)
            reason = "it contains itself" if isinstance(error, RecursionError) else str(error)
            self._of.outside[name] = _refused(name, value, reason)
            return
        if variable is None or variable.type != type or variable.value is not inner:
            variable = SessionVariable(inner, type)
            variables[name] = variable
        self._linked[name] = value, variable

    def _type_for(self, value: Any, variable: SessionVariable | None) -> Any:
        """The type of a Python value: that of the variable, while the same object is one of its kind."""
        if variable is None:
            return self._twins.type_of(value)
        if not isinstance(value, (list, dict)):
            return variable.type
        try:
            return self._twins.type_of(value, variable.type)
        except Unshareable:
            self._twins.take(value, variable.type)
            return variable.type

    # -- to Python

    def give(self) -> None:
        """Let Python know what the session bound, changed or deleted."""
        self._forget_after_reset()
        self._twins.begin()
        for name in [name for name in self._linked if name not in self.workspace.variables]:
            self._delete(name)
        for name in [name for name in self._of.trees if name in self.workspace.variables]:
            self._of.remove(name)
            self._given.pop(name, None)
        while new := [name for name in self._of.trees if self._give_definition(name)]:
            self._of.relink(self._compile_again(new), self.workspace.variables)
        self._callees = self._called_in_python()
        for name, variable in list(self.workspace.variables.items()):
            self._give_variable(name, variable)
        self._twins.end()

    def _delete(self, name: str) -> None:
        python, _ = self._linked.pop(name)
        if self.namespace.get(name, _MISSING) is python:
            del self.namespace[name]

    def _give_definition(self, name: str) -> bool:
        """Give Python the session's function or class of that name, or what stands for one that no longer compiles.

        True if that is another than before.
        """
        found = self._of.unit.functions.get(name) or self._of.unit.types.get(name) or self._of.broken.get(name)
        if found is None or (name in self._given and self._given[name][0] is found):
            return False
        given: Any = _Broken(name, found) if isinstance(found, str) else _seen_from_python(found)
        self._of.outside.pop(name, None)
        self._linked.pop(name, None)
        self._given[name], self.namespace[name] = (found, given), given
        if isinstance(found, (TupleType, EnumType)):
            PYTHON.adopt(given, found)
        return True

    def _give_variable(self, name: str, variable: SessionVariable) -> None:
        python, known = self._linked.get(name, (None, None))
        if known is variable and not _has_parts(python):
            self._twins.keep(python)
            return
        value = self._twins.give(variable.value, variable.type)
        if known is not variable:
            self._of.outside.pop(name, None)
            self.namespace[name] = value
            self._linked[name] = value, variable


@dataclass(frozen=True, slots=True)
class _Broken:
    """A stand-in, in Python, for a definition that no longer compiles: no cell can use it, whatever its language."""

    name: str
    reason: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise CompileError, with the reason."""
        raise no_longer_compiles(self.name, self.reason)

    def __repr__(self) -> str:
        return f"<{self.name}, which no longer compiles: {self.reason}>"


@dataclass(frozen=True, slots=True)
class _Refused(Refusal):
    value: Any = None


def _refused(name: str, value: Any, reason: str) -> _Refused:
    if getattr(type(value), "_torchscript_module", False):
        hint = f"compile it in a Python cell: {name} = torch.jit.script({name})"
        return _Refused(f"{name} is a module of Python, which has not been compiled", (hint,), value)
    hints = ("compute with it in a Python cell, and use the result here",)
    return _Refused(f"{name} cannot be used in a program: {reason}", hints, value)


def _is_package(value: Any) -> bool:
    """True for modules that are installed, whose functions were not written to be compiled."""
    place = getattr(value, "__file__", None) if isinstance(value, ModuleType) else None
    is_own = isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "engine"
    return not is_own and ("site-packages" in (place or "") or "dist-packages" in (place or ""))


def _hidden_variable(name: str, value: Any) -> _Refused:
    hint = f"'{name}' is a variable of the notebook; a function sees its parameters only, so make it one"
    return _Refused(f"undefined value {name}", (hint,), value)


def is_definition(value: Any) -> bool:
    """True for what programs call or look into, and do not hold: functions, classes, modules of Python."""
    return isinstance(value, (ScriptFunction, ModuleType, type)) or inspect.isroutine(value)


def _seen_from_python(found: Any) -> Any:
    if isinstance(found, Function):
        return ScriptFunction(found)
    return ScriptClass(found) if isinstance(found, ClassType) else python_class(found)


def _has_parts(value: Any) -> bool:
    return isinstance(value, (list, dict, tuple))


def mentioned_in(text: str) -> Mentioned:
    """The names of the entries of a text; all that look like one where it is a command or does not parse."""
    names = Mentioned()
    for entry in split_entries(text):
        if entry.is_command:
            names.read.update(_NAME.findall(entry.text))
            continue
        try:
            trees = parse_statements(Source(entry.text), extended=True)
        except EngineError:
            continue
        if entry.is_definition:
            names.used.update(name for tree in trees for name in variables(tree))
        else:
            uses = names_of(trees)
            names.read.update(uses.reads, uses.assigned, uses.deleted)
    return names
