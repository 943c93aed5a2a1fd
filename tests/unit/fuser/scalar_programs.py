"""Generated programs of ints, floats, bools, lists and dicts, in TorchScript."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

INTS = (0, 1, -1, 2, 3, 7, -5, 10, 63, 64, 2**31, -(2**31), 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1)
FLOATS = (0.0, -0.0, 0.5, -1.5, 2.0, 3.25, 1e300, -1e300, 5e-324, 1e19, -1e19, 2.0**63)
_TYPES = {"i": "int", "x": "float", "b": "bool", "xs": "List[int]", "ys": "List[float]", "d": "Dict[int, int]"}
_INT = ("{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} // {i}", "{i} % {i}", "-{i}", "{i} & {i}", "{i} | {i}", "{i} ^ {i}",
        "{i} << {i}", "{i} >> {i}", "abs({i})", "min({i}, {i})", "max({i}, {i})", "int({x})", "int({b})",
        "{i} % 8", "{i} // 4", "{i} // -3", "{i} % -7", "len({xs})", "{xs}[{i}]", "{xs}[{i} % 3]", "len({d})",
        "{d}[{i}]", "{d}.get({i}, {i})", "{xs}.count({i})", "{i} if {b} else {i}", "sum({xs})", "{xs}[-1]",
        "math.floor({x})", "math.gcd({i}, {i})", "{xs}.index({i})", "max({xs})")  # fmt: skip
_FLOAT = ("{x} + {x}", "{x} - {x}", "{x} * {x}", "{x} / {x}", "{i} / {i}", "{x} // {x}", "{x} % {x}", "{x} ** {x}",
          "{x} * {i}", "{i} - {x}", "-{x}", "abs({x})", "min({x}, {x})", "max({x}, {i})", "float({i})", "float({b})",
          "math.sqrt({x})", "math.exp({x})", "math.log({x})", "math.sin({x})", "math.tanh({x})", "{ys}[{i} % 2]",
          "sum({ys})", "{x} if {b} else {x}", "math.fmod({x}, {x})", "math.copysign({x}, {x})")  # fmt: skip
_BOOL = ("{i} < {i}", "{i} == {i}", "{x} >= {x}", "{x} != {i}", "{i} > {x}", "not {b}", "{b} and {b}", "{b} or {b}",
         "{i} in {xs}", "{i} in {d}", "{x} in {ys}", "bool({i})", "bool({x})", "{xs} == {xs}", "{ys} != {ys}",
         "{b} == {b}", "math.isnan({x})", "math.isinf({x})")  # fmt: skip
_EXPRESSIONS = {"i": _INT, "x": _FLOAT, "b": _BOOL}
_STATEMENTS = ("{xs}.append({i})", "{ys}.append({x})", "{d}[{i}] = {i}", "{xs}.insert({i}, {i})", "{xs}.pop()",
               "{xs}[{i} % 3] = {i}", "{xs}.extend({xs})", "{xs}.reverse()", "{ys}.clear()", "del {d}[{i}]",
               "{i:=} = {xs}.pop({i} % 2)", "{xs:=} = {xs} + [{i}]", "{xs:=} = {xs}[{i} % 4:]", "{xs:=} = [{i}, {i}]",
               "{xs:=} = {xs}[:{i}:2]", "{xs:=} = {xs}[{i}:{i}]", "{ys:=} = [{x}, {x}]",
               "{d:=} = {{{i}: {i}}}", "{xs:=} = list({d}.keys())",
               "{xs:=} = list({d}.values())", "{d}.update({d})", "{xs:=} = [{i}] * ({i} % 5)", "{xs:=} = {xs}.copy()",
               "{d:=} = {d}.copy()", "{d}.clear()", "{i:=} = {d}.pop({i})", "{xs}.remove({i})", "{xs}.sort()",
               "{ys}.sort(reverse=True)", "{xs}.sort(reverse=True)", "{xs:=} = sorted({xs})",
               "{ys:=} = sorted({ys})")  # fmt: skip


@dataclass
class Generator:
    """Programs of one seed."""

    seed: int
    lines: list[str] = field(default_factory=list)
    fresh: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def program(self) -> str:
        """A function `f` of two ints, a float, a bool and a list, which returns a number or a list."""
        self.lines = ["def f(i0: int, i1: int, x0: float, b0: bool, xs0: List[int]):"]
        for line in ("i2 = 1", "x1 = 0.25", "b1 = not b0", "xs1 = [i0, 3, 5]", "ys0 = [x0, 0.5]", "ys1 = [1.0, 2.0]",
                     "d0 = {i0: i1, 1: 2}", "d1 = {7: 7}"):  # fmt: skip
            self.lines.append(f"    {line}")
        self.block(4, 1, 2)
        self.lines.append(f"    return {self.random.choice(('i0, i1, i2, x0, x1, b0', 'xs0, ys0, d0', 'i2', 'xs1'))}")
        return "\n".join(self.lines) + "\n"

    def name(self, kind: str) -> str:
        return kind + str(self.random.randrange({"i": 3, "x": 2, "b": 2}.get(kind, 2)))

    def filled(self, template: str, depth: int) -> str:
        for kind in _TYPES:
            while f"{{{kind}:=}}" in template:
                template = template.replace(f"{{{kind}:=}}", self.name(kind), 1)
            while f"{{{kind}}}" in template:
                template = template.replace(f"{{{kind}}}", self.expression(kind, depth - 1), 1)
        return template.replace("{{", "{").replace("}}", "}")

    def expression(self, kind: str, depth: int) -> str:
        if kind not in _EXPRESSIONS or (depth <= 0 and self.random.random() < 0.7):
            return self.name(kind)
        if depth <= 0:
            return self.constant(kind)
        return f"({self.filled(self.random.choice(_EXPRESSIONS[kind]), depth)})"

    def constant(self, kind: str) -> str:
        if kind == "i":
            return (
                f"int({self.random.choice(INTS)})"
                if self.random.random() < 0.1
                else f"(0 + {self.random.choice(INTS)})"
            )
        return f"({self.random.choice(FLOATS)!r})" if kind == "x" else self.random.choice(("True", "False"))

    def block(self, statements: int, indent: int, depth: int) -> None:
        for _ in range(statements):
            self.statement(indent, depth)

    def statement(self, indent: int, depth: int) -> None:
        what, pad = self.random.random(), "    " * indent
        if what < 0.35 or (depth == 0 and what > 0.6):
            kind = self.random.choice("ixb")
            self.lines.append(f"{pad}{self.name(kind)} = {self.expression(kind, 2)}")
        elif what < 0.6:
            self.lines.append(pad + self.filled(self.random.choice(_STATEMENTS), 1))
        elif what < 0.75:
            self.lines.append(f"{pad}if {self.expression('b', 2)}:")
            self.block(2, indent + 1, depth - 1)
            self.lines.append(f"{pad}else:")
            self.block(1, indent + 1, depth - 1)
        else:
            self.loop(indent, depth)

    def loop(self, indent: int, depth: int) -> None:
        self.fresh += 1
        pad, k = "    " * indent, f"k{self.fresh}"
        heads = (
            f"for {k} in range({self.random.randrange(6)}):",
            f"for {k} in range({self.name('i')} % 5, 9, {self.random.choice((1, 2, 3))}):",
            f"for {k} in range(5, {self.name('i')} % 4, -2):", f"for {k} in {self.name('xs')}[:4]:",
            f"for {k} in list({self.name('d')}.keys())[:3]:", "while",
        )  # fmt: skip
        head = self.random.choice(heads)
        if head == "while":
            self.lines.append(f"{pad}{k} = 0")
            head = f"while {k} < 4 and {self.expression('b', 1)}:"
        self.lines.append(pad + head)
        if head.startswith("while"):
            self.lines.append(f"{pad}    {k} += 1")
        self.lines.append(f"{pad}    i{self.random.randrange(3)} += {k}")
        self.block(2, indent + 1, depth - 1)
