"""PyTorch's own tests of TorchScript, run with the engine in place of torch.

    python tools/pytorch_suite SOURCE [ARGS...]        e.g. SOURCE jit/test_union.py -k enum

`SOURCE` is an unpacked source tree of PyTorch (Debian's source package `pytorch` has one), of which `test/` and
`torch/testing/` are read; ARGS are pytest's, seen from `SOURCE/test`; without any it is `test_jit.py`, which has the
tests of most files of `jit`, too.  With `TORCH=1` in the environment they run with the torch that is installed: a
failure there as well says nothing about the engine.
Needs pytest-timeout, expecttest and parameterized.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
INTERNAL: Final = "torch.testing._internal"
SECONDS: Final = 30
"""Seconds after which a test has failed."""

OF_PHONES: Final = {"jit.test_backend_nnapi": ("TestNnapiBackend",)}
ONLY_IMPORTED: Final = {**OF_PHONES, "torch.autograd.gradcheck": ("_get_numerical_jacobian", "_iter_tensors")}
"""Modules, and names of them, that the tests import and that nothing here calls: of phones, of numerical gradients."""


class TestHelpers:
    """Finds the modules that the tests share: those beside this file first, which need only torch's public names."""

    def __init__(self, source: Path) -> None:
        self._internal = source / "torch" / "testing" / "_internal"

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(INTERNAL):
            return None
        inside = name.removeprefix(INTERNAL).lstrip(".").replace(".", "/")
        for file in (HERE / f"{inside}.py", self._internal / f"{inside}.py"):
            if inside and file.exists():
                return importlib.util.spec_from_file_location(name, file)
        folder = self._internal / inside
        return importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


def main(source: Path, arguments: list[str]) -> int:
    """Run the tests; pytest's exit status."""
    if os.environ.get("TORCH") == "1":
        import_module("torch")  # it asks for helpers of its own release, before those of the source take their names
        frontend = import_module("torch.jit.frontend")
        vars(frontend).setdefault("_IS_ASTUNPARSE_INSTALLED", True)  # older tests ask for it, newer releases lack it
    else:
        import engine

        engine.as_torch()
    for name, members in (OF_PHONES if os.environ.get("TORCH") == "1" else ONLY_IMPORTED).items():
        sys.modules[name] = module = ModuleType(name)
        vars(module).update(dict.fromkeys(members, object))
        # pytest takes a test's module for another where it has no such file
        module.__file__ = str(source / "test" / f"{name.replace('.', '/')}.py")
    for name in [name for name in sys.modules if name.startswith(INTERNAL)]:
        del sys.modules[name]
    sys.meta_path.insert(0, TestHelpers(source))
    tests = source / "test"
    os.chdir(tests)
    sys.path.insert(0, str(tests))
    own = ["-q", "--tb=short", f"--rootdir={tests}", f"--timeout={SECONDS}", "-o", "python_files=test_*.py"]
    own += "-c /dev/null -p no:cacheprovider -p no:warnings --noconftest --continue-on-collection-errors".split()
    return int(pytest.main([*own, *(arguments or ["test_jit.py"])]))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
