"""Keys that come before the prompt stands.

In: nothing.  Out: a context in which the terminal shows no keys.  They wait for the prompt, which shows them then; it
would be the second time if the terminal had shown them too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import termios

    _FLAGS = 3
    """The place of the flags that tell of echo among the terminal's attributes."""

    @contextmanager
    def unseen() -> Iterator[None]:
        """While this lasts, keys are kept and not shown.  Standard input is a terminal."""
        before = termios.tcgetattr(sys.stdin)
        silent = [*before]
        silent[_FLAGS] &= ~termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
else:

    @contextmanager
    def unseen() -> Iterator[None]:
        """Nothing: a console on Windows shows keys when they are read."""
        yield
