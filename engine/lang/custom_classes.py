"""Classes that are not written in TorchScript: PyTorch and its extensions register them from C++.

In: a qualified name, `__torch__.torch.classes.quantized.LinearPackedParamsBase`.  Out: its type.  The builtin types
exist once, so that operators' schemas and all archives share them; for any other, each archive has a type of its own,
whose objects are kept unchanged and have no methods.  So has it for a class of programs whose code is not there.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from engine.lang.errors import MissingOperatorError
from engine.lang.types import ClassType, Type

PREFIX: Final = "__torch__.torch.classes."
_BUILT_IN: Final = {
    f"{PREFIX}{name}": ClassType(f"{PREFIX}{name}")
    for name in (
        "quantized.LinearPackedParamsBase", "quantized.Conv2dPackedParamsBase", "quantized.Conv3dPackedParamsBase",
        "quantized.EmbeddingPackedParamsBase", "rnn.CellParamsBase", "profiler._RecordFunction",
        "xnnpack.LinearOpContext", "xnnpack.Conv2dOpContext", "xnnpack.TransposeConv2dOpContext",
    )
}  # fmt: skip


_EXTENSION: Final = "the class comes from an extension of PyTorch; its objects are kept, shown and saved as they are"


class _UnknownMethods(dict[str, Any]):
    """The methods of an unknown class: none can be called."""

    def __init__(self, owner: str, called: list[str]) -> None:
        super().__init__()
        self._owner, self._called = owner, called
        self.calls: Counter[str] = Counter()

    def note(self, name: str) -> None:
        """Note that a program calls the method."""
        self.calls[f"{self._owner}.{name}"] += 1
        self._called.append(f"{self._owner}.{name}")

    def __missing__(self, name: str) -> Any:
        raise MissingOperatorError(
            f"the method '{name}' of the class '{self._owner}' is not known here",
            hints=(_why_unknown(self._owner),),
        )


def is_custom_name(qualname: str) -> bool:
    """True for names like `__torch__.torch.classes.mylib.Thing`."""
    return qualname.startswith(PREFIX) and "." in qualname.removeprefix(PREFIX)


def is_custom(type: ClassType) -> bool:
    """True for a class that is not written in TorchScript, and for one whose code is not there."""
    return is_custom_name(type.qualname) or isinstance(type.methods, _UnknownMethods)


def builtin(name: str) -> ClassType:
    """The builtin class of that name, given without its prefix."""
    return _BUILT_IN[f"{PREFIX}{name}"]


def find(qualname: str) -> ClassType | None:
    """The builtin class of that name."""
    return _BUILT_IN.get(qualname)


def is_foreign(type: ClassType) -> bool:
    """True for a class that only an archive knows."""
    return is_custom(type) and type.qualname not in _BUILT_IN


def unknown_calls(type: ClassType) -> Counter[str]:
    """Number of calls of each method of a class that only an archive knows, in the code that was compiled so far."""
    return type.methods.calls if isinstance(type.methods, _UnknownMethods) else Counter()


def refuse_to_make(type: ClassType) -> Any:
    """Raises MissingOperatorError for an object of a class that only an archive knows."""
    raise MissingOperatorError(f"the class '{type.qualname}' is not known here", hints=(_why_unknown(type.qualname),))


def _why_unknown(qualname: str) -> str:
    return _EXTENSION if is_custom_name(qualname) else "the archive does not hold the code of the class"


def note_unknown(type: Type, name: str) -> None:
    """Note that a program uses something of the class, if only an archive knows that."""
    if isinstance(type, ClassType) and isinstance(type.methods, _UnknownMethods):
        type.methods.note(name)


def foreign(qualname: str, called: list[str]) -> ClassType:
    """A class that only an archive knows; `called` gets the names of methods that its code calls."""
    return ClassType(qualname, methods=_UnknownMethods(qualname, called))
