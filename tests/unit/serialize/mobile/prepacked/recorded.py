"""The programs in this folder, with what PyTorch gives for them: as they are, and in the other forms of such files."""

import io
import zipfile
from pathlib import Path

import numpy as np

import engine
import engine.torch as torch
from tests.unit.serialize.model_files import without_code

FOLDER = Path(__file__).parent
NAMES = sorted(path.name for path in FOLDER.glob("*.*") if path.suffix in (".ptl", ".ff", ".pt"))


def bare(name, folder):
    """A copy of the file without code."""
    target = folder / f"bare_{name}"
    if name.endswith(".ff"):
        target.write_bytes(without_code((FOLDER / name).read_bytes()))
        return target
    with zipfile.ZipFile(FOLDER / name) as source, zipfile.ZipFile(target, "w") as file:
        for record in source.namelist():
            if "/code/" not in record:
                file.writestr(record, source.read(record))
    return target


def forms(folder):
    """All files: those that have bytecode also without their code."""
    names = [name for name in NAMES if not name.endswith(".pt")]
    return [*(FOLDER / name for name in NAMES), *(bare(name, folder) for name in names)]


def loaded(path):
    """The program, its arguments and its results."""
    extra = {"io.npz": b""}
    program = engine.load(path, _extra_files=extra)
    arrays = np.load(io.BytesIO(extra["io.npz"]))
    given = [arrays[name] for name in arrays if name.startswith("in")]
    args = [torch.tensor(each) if each.ndim else each.item() for each in given]
    return program, args, [arrays[name] for name in arrays if name.startswith("out")]


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in flat(part)] if isinstance(value, (list, tuple)) else [value]


def compared(results, wanted):
    for found, expected in zip(flat(results), wanted, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
