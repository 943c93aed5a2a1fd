"""One dialogue with the engine: text in, replies out.

In: entries (TorchScript or commands).  Out: `Reply` records.  No terminal, no notebook: every door uses this one class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.types import Type
from tsrepl.session.commands import run_text
from tsrepl.session.replies import Binding, Candidate, Reply, SignatureHint
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from tsrepl.session import complete, signatures
else:
    complete, signatures = deferred("tsrepl.session.complete"), deferred("tsrepl.session.signatures")


class Session:
    """Variables, functions and classes that live on from entry to entry.

    `execute` never raises for what a user may type: errors are replies, and the session goes on after each.
    """

    def __init__(self) -> None:
        self.workspace = Workspace()

    def execute(self, text: str) -> list[Reply]:
        """Run an entry, or several; stops at the first that fails.  An interrupt stops the program and is a reply."""
        return list(self.run_text(text))

    def run_text(self, text: str, filename: str = "", *, stop: bool = True) -> Iterator[Reply]:
        """Run an entry, or several, yielding each reply as it comes.  Without `stop`, a failure does not end it."""
        self.workspace.remember(text, filename)
        return run_text(self.workspace, text, filename, stop=stop, is_typed=True)

    @property
    def prompt(self) -> str:
        """The prompt of a dialogue within the session, as the debugger's; "" for the usual one."""
        return self.workspace.partner.prompt if self.workspace.partner is not None else ""

    def evaluate(self, text: str) -> Any:
        """The value of an expression.  Raises EngineError."""
        return self.workspace.evaluate(text)[0]

    def bind(self, name: str, value: Any, type: Type) -> None:
        """Give a value a name; its static type from now on is `type`."""
        self.workspace.bind(name, value, type)

    def variables(self) -> list[tuple[str, Any, Type]]:
        """Name, value and static type of every variable."""
        return [(name, each.value, each.type) for name, each in self.workspace.variables.items()]

    def function(self, name: str) -> Function:
        """The function or method of that name.  Raises EngineError."""
        return self.workspace.target(name)

    def functions(self) -> dict[str, Function]:
        """The functions defined here, by name."""
        return self.workspace.functions()

    def bindings(self) -> tuple[Binding, ...]:
        """Everything that has a name."""
        return self.workspace.bindings()

    def complete(self, before: str) -> list[Candidate]:
        """Completions at the end of `before`."""
        return complete.candidates(self.workspace, before)

    def signature(self, before: str) -> SignatureHint | None:
        """The signature of the call that is open at the end of `before`."""
        return signatures.signature_at(self.workspace, before)

    def reset(self) -> None:
        """Forget everything."""
        self.workspace.reset()
