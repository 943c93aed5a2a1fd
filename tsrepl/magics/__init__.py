"""The door for notebooks: `%load_ext tsrepl`.

In: an IPython shell.  Out: the cell magic `%%torchscript`, and a line magic `%tsjit_NAME` for every command of the
session.  A session belongs to its shell: it lives on when the extension is unloaded, so that loading it again goes on
where that was.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from IPython.core.interactiveshell import InteractiveShell

from tsrepl.magics.magics import TorchScriptMagics
from tsrepl.session.session import Session

_MAGICS: Final[WeakKeyDictionary[InteractiveShell, TorchScriptMagics]] = WeakKeyDictionary()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext tsrepl`."""
    if shell not in _MAGICS:
        _MAGICS[shell] = TorchScriptMagics(shell)
    _MAGICS[shell].register()


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%unload_ext tsrepl` and `%reload_ext tsrepl`: the names stay, what the extension added goes."""
    if shell in _MAGICS:
        _MAGICS[shell].unregister()


def active_session(shell: InteractiveShell) -> Session:
    """The session of the shell's cells.  Raises KeyError where the extension was never loaded."""
    return _MAGICS[shell].session
