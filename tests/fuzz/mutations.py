"""Programs with mistakes in them.

In: program texts and a `random.Random`.  Out: texts that are almost programs: tokens deleted, doubled, swapped or
replaced, lines moved between programs, indentation changed, odd characters put in.  The same seed gives the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_TOKEN: Final = re.compile(
    r"'[^'\n]*'|\"[^\"\n]*\"|\d[\w.]*|\w+|[^\S\n]+|\n|//|\*\*|->|==|!=|<=|>=|<<|>>|[-+*/%|&^]=|.", re.DOTALL
)
_WORDS: Final = (
    "def class if elif else while for in return is not and or True False None global pass break continue assert raise "
    "del import with as lambda yield try except async await nonlocal from match self super print len range zip "
    "enumerate int float bool str complex List Dict Tuple Optional Union Any Tensor torch math nn Final Enum "
    "isinstance hasattr getattr list dict tuple min max sorted type annotate unchecked_cast uninitialized fork wait "
    "jit append items keys values shape dtype device forward NamedTuple __init__ __enter__ __exit__ no_grad inf "
    "Ellipsis 0 1 -1 2.5 1e400 1j 0x1F 08 9223372036854775807 9223372036854775808 99999999999999999999999 1_000 0b1 "
    "+ - * / // % ** @ << >> & | ^ ~ < > <= >= == != = += -= *= /= //= %= **= @= := -> ... . , : ; ( ) [ ] { } ? ! "
    "'' 'a' \"b\" '''c''' f'{x}' r'\\d' b'x' '\\x41' '\\400' #"
)
_PHRASES: Final = (
    "is not", "not in", "# type: (int) -> int", "\\\n", "lambda x: x", "x if x else x", "[x for x in x]",
)  # fmt: skip
VOCABULARY: Final = (*_WORDS.split(" "), *_PHRASES)
ODD: Final = (
    "\0", "\t", "\r", "\f", "\v", "\r\n", "\ufeff", "\u2028", "\xa0", "é", "λ", "変", "\U0001f600", "\ud800", "$", "`",
    "\x7f",
)  # fmt: skip
"""Characters that no token begins with, or that only some readers of text take for blanks."""

Mutation = Callable[[list[str], Random, Sequence[str]], None]
"""Changes a program's parts in place; other programs to take from are the last argument."""


def mutant(programs: Sequence[str], random: Random) -> str:
    """One of the programs, changed in one to four places."""
    text = random.choice(programs)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        by_line = random.random() < 0.3
        parts = text.split("\n") if by_line else _TOKEN.findall(text)
        if parts:
            random.choice(_OF_LINES if by_line else _OF_TOKENS)(parts, random, programs)
        text = ("\n" if by_line else "").join(parts)
    return text


def _delete(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    start = random.randrange(len(parts))
    del parts[start : start + random.choice((1, 1, 1, 2, 3, 8))]


def _duplicate(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    start = random.randrange(len(parts))
    again = parts[start : start + random.choice((1, 1, 2, 5))]
    parts[start:start] = again * random.choice((1, 1, 1, 3))


def _swap(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    first, second = random.randrange(len(parts)), random.randrange(len(parts))
    parts[first], parts[second] = parts[second], parts[first]


def _replace_by_word(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    parts[_word(parts, random)] = random.choice(VOCABULARY)


def _replace_by_own(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    """A word becomes another of the same program: what comes out often parses, with other types."""
    parts[_word(parts, random)] = parts[_word(parts, random)]


def _replace_by_foreign(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    other = _TOKEN.findall(random.choice(programs)) or [""]
    start = random.randrange(len(other))
    parts[_word(parts, random)] = "".join(other[start : start + random.choice((1, 1, 3, 6, 12))])


def _insert_word(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    parts.insert(random.randrange(len(parts) + 1), f" {random.choice(VOCABULARY)} ")


def _insert_odd(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    parts.insert(random.randrange(len(parts) + 1), random.choice(ODD))


def _bracket(parts: list[str], random: Random, programs: Sequence[str]) -> None:
    """A word gets brackets, an index, a sign or an operator."""
    at = _word(parts, random)
    parts[at] = random.choice(("({})", "[{}]", "({},)", "{}[0]", "{}()", "-{}", "*{}", "not {}", "{}.x", "{{1: {}}}",
                               "{} + {}", "{} if {} else None", "{} is None", "Optional[{}]", "List[{}]")).replace(
        "{}", parts[at])  # fmt: skip


def _splice(lines: list[str], random: Random, programs: Sequence[str]) -> None:
    """Lines of another program."""
    other = random.choice(programs).split("\n")
    start, at = random.randrange(len(other)), random.randrange(len(lines) + 1)
    lines[at:at] = other[start : start + random.choice((1, 1, 2, 4))]


def _indent(lines: list[str], random: Random, programs: Sequence[str]) -> None:
    at = random.randrange(len(lines))
    blanks = random.choice(("", " ", "  ", "    ", "        ", "\t", " \t", "\f", "\xa0"))
    lines[at] = blanks + (lines[at].lstrip() if random.random() < 0.6 else lines[at])


def _statement(lines: list[str], random: Random, programs: Sequence[str]) -> None:
    """A whole statement that ends or bends a block, as deep as the line it comes before."""
    at = random.randrange(len(lines))
    blanks = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.insert(at, blanks + random.choice(_STATEMENTS))


def _word(parts: list[str], random: Random) -> int:
    """The index of a part that is no blank, if there is one."""
    at = random.randrange(len(parts))
    return next((index for index in range(at, len(parts)) if parts[index].strip()), at)


_STATEMENTS: Final = (
    "return", "return None", "return x", "break", "continue", "raise ValueError('a')", "assert False", "pass", "del x",
    "if x is None: return", "x = None", "x: Optional[int] = None", "x = []", "x = {}", "a, b = x", "x += 1", "x[0] = x",
    "for i in x: pass", "while True: break", "with torch.no_grad(): pass", "def g(): return 1", "x.y = 1", "x = x, x",
)  # fmt: skip
_OF_TOKENS: Final[tuple[Mutation, ...]] = (
    _delete, _duplicate, _swap, _replace_by_word, _replace_by_own, _replace_by_own, _replace_by_foreign, _insert_word,
    _insert_odd, _bracket, _bracket,
)  # fmt: skip
_OF_LINES: Final[tuple[Mutation, ...]] = (_delete, _duplicate, _swap, _splice, _splice, _indent, _statement, _statement)
