"""Files of many kinds for the tests of this folder: real ones (`files/`, `archives/`), and makers of others."""

import json
import struct
import zipfile
from pathlib import Path

import numpy as np

from engine.aten.values.ivalue import Object
from engine.serialize.mobile.schema import FORMS

HERE = Path(__file__).parent
FILES = HERE / "files"
ARCHIVES = HERE / "archives"


def archive(path, code, *, version="3", data=None, extra=(), compression=zipfile.ZIP_STORED):
    """An archive whose root is a `__torch__.M` without attributes but `training`, and this code."""
    pickle = b"\x80\x02c__torch__\nM\nq\0)\x81}(X\x08\0\0\0training\x89ub." if data is None else data
    records = {
        "data.pkl": pickle,
        "code/__torch__.py": code.encode(),
        "constants.pkl": b"\x80\x02).",
        "version": version,
    }
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in {**records, **dict(extra)}.items():
            file.writestr(f"m/{name}", content)
    return path


HEAD = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"


def method(*lines, arguments="x: Tensor", returns="Tensor", name="forward"):
    """The code of class M with one method."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}  def {name}(self: __torch__.M,\n    {arguments}) -> {returns}:\n{body}"


def compiled(module):
    """The module with every method and hook compiled.  Raises what is wrong with one."""
    waiting, seen = [module], set()
    while waiting:
        of = waiting.pop()
        if isinstance(of, Object) and id(of) not in seen:
            seen.add(id(of))
            for function in (*of.type.methods.values(), *of.type.forward_hooks, *of.type.forward_pre_hooks):
                function.ensure_defined()
            waiting += of.slots
    return module


def safetensors(path, *, cut=0):
    header = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "__metadata__": {"format": "pt"}}
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + np.arange(4, dtype=np.float32).tobytes()
    path.write_bytes(data[: len(data) - cut])
    return path


def entangled(path, levels):
    """An archive whose module holds another one twice, which holds another one twice, and so on."""

    def name(level):
        return f"L{level}"

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value

    def instance(level):
        state = text(b"training") + b"\x89"
        if level:
            number = struct.pack("<I", level)
            state += text(b"a") + instance(level - 1) + b"r" + number + text(b"b") + b"j" + number
        return b"c__torch__\n" + name(level).encode() + b"\n)\x81}(" + state + b"ub"

    code = ""
    for level in range(levels + 1):
        parts = f"  a : __torch__.{name(level - 1)}\n  b : __torch__.{name(level - 1)}\n" if level else ""
        body = "(self.b).forward((self.a).forward(x, ), )" if level else "torch.add(x, 1)"
        code += HEAD.replace("M(", f"{name(level)}(") + parts
        code += f"  def forward(self: __torch__.{name(level)}, x: Tensor) -> Tensor:\n    return {body}\n"
    return archive(path, code, data=b"\x80\x02" + instance(levels) + b".")


def without_code(data):
    """A mobile flatbuffer without the field for the code, as PyTorch's C++ functions write them for phones."""
    changed = bytearray(data)
    (root,) = struct.unpack_from("<I", changed)
    fields = root - struct.unpack_from("<i", changed, root)[0]
    struct.pack_into("<H", changed, fields + 4 + 2 * FORMS.tables["Module"]["jit_sources"].number, 0)
    return bytes(changed)
