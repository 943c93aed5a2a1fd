"""`import torch` answered by the engine's façade, for scripts and packages that are written for PyTorch.

In: `as_torch()`, or `python -m engine.torch script.py`.  Out: `torch` and every module under it mean `engine.torch`'s
in this process.  Modules that the façade does not have raise ModuleNotFoundError, names AttributeError (which
`from torch import name` turns into ImportError); neither is ever replaced by something that does nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from engine.lang.errors import ArgumentError
from engine.torch import names, other_modules
from engine.torch.version import __version__

FACADE: Final = "engine.torch"


class _AsTorch(MetaPathFinder):
    """Finds the façade's modules under the names that they have in PyTorch; in a `with` block, until its end."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        module = module_named(FACADE + fullname.removeprefix("torch"))
        if module is None:
            hint = "PyTorch is not loaded, engine.torch stands in for it; docs/compatibility.md lists what is there"
            raise ModuleNotFoundError(f"No module named '{fullname}' ({hint})", name=fullname)
        return ModuleSpec(fullname, _Existing(module), is_package=hasattr(module, "__path__"))

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """The façade as an installed package, for `importlib.metadata.version("torch")`."""
        if context is not None and context.name == "torch":
            yield _Facade()

    def give_back(self) -> None:
        """Let `import torch` mean PyTorch again, for modules that are imported from now on."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
            del sys.modules[name]

    def __enter__(self) -> _AsTorch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.give_back()


class _Facade(Distribution):
    """The façade as an installed package, for those that ask for PyTorch's version."""

    def read_text(self, filename: str) -> str | None:
        version = str(__version__)
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class _Existing(Loader):
    """Loads a module that is there already: it takes the new module's place before that is seen."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = self._module


def as_torch() -> _AsTorch:
    """Have `import torch` mean `engine.torch` in this process; the result's `give_back()` ends it.

    Raises ArgumentError where PyTorch itself is loaded: its modules are in use, and the two do not mix.
    """
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not sys.modules.get(FACADE):
        raise ArgumentError(
            f"PyTorch itself is loaded, from {getattr(loaded, '__file__', None) or 'an unknown place'}",
            hints=("call engine.as_torch() before anything imports torch, in a process of its own",),
        )
    finder = next((each for each in sys.meta_path if isinstance(each, _AsTorch)), None)
    if finder is None:
        finder = _AsTorch()
        sys.meta_path.insert(0, finder)
    return finder


def module_named(name: str) -> ModuleType | None:
    """The façade's module of that name, by its file or by a table; None without one."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, last = name.rpartition(".")
    if parent != "engine":
        above = module_named(parent)
        if above is None:
            return None
        value = vars(above).get(last) if parent != FACADE else names.MODULES.get(last)
        if isinstance(value, ModuleType):
            return value
        if isinstance(value, str) and value != name:
            return importlib.import_module(value)
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # the module above is made of a table
        spec = None
    return other_modules.find(name) if spec is None else importlib.import_module(name)
