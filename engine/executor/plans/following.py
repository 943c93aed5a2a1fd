"""Parts of plans that follow the compile mode.

In: a part that installs what the mode asks for.  Out: the same, done again at the next call after the mode has changed:
a plan that is not called again costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol
from weakref import WeakSet

from engine.fuser.backend import tiering

Run = Callable[..., Any]


class Follower(Protocol):
    """A part that is told of changes."""

    def follow_mode(self) -> None:
        """The compile mode has changed."""


class FollowsMode:
    """A follower that starts anew with the next call.  `entry` gives the plan's function, `enter_by` sets it alone."""

    __slots__ = ()
    entry: Callable[[], Run]
    enter_by: Callable[[Run], None]

    def start(self) -> None:
        """Install the function that the compile mode asks for, also where that changes meanwhile."""
        installed = None
        while installed != (mode := tiering.mode()):
            self.install_for(mode)
            installed = mode

    def install_for(self, mode: tiering.Mode) -> None:
        """Install the function that this compile mode asks for."""
        raise NotImplementedError

    def follow_mode(self) -> None:
        """Let the next call start anew."""
        self.enter_by(self._start_and_run)

    def catch_up(self) -> None:
        """Start anew now, if the next call would."""
        if self.entry() == self._start_and_run:
            self.start()

    def _start_and_run(self, *args: Any) -> Any:
        self.start()
        return self.entry()(*args)


FOLLOWERS: Final[WeakSet[Follower]] = WeakSet()
"""Those that are told when the mode changes; who is ready for that adds itself."""


def _follow_mode() -> None:
    for each in [*FOLLOWERS]:
        each.follow_mode()


tiering.when_mode_changes(_follow_mode)
