"""Do Python and TorchScript cells of a notebook agree on the values of their names?

    python -m tests.fuzz.mixed_cells [--cells 200] [--seeds 20] [--first 0]

In: cells of statements that mean the same in both languages, each given to one of them by chance.  Out: the first cell
after which a name has another value, type or identity in Python or in the session than it has where Python alone runs
all the statements.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from engine.torch import nn

NUMBERS: Final = ("a", "b", "c")
LISTS: Final = ("k", "l", "m")
DICTS: Final = ("d", "e")
NESTED: Final = ("n", "o")
FUNCTIONS: Final = ("f", "g", "h")
CLASSES: Final = ("M", "N")
NAMES: Final = (*NUMBERS, *LISTS, *DICTS, *NESTED, "_")
Known = dict[str, Any]


class Cells:
    """Statements by chance that are valid for the names as they are known."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: Known = {"_": "", "nn": nn, "__name__": "__main__"}

    def next(self) -> tuple[str, bool]:
        """A statement, which has been run where Python is alone, and True if it is for Python."""
        is_python = self.random.random() < 0.5
        rules = (
            self._number, self._number, self._sum, self._copy, self._copy, self._list, self._append, self._append,
            self._item, self._dict, self._entry, self._nested, self._inner, self._delete, self._function,
            self._function, self._call, self._call, self._module_class, self._module, self._module, self._show,
            self._last,
        )  # fmt: skip
        text = ""
        while not text:
            text = self.random.choice(rules)()
        self._run(text, is_python)
        return text, is_python

    def _run(self, text: str, is_python: bool) -> None:
        try:
            code = compile(text, "<cell>", "eval")
        except SyntaxError:
            exec(text, self.known)
        else:
            value = eval(code, self.known)
            if value is None and not is_python:
                value = eval(text.partition(".append(")[0], self.known)  # TorchScript's append gives the list
            if value is not None:
                self.known["_"] = value

    def _one(self, names: tuple[str, ...]) -> str:
        """One of the names that have a value; "" if none has."""
        there = [name for name in names if name in self.known]
        return self.random.choice(there) if there else ""

    def _literal(self) -> str:
        return self.random.choice(("0", "1", "2", "5", "300", "True", "False", "0.5", "1.0", "-1"))

    def _int(self) -> str:
        return str(self.random.randrange(4))

    def _number(self) -> str:
        return f"{self.random.choice(NUMBERS)} = {self._literal()}"

    def _sum(self) -> str:
        a = self._one(NUMBERS)
        return f"{self.random.choice(NUMBERS)} = {a} + 1" if a and type(self.known[a]) is not bool else ""

    def _copy(self) -> str:
        names = self.random.choice((NUMBERS, LISTS, DICTS))
        a = self._one(names)
        return f"{self.random.choice(names)} = {a}" if a else ""

    def _list(self) -> str:
        return f"{self.random.choice(LISTS)} = [{', '.join(self._int() for _ in range(self.random.randint(1, 3)))}]"

    def _append(self) -> str:
        a = self._one(LISTS)
        return self.random.choice((f"{a}.append({self._int()})", f"{a} += [{self._int()}]")) if a else ""

    def _item(self) -> str:
        a = self._one(LISTS)
        return f"{a}[0] = {self._int()}" if a else ""

    def _dict(self) -> str:
        return f'{self.random.choice(DICTS)} = {{"x": {self._int()}}}'

    def _entry(self) -> str:
        a = self._one(DICTS)
        return f'{a}["{self.random.choice("xyz")}"] = {self._int()}' if a else ""

    def _nested(self) -> str:
        a, b = self._one(LISTS), self._one(LISTS)
        return f"{self.random.choice(NESTED)} = [{a}, {b}]" if a else ""

    def _inner(self) -> str:
        a = self._one(NESTED)
        to_list = f"{self.random.choice(LISTS)} = {a}[1]"
        return self.random.choice((f"{a}[0].append({self._int()})", to_list)) if a else ""

    def _delete(self) -> str:
        a = self._one(NAMES[:-1])
        return f"del {a}" if a and self.random.random() < 0.5 else ""

    def _function(self) -> str:
        name = self.random.choice(FUNCTIONS)
        callee = {"f": "", "g": "f", "h": "g"}[name]
        if callee and callee not in self.known:
            return ""
        body = f"{callee}(x) * {self._int()}" if callee else f"x + {self._int()}"
        return f"def {name}(x: int) -> int:\n    return {body}"

    def _call(self) -> str:
        a = self._one(FUNCTIONS)
        return f"{self.random.choice(NUMBERS)} = {a}({self._int()})" if a else ""

    def _module_class(self) -> str:
        """A class of modules that calls a function; N has an M inside."""
        name, callee = self.random.choice(CLASSES), self._one(FUNCTIONS)
        if not callee or (name == "N" and "M" not in self.known):
            return ""
        inner, given = ("M()", "self.inner(x)") if name == "N" else (self._int(), "self.inner * x")
        return (
            f"class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"        self.inner = {inner}\n    def forward(self, x: int) -> int:\n        return {given} + {callee}(x)"
        )

    def _module(self) -> str:
        a = self._one(CLASSES)
        return f"{self.random.choice(NUMBERS)} = {a}()({self._int()})" if a else ""

    def _show(self) -> str:
        return self._one(NUMBERS) or self._one(LISTS)

    def _last(self) -> str:
        last = self.known["_"]
        names = NUMBERS if isinstance(last, (int, float)) else LISTS
        return "" if last == "" else f"{self.random.choice(names)} = _"


