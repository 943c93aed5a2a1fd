"""The arguments of the command line: errors name the nearest valid word and the usage of the command.

In: the words behind `tsrepl`.  Out: what they say; or the program ends with status 2.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import NoReturn

from engine.lang.errors import did_you_mean


class CommandParser(argparse.ArgumentParser):
    """A parser that says what was meant, perhaps."""

    def refuse(self, message: str, hints: Sequence[str] = ()) -> NoReturn:
        """End the program with the message, a hint on each line below it."""
        self.error("\n".join([message, *(f"hint: {hint}" for hint in hints)]))

    def flags(self) -> Iterator[str]:
        """The options of this parser."""
        for action in self._actions:
            yield from action.option_strings

    def commands(self) -> dict[str, CommandParser]:
        """The parsers of its commands, by name."""
        choices = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next(choices, {})


def parsed(parser: CommandParser, words: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; a mistake ends the program with hints."""
    commands = parser.commands()
    first = words[0] if words else "-"
    if not first.startswith("-") and first not in commands:
        parser.refuse(f"there is no command '{first}'", _meant(first, commands))
    options, rest = parser.parse_known_args(words)
    if rest:
        command = commands.get(options.action, parser)
        flag = next((word for word in rest if word.startswith("-")), None)
        what = "option" if flag else "place for"
        shown = (flag or rest[0]).partition("=")[0] if flag else rest[0]
        command.refuse(
            f"there is no {what} '{shown}'", did_you_mean(flag.partition("=")[0], command.flags()) if flag else ()
        )
    return options


def _meant(word: str, commands: dict[str, CommandParser]) -> tuple[str, ...]:
    """Hints for a first word that is no command and no file: a folder, or a slip."""
    if os.path.isdir(word):
        return (f"'{word}' is a folder; give the path of a file in it",)
    return did_you_mean(word, commands) or (f"the commands are {', '.join(commands)}",)
