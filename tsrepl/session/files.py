"""Commands about files: save and load.

In: paths.  Out: files written in one step, names in the session.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.ir.constants import type_of
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.deferred import deferred
from engine.lang.errors import EngineError, MissingDeviceError
from engine.lang.types import STR, TENSOR, DictType
from engine.serialize.container.file_bytes import shell_word
from tsrepl.session.failures import SessionError, UsageError
from tsrepl.session.modules import module_node
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from engine.executor.interpreter import budget
    from engine.serialize import archive
    from engine.serialize.identify import identify as identifying
    from engine.serialize.inspect import weights as weight_files
    from tsrepl.session import arrays
else:
    budget, archive = deferred("engine.executor.interpreter.budget"), deferred("engine.serialize.archive")
    identifying = deferred("engine.serialize.identify.identify")
    weight_files, arrays = deferred("engine.serialize.inspect.weights"), deferred("tsrepl.session.arrays")

LONGEST_TEXT: Final = 8 << 20
"""Bytes of a program's text; more is taken for something else."""


def save(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%save name path`."""
    words = words_of(argument)
    if len(words) != 2:
        raise UsageError("%save wants a name and a path", hints=_hints("write %save name path", words, 2))
    name, path = words[0], os.path.expanduser(words[1])
    value = workspace.lookup(name)
    if isinstance(value, Tensor):
        if not path.endswith(arrays.ENDINGS):
            raise UsageError(
                "a tensor is saved as .npy or .npz", hints=(f"write %save {name} {os.path.splitext(path)[0]}.npy",)
            )
        arrays.write_arrays(path, value)
    elif not isinstance(value, Function) and not (isinstance(value, Object) and value.type.is_module):
        known = workspace.seen().get(name)
        kind = type_of(value) if known is None else known.type
        raise UsageError(f"'{name}' is a value of type {kind}; only modules, functions and tensors are saved")
    else:
        archive.save_archive(value, path, run=run_function, form=archive.form_of(path))
    yield TextReply(f"saved {name} to {path} ({counted(os.path.getsize(path), 'byte')})", "done")


def load(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%load path [as name]`."""
    words = words_of(argument)
    if len(words) not in (1, 3) or (len(words) == 3 and words[1] != "as"):
        raise UsageError("%load wants a path, and perhaps a name", hints=_hints("write %load path as name", words, 1))
    path = os.path.expanduser(words[0])
    name = words[2] if len(words) == 3 else name_from_path(path)
    if not name.isidentifier():
        raise UsageError(f"'{name}' cannot be a name")
    if arrays.is_array_file(path):
        yield from _load_arrays(workspace, path, name)
        return
    if os.path.isfile(path) and (found := identifying.identify(path)).has_weights and not found.is_program:
        yield from _load_weights(workspace, path, name)
        return
    module, note = open_archive(path)
    yield from note
    workspace.bind(name, module, module.type)
    node = module_node(name, module)
    yield TextReply(f"loaded {name} from {path}", "done")
    size = counted(node.parameters, "parameter") if node.parameters else "no parameters"
    yield TextReply(f"{node.type} with {size}; type {name} to see its modules, %schema {name} for its arguments")


def _hints(usage: str, words: list[str], most: int) -> tuple[str, ...]:
    return (usage, "a path with blanks in it stands in quotation marks") if len(words) > most else (usage,)


def open_archive(path: str) -> tuple[Object, tuple[TextReply, ...]]:
    """The module in the archive, and a line where its tensors are on the CPU for want of their own device.

    Raises ArchiveError, OSError.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(2, "no such file", path)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder", path)
    try:
        return archive.load_archive(path, run=budget.BudgetedRunner()), ()
    except MissingDeviceError as error:
        text = f"{path}: {error.message.partition(' (')[0]}; they are loaded on the CPU"
        return archive.load_archive(path, run=budget.BudgetedRunner(), map_location="cpu"), (
            TextReply(text, "warning"),
        )


def hints_for_devices(error: EngineError, path: str) -> tuple[str, ...]:
    """The error's hints; where an archive names a device that is not here, how it is made one for the CPU."""
    if "cupy" not in error.message and "no NVIDIA GPU" not in error.message:
        return error.hints
    return (f"the program names a GPU; make a file for the CPU: tsrepl fix --device cpu {shell_word(path)} -o cpu.pt",)


def read_text(path: str) -> str:
    """The program text in the file.  Raises OSError, SessionError when it holds no text."""
    with open(path, "rb") as file:
        data = file.read(LONGEST_TEXT + 1)
    if len(data) > LONGEST_TEXT:
        raise SessionError(f"'{path}' is too long for a program")
    if data.startswith(b"PK\x03\x04"):
        raise SessionError(f"'{path}' is an archive, not text", hints=("%load opens archives",))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SessionError(f"'{path}' is not UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise SessionError(f"'{path}' is not text")
    return text


def name_from_path(path: str) -> str:
    """`my-model.v2.pt` -> `my_model_v2`."""
    name = re.sub(r"\W", "_", Path(path).stem)
    return name if name.isidentifier() else f"m_{name}"


def _load_arrays(workspace: Workspace, path: str, name: str) -> Iterable[Reply]:
    read = arrays.read_arrays(path)
    for key, tensor in read.items():
        own = name if len(read) == 1 else re.sub(r"\W", "_", f"{name}_{key}")
        workspace.bind(own, tensor, TENSOR)
        yield TextReply(f"loaded {own} from {path}", "done")


def _load_weights(workspace: Workspace, path: str, name: str) -> Iterable[Reply]:
    """The tensors of a state dict or safetensors file, as a dict."""
    weights = weight_files.load_weights(path)
    workspace.bind(name, weights, DictType(STR, TENSOR))
    yield TextReply(f"loaded {name} from {path}", "done")
    yield TextReply(f"a dict of {counted(len(weights), 'tensor')}, by name; the file holds no program")


def words_of(argument: str) -> list[str]:
    try:
        return shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"a quotation mark in {argument} has no other to close it") from error
