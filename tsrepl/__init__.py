"""tsrepl: TorchScript at the prompt, in the notebook and on the command line."""

from __future__ import annotations

from tsrepl.session.version import __version__

TYPE_CHECKING = False  # that of `typing`, which takes a while to load: Ctrl-C is not handled until the command runs
if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext tsrepl`: the notebook magics (see `tsrepl.magics`)."""
    from tsrepl import magics  # IPython looks for this function here, and only a notebook pays for loading it

    magics.load_ipython_extension(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext tsrepl` and `%reload_ext tsrepl`."""
    from tsrepl import magics  # as above

    magics.unload_ipython_extension(shell)
