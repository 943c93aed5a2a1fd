"""Readers of older and other files, with one part of another type, cut off or with a bit flipped: they read what is
there, or refuse with an ArchiveError that says where; soon, and in little memory."""

from __future__ import annotations

import io
import itertools
import pickletools
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError, EngineError
from engine.serialize.identify.identify import identify
from engine.serialize.inspect.check import check_archive
from engine.torch import nn
from tests.unit.serialize.legacy import model_json_files
from tests.unit.serialize.mobile.programs import program
from tests.unit.serialize.model_files import FILES
from tests.unit.serialize.swapped_parts import documents, pickles

SOON = 5.0
"""Seconds of the processor for one file."""
MOST = 40
"""Copies for one kind of file: evenly chosen of all."""


def with_record(data: bytes, name: str, content: bytes) -> bytes:
    """The zip file with another record in the place of that one."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as z:
        for each in source.namelist():
            z.writestr(each, content if each.endswith(f"/{name}") else source.read(each))
    return target.getvalue()


def record(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return next(z.read(each) for each in z.namelist() if each.endswith(f"/{name}"))


def swapped_records(data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    return ((said, with_record(data, name, changed)) for said, changed in pickles(record(data, name)))


def model_json() -> Iterator[tuple[str, bytes]]:
    for said, changed in documents(model_json_files.model()):
        yield said, model_json_files.archive(changed).getvalue()


def attributes() -> Iterator[tuple[str, bytes]]:
    for said, changed in pickles(model_json_files.pickled()):
        yield said, model_json_files.archive(model_json_files.model(), changed).getvalue()


def traced() -> bytes:
    module = torch.jit.trace(nn.Linear(2, 2), torch.ones(3, 2))
    return bytes(module.save_to_buffer())


def mobile(flat: bool) -> bytes:
    module, _ = program("state")
    return bytes(module._save_to_buffer_for_lite_interpreter(_use_flatbuffer=flat))


def legacy(name: str) -> Iterator[tuple[str, bytes]]:
    """The pickles of a file of torch.save from before PyTorch 1.6, which lie one behind the other."""
    data, start = (FILES / name).read_bytes(), 0
    for _ in range(5):
        stop = end_of_pickle(data, start)
        for said, changed in pickles(data[start:stop]):
            yield f"pickle at {start}: {said}", data[:start] + changed + data[stop:]
        start = stop


def end_of_pickle(data: bytes, start: int) -> int:
    file = io.BytesIO(data)
    file.seek(start)
    for _ in pickletools.genops(file):
        pass
    return file.tell()


def damaged(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Cut off at every place, and with every bit flipped."""
    for size in range(len(data)):
        yield f"{size} bytes of it", data[:size]
    for at in range(len(data)):
        for bit in range(8):
            yield f"bit {bit} of byte {at}", data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


KINDS: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "model.json": model_json,
    "attributes.pkl": attributes,
    "traced_inputs.pkl": lambda: swapped_records(traced(), "traced_inputs.pkl"),
    "bytecode.pkl": lambda: swapped_records(mobile(False), "bytecode.pkl"),
    "torch.save": lambda: legacy("sd_legacy.pt"),
    "torch.save of a module": lambda: legacy("whole_legacy.pt"),
    "torch.save of many dtypes": lambda: legacy("dtypes_legacy.pt"),
    "torch.save, quantized": lambda: legacy("quantized_legacy.pt"),
    "torch.save, damaged": lambda: damaged((FILES / "sd_legacy.pt").read_bytes()),
    "model.json, damaged": lambda: damaged(model_json_files.archive(model_json_files.model()).getvalue()),
    "flatbuffer, damaged": lambda: damaged(mobile(True)),
    "mobile, damaged": lambda: damaged(mobile(False)),
}


def looks(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Ways to look at a file."""
    yield "load", lambda: engine.load(path)
    yield "load with shapes", lambda: torch.jit.load(path, _restore_shapes=True, lazy=False)
    yield "torch.load", lambda: torch.load(path)
    yield "weights", lambda: engine.load_weights(path)
    yield "check", lambda: check_archive(path)
    yield "identify", lambda: identify(path)
    yield "mobile", lambda: torch.jit.mobile._get_model_ops_and_info(path)


def wrong(path: Path) -> Iterator[str]:
    for way, look in looks(path):
        start = time.process_time()
        try:
            look()
        except ArchiveError as error:
            if not str(error).strip():
                yield f"{way}: it says nothing"
        except EngineError as error:
            yield f"{way}: {type(error).__name__}, {error}"
        except Exception as error:
            yield f"{way}: {type(error).__name__}, {error}"
        seconds = time.process_time() - start
        if seconds > SOON:
            yield f"{way}: {seconds:.1f} s"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_with_a_part_is_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    copies = [*KINDS[kind]()]
    found = []
    for said, data in copies[:: max(1, len(copies) // MOST)]:
        path.write_bytes(data)
        found += [f"{said}: {each}" for each in wrong(path)]
    assert not found, "\n".join(itertools.islice(found, 40))
