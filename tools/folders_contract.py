"""An import contract: no two folders import each other, in either direction of their modules, annotations included.

In: the graph of imports.  Out: kept, or the imports of the smaller direction of each pair of folders.  The layers in
`pyproject.toml` say which folder may know which; this contract needs no list, so a new folder is held to it at once.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class NoMutualFolders(Contract):
    """No two folders import each other; a package's `__init__` belongs to the package's own folder."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        imports: dict[tuple[str, str], list[str]] = defaultdict(list)
        for module in graph.modules:
            for imported in graph.find_modules_directly_imported_by(module):
                if not graph.is_module_squashed(imported):
                    imports[_folder(module), _folder(imported)].append(f"{module} -> {imported}")
        mutual = {pair: found for pair, found in imports.items() if pair[0] < pair[1] and pair[::-1] in imports}
        smaller = {pair: min(found, imports[pair[::-1]], key=len) for pair, found in mutual.items()}
        return ContractCheck(kept=not smaller, metadata={"mutual": smaller})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for (one, other), found in sorted(check.metadata["mutual"].items()):
            output.print_error(f"{one} and {other} import each other; the fewer imports are")
            for line in sorted(found):
                output.print_error(f"    {line}")


def _folder(module: str) -> str:
    """The folder of a module's file, from the root of the repository, where the check runs."""
    is_package = Path(*module.split("."), "__init__.py").exists()
    return module if is_package else module.rpartition(".")[0]
