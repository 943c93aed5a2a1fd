"""`torch.jit.mobile`: programs for phones, loaded and looked at.

In: files with bytecode.  Out: `LiteScriptModule`s, which run as other programs do, and facts about files.
"""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO, Final, NamedTuple

from engine.aten.dispatch import table
from engine.executor.interpreter.budget import Budget, BudgetedRunner
from engine.executor.interpreter.interpreter import run_function
from engine.lang import scalars
from engine.lang.errors import ArchiveError, ArgumentError
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.mobile.bytecode import MobileProgram
from engine.serialize.mobile.file import is_flatbuffer, open_program
from engine.serialize.mobile.load import mobile_program
from engine.serialize.mobile.records import root_of
from engine.serialize.mobile.save import FLAT_VERSION, PICKLED_VERSION
from engine.torch.jit.scripting.script_module import ScriptModule, wrap
from engine.torch.jit.settings import export_opnames

Source = str | os.PathLike[str] | BinaryIO
_FORMS: Final[dict[int, Any]] = {PICKLED_VERSION: "mobile", FLAT_VERSION: "flatbuffer"}


class LiteScriptModule:
    """A program for phones; `_c` is the compiled module that it is."""

    def __init__(self, module: ScriptModule) -> None:
        self._c = module

    def __call__(self, *inputs: Any) -> Any:
        return self._c(*inputs)

    def forward(self, *inputs: Any) -> Any:
        return self._c(*inputs)

    def find_method(self, method_name: str) -> bool:
        """True if the program has the method."""
        return method_name in self._c._ivalue.type.methods

    def run_method(self, method_name: str, *inputs: Any) -> Any:
        """Call a method by its name.  Raises ArgumentError for an unknown one."""
        if not self.find_method(method_name):
            raise ArgumentError(f"Method '{method_name}' is not defined.")
        return self._c.__getattr__(method_name)(*inputs)


def _load_for_lite_interpreter(f: Source, map_location: scalars.device | str | None = None) -> LiteScriptModule:
    """The program in a file for phones.  Raises ValueError for a path without a file, ArchiveError."""
    _check(f)
    module: ScriptModule = wrap(load_archive(f, None, map_location, BudgetedRunner(Budget())))
    return LiteScriptModule(module)


def _export_operator_list(module: Any) -> set[str]:
    """The qualified names of the operators that the methods of the program call."""
    return set(export_opnames(module._c if isinstance(module, LiteScriptModule) else module))


def _get_model_bytecode_version(f_input: Source) -> int:
    """The version of a file's bytecode.  Raises ArchiveError for a file without any."""
    return _program(f_input).version


def _get_mobile_model_contained_types(f_input: Source) -> set[str]:
    """The types that the bytecode names, those inside of others one by one: `{"List", "int"}`."""
    return _words_of(_program(f_input))


def _words_of(program: MobileProgram) -> set[str]:
    texts = [text for function in program.functions for text in function.types]
    words = (word for text in texts for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split())
    return set(words)


class OperatorInfo(NamedTuple):
    """The number of arguments that an operator's schema has; None for one that is not known."""

    num_schema_args: int | None


def _get_model_ops_and_info(f_input: Source) -> dict[str, OperatorInfo]:
    """The operators that the bytecode calls, by their qualified names."""
    found = {}
    for name in _program(f_input).operators():
        entry = table.find(name)
        found[name] = OperatorInfo(None if entry is None else len(entry.schema.arguments))
    return found


def get_flatbuffer_module_info(path_or_file: Source) -> dict[str, Any]:
    """A flatbuffer's versions of bytecode and operators, functions, types, and operators with numbers of arguments.

    The number is that which calls write; -1 where the file does not say.  Raises ArchiveError.
    """
    container = open_program(path_or_file)
    program = mobile_program(container) if is_flatbuffer(container) else None
    if program is None:
        raise ArchiveError("the file is no flatbuffer", hints=("torch.jit.save_jit_module_to_flatbuffer writes them",))
    operators = {each for function in program.functions for each in function.operators}
    return {
        "bytecode_version": program.version,
        "operator_version": root_of(container)["operator_version"],
        "function_names": {function.name for function in program.functions},
        "type_names": _words_of(program),
        "opname_to_num_args": {str(each): -1 if each.arguments is None else each.arguments for each in operators},
    }


def extra_files_from_buffer(buffer: bytes, extra_files: dict[str, Any]) -> None:
    """Put all extra files of a flatbuffer into the dict.  Raises ArchiveError."""
    container = open_program(io.BytesIO(buffer))
    for name in container.records:
        folder, _, rest = name.partition("/")
        if folder == "extra":
            extra_files[rest] = container.read(name)


def _backport_for_mobile(f_input: Source, f_output: str | os.PathLike[str], to_version: int) -> bool:
    """Write the program in another version of bytecode, 8 (a zip archive) or 9 (a flatbuffer); False for others."""
    return _backport(f_input, to_version, f_output)


def _backport_for_mobile_to_buffer(f_input: Source, to_version: int) -> bytes:
    """The program in another version of bytecode.  Raises ArgumentError for a version that is not written."""
    buffer = io.BytesIO()
    if not _backport(f_input, to_version, buffer):
        raise ArgumentError(f"bytecode of version {to_version} is not written", hints=("versions 8 and 9 are",))
    return buffer.getvalue()


def _backport(f_input: Source, version: int, target: Any) -> bool:
    _check(f_input)
    if version not in _FORMS:
        return False
    module = load_archive(f_input, run=BudgetedRunner(Budget()))
    save_archive(module, target, None, run_function, form=_FORMS[version])
    return True


def _program(source: Source) -> MobileProgram:
    _check(source)
    found = mobile_program(open_program(source))
    if found is None:
        hint = "torch.jit.save writes none; _save_for_lite_interpreter does"
        raise ArchiveError("the file has no bytecode", record="bytecode.pkl", hints=(hint,))
    return found


def _check(source: Source) -> None:
    """Raises ValueError for a path where there is no file."""
    if isinstance(source, (str, os.PathLike)):
        if not os.path.exists(source):
            raise ValueError(f"The provided filename {source} does not exist")
        if os.path.isdir(source):
            raise ValueError(f"The provided filename {source} is a directory")