def differences(shell: InteractiveShell, session: Any, known: Known) -> Iterator[str]:
    """The names that mean something else in Python or in the session than where Python is alone."""
    inside = {name: value for name, value, _ in session.variables()}
    for name in NAMES:
        wanted, python = known.get(name, "nothing"), shell.user_ns.get(name, "nothing")
        if _typed(python) != _typed(wanted):
            yield f"{name} is {python!r} in Python, not {wanted!r}"
        if (name in inside or name not in known) and _typed(inside.get(name, "nothing")) != _typed(wanted):
            yield f"{name} is {inside.get(name, 'nothing')!r} in the session, not {wanted!r}"
    for one in LISTS:
        for other in LISTS:
            if one in known and other in known:
                same = shell.user_ns[one] is shell.user_ns[other]
                if same is not (known[one] is known[other]):
                    yield f"{one} and {other} are {'' if same else 'not '}the same list in Python"


def _typed(value: Any) -> Any:
    """The value with the types of all its parts."""
    if isinstance(value, dict):
        return [(_typed(k), _typed(v)) for k, v in value.items()]
    return list(map(_typed, value)) if isinstance(value, list) else (type(value), value)


def problem(seed: int, cells: int) -> str:
    """What went wrong first in a session of that many cells; "" if nothing did."""
    from tsrepl.magics import active_session  # the extension is loaded below, by the shell

    random = Random(seed)
    made, said = Cells(random), list[str]()
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tsrepl")
    shell.user_ns["nn"] = nn
    session = active_session(shell)
    for number in range(cells):
        text, is_python = made.next() if number < cells - 1 else (_every(made), False)
        cell = text if is_python else f"%%torchscript\n{text}"
        said.append(cell)
        result = shell.run_cell(cell, store_history=True, silent=False)
        found = [f"it raised {result.error_in_exec!r}"] if not result.success else []
        found += differences(shell, session, made.known)
        if found:
            return f"seed {seed}, cell {number}: {'; '.join(found)}\n" + "\n----\n".join(said[-12:])
    return ""


def _every(made: Cells) -> str:
    """A cell that reads every name."""
    return "\n".join(f"z_{name} = {name}" for name in NAMES[:-1] if name in made.known)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mixed_cells", description="Mix cells of two languages.")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    for seed in range(given.first, given.first + given.seeds):
        print(seed, problem(seed, given.cells) or "agrees", flush=True)


if __name__ == "__main__":
    main()
