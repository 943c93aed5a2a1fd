"""The door for notebooks: `%load_ext tsrepl`.

In: an IPython shell.  Out: the cell magic `%%torchscript`, and a line magic `%tsjit_NAME` for every command of the
session.
"""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from tsrepl.magics.magics import TorchScriptMagics


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext tsrepl`."""
    TorchScriptMagics(shell).register()
