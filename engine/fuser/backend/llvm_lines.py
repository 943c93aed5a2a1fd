"""Lines of kernels in LLVM's texts: debug locations, which say of each instruction the statement that it is from.

In: a module of `llvmlite.ir`, and functions that are written into it with the lines of `kernel_text.numbered`; later on
LLVM's texts of it.  Out: the metadata that a builder gives to instructions; `Listing`s, which are the texts without it,
and the line of each of theirs.

Functions of numbers have no lines of their own: what is inlined of them has that of their call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from engine.fuser.backend.llvm_numbers import ir
from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """A function whose instructions have lines; `file` and `unit` are those of its module."""

    module: Any
    file: Any
    unit: Any
    function: Any = None

    @classmethod
    def of(cls, module: Any) -> Scope:
        """The beginning of all scopes of a module: the text that its kernels have."""
        lib = ir()
        file = module.add_debug_info("DIFile", {"filename": "kernel", "directory": ""})
        kind = {"language": lib.DIToken("DW_LANG_C"), "emissionKind": lib.DIToken("DebugDirectivesOnly")}
        unit = module.add_debug_info("DICompileUnit", {"file": file, **kind}, is_distinct=True)
        module.add_named_metadata("llvm.dbg.cu", unit)
        whole = lib.IntType(32)
        module.add_named_metadata("llvm.module.flags", [whole(2), _VERSION, whole(3)])
        return cls(module, file, unit)

    def inside(self, function: Any, line: int) -> Scope:
        """That of a function, whose text begins at the line."""
        lib = ir()
        signature = self.module.add_debug_info("DISubroutineType", {"types": None})
        facts = {
            "name": function.name, "file": self.file, "line": line, "unit": self.unit, "type": signature,
            "spFlags": lib.DIToken("DISPFlagDefinition"),
        }  # fmt: skip
        found = self.module.add_debug_info("DISubprogram", facts, is_distinct=True)
        function.set_metadata("dbg", found)
        return Scope(self.module, self.file, self.unit, found)

    def at(self, line: int) -> Any:
        """The location of a line."""
        return self.module.add_debug_info("DILocation", {"line": line, "scope": self.function})


_VERSION: Final = "Debug Info Version"

# ------------------------------------------------------------------ reading


@dataclass(frozen=True, slots=True)
class Listing:
    """A text, and for each of its lines the line of the kernel's text that it is from; 0 for none."""

    text: str
    lines: tuple[int, ...]

    @classmethod
    def of(cls, rows: Iterator[tuple[str, int]]) -> Listing:
        found = [*rows]
        return cls("".join(f"{text}\n" for text, _ in found), tuple(line for _, line in found))


def listing_of_llvm(text: str) -> Listing:
    """LLVM's text of a module."""
    return Listing.of(_llvm_rows(text))


def _llvm_rows(text: str) -> Iterator[tuple[str, int]]:
    known = {name: int(line["line"]) for name, fields in _NOTE.findall(text) if (line := _LINE.search(fields))}
    kept = [each for each in text.splitlines() if not _OF_LINES.match(each)]
    left = (each.partition(" = ")[0] for each in kept if _NOTED.match(each))
    names = {name: f"!{i}" for i, name in enumerate(left)}
    for each in kept:
        found = _MARK.search(each)
        plain = _MARK.sub("", each).rstrip()
        yield _NAME.sub(lambda name: names.get(name[0], name[0]), plain), known.get(found["name"], 0) if found else 0


_NOTE: Final = pattern_of(r"^(!\d+) = (?:distinct )?!DI\w+\((.*)\)$", re.M)
_LINE: Final = pattern_of(r"\bline: (?P<line>\d+)")
_MARK: Final = pattern_of(r",? !dbg (?P<name>!\d+)")
_OF_LINES: Final = pattern_of(
    rf'!\d+ = (?:distinct )?!DI|!llvm\.dbg\.cu =|!llvm\.module\.flags =|!\d+ = !{{ ?i32 2, !"{_VERSION}"'
)
_NOTED: Final = pattern_of(r"!\d+ = ")
_NAME: Final = pattern_of(r"!\d+")


def listing_of_assembly(text: str) -> Listing:
    """LLVM's text of a module's machine code, or PTX."""
    return Listing.of(_assembly_rows(text))


def _assembly_rows(text: str) -> Iterator[tuple[str, int]]:
    line = 0
    for each in text.splitlines():
        if found := _PLACE.match(each):
            line = int(found["line"])
        elif not _DIRECTIVE.match(each):
            is_instruction = _INSTRUCTION.match(each) is not None
            line = line if is_instruction or _INNER.match(each) else 0
            yield each, line if is_instruction else 0


_PLACE: Final = pattern_of(r"\s*\.loc\s+\d+\s+(?P<line>\d+)")
_DIRECTIVE: Final = pattern_of(
    r"\s*\.(?:file|cfi_\w+)\b|\s*\.section\s+\.debug_|(?:\.L|\$L__)(?:func_begin|tmp)\d+:|\$L__func_end\d+:"
)
"""Directives and labels for lines, and for finding callers: nothing that runs."""
_INSTRUCTION: Final = pattern_of(r"\s+[^.\s#/]")
_INNER: Final = pattern_of(r"\s|[.$]")
