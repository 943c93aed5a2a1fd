"""Files that mean harm to whoever looks at them: names that steer terminals, texts that make patterns run for ever,
sizes that lie.

As a program (`python -m tests.unit.serialize.hostile_files FOLDER`) it looks at those in a folder in every way there
is, and tells how that went, a line of JSON for each.
"""

import contextlib
import io
import json
import lzma
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import engine
import engine.torch as torch
from engine.lang.errors import EngineError
from tests.unit.serialize.hostile_archives import CLASS, archive, text, zipped
from tsrepl.cli import main

STEERING = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"
NUMBERS = struct.pack("<4f", 1, 2, 3, 4)
PID = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\4%stQ"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + PID % b"" + b"K\0K\2\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR"
OLD_PID, KEYS, STORAGE = PID % b"N", b"]" + text(b"0") + b"a", struct.pack("<q", 4) + NUMBERS
HUGE = b"\x8b" + struct.pack("<i", 100_000) + b"\x7f" * 100_000


def saved(pickle):
    return zipped([("m/data.pkl", b"\x80\2" + pickle + b"."), ("m/version", "3\n"), ("m/data/0", NUMBERS)])


def state(items):
    return saved(b"}(" + items + b"u")


def legacy(pid=OLD_PID, keys=KEYS, tail=STORAGE, name="a"):
    """A file as torch.save wrote before PyTorch 1.6, with one tensor."""
    value = b"}" + text(name.encode()) + b"ctorch._utils\n_rebuild_tensor\n(" + pid + b"K\0K\2\x85K\1\x85tRs."
    head = b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}."
    return head + b"\x80\2" + value + b"\x80\2" + keys + b"." + tail


def safetensors(name="a", **entry):
    table = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **entry}
    header = json.dumps({name: table, "__metadata__": {name: name}}).encode()
    return struct.pack("<Q", len(header)) + header + NUMBERS


def npy(header):
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def greedy_xz():
    """It wants four gigabytes to unpack a few bytes."""
    flags, block = b"\0\4", b"\2\0\x21\1\x28\0\0\0"
    sums = [struct.pack("<I", zlib.crc32(each)) for each in (flags, block)]
    return b"\xfd7zXZ\0" + flags + sums[0] + block + sums[1] + b"\xe0\xff\xff\xff\xff\x5d" + bytes(5000)


MODULE = b"\x80\x02c__torch__\nM\n)\x81}(" + text(b"training") + b"\x88"
FILES = {
    "a key that steers the terminal": state(text(STEERING.encode()) + TENSOR),
    "a value that steers the terminal": state(text(b"w") + TENSOR + text(b"note") + text(STEERING.encode())),
    "a class that steers the terminal": state(text(b"w") + TENSOR + text(b"o") + b"cmy\x1b[2J\nC\xc2\x9bs\n)\x81}b"),
    "a number of a million digits": state(text(b"w") + TENSOR + text(b"n") + HUGE),
    "a key of a million digits": state(HUGE + TENSOR),
    "a key that is a tuple": state(b"K\1K\2\x86" + TENSOR),
    "a dict that holds itself": saved(b"}q\0(X\1\0\0\0ah\0X\1\0\0\0b" + TENSOR + b"u"),
    "a list that holds itself": saved(b"]q\0(h\0h\0h\0" + TENSOR + b"e"),
    "lists that share their parts": saved(b"](K\1e" + b"".join(b"q%c](h%ch%ch%ce" % ((i,) * 4) for i in range(40))),
    "comments and no page": b"<!---->" * 9000 + b"x",
    "comments and half a page": b"<!-- -->" * 5000 + b"<" + b"x" * 1000,
    "titles without an end": b"<html>" + b"<title>" * 9000,
    "titles that do not begin": b"<html>" + b"<title" * 9000,
    "blanks": b" " * 65_000 + b"x",
    "brackets": b"[" * 100_000,
    "objects in objects": b'{"a":' * 100_000,
    "JSON with a million digits": b'{"a":' + b"9" * 100_000 + b"}",
    "an index that steers the terminal": json.dumps({"weight_map": {"a": STEERING + "{0}{file}"}}).encode(),
    "xz that wants all memory": greedy_xz(),
    "xz of nothing but zeros": lzma.compress(bytes(10_000_000)),
    "safetensors with a name that steers": safetensors(STEERING),
    "safetensors with a shape beyond arrays": safetensors(shape=[0, 2**70], data_offsets=[0, 0]),
    "safetensors with a shape that wraps": safetensors(shape=[2**62, 4]),
    "safetensors with a dtype that is a list": safetensors(dtype=["F32"]),
    "npz with names that steer": npz(**{STEERING.replace("/", ""): np.ones(1)}),
    "npz with names that lead outside": npz(**{"a/../../b": np.ones(2)}),
    "npy of brackets": npy(b"(" * 65_000),
    "npy larger than any disk": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999,), }"),
    "npy with a negative size": npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }") + bytes(8),
    "an old file with a name that steers": legacy(name=STEERING),
    "an old file with a negative count": legacy(tail=struct.pack("<q", -4) + NUMBERS),
    "an old file with a count beyond its end": legacy(tail=struct.pack("<q", 2**62) + NUMBERS),
    "an old file with one key twice": legacy(keys=b"](" + text(b"0") * 2 + b"e", tail=STORAGE * 2),
    "an old file with keys that are no text": legacy(keys=b"](K\1]e"),
    "an old file whose key leads outside": legacy(
        pid=OLD_PID.replace(b"X\1\0\0\x000", text(b"../x")), keys=b"]" + text(b"../x") + b"a"
    ),
    "an old file with a part of a storage": legacy(pid=PID % b"X\1\0\0\0vK\0K\2\x87"),
    "an archive of a version with many digits": archive(version=b"9" * 10_000),
    "an archive of a version that steers": archive(version=b"3\x1b[2J"),
    "code with a name that steers": archive(**{"code/__torch__.py": CLASS.replace(b"M(", b"M\xc2\x9b(")}),
    "code with a zero byte": archive(**{"code/__torch__.py": CLASS + b"\0"}),
    "a text that steers the terminal": archive(**{
        "code/__torch__.py": CLASS + b"  x : str\n",
        "data.pkl": MODULE + text(b"x") + text(STEERING.encode()) + b"ub.",
    }),
    "an extra file whose name steers": archive(**{"extra/a\x9b31m\u202e.txt": b"x"}),
}  # fmt: skip
COMMANDS = (
    ("identify",), ("identify", "--json"), ("show",), ("show", "--code"), ("check",), ("ops",), ("diff", "FILE"),
    ("extract", "OUT/w.npz"), ("extract", "OUT/w.safetensors"), ("extract", "OUT/all"), ("repack", "-o", "OUT/r.pt"),
    ("fix", "--device", "cuda", "-o", "OUT/f.pt"),
)  # fmt: skip
LOADS = {"load": engine.load, "load_weights": engine.load_weights, "torch.load": torch.load}


def commanded(command, path):
    """What a command says of the file."""
    name, *rest = (word.replace("FILE", str(path)).replace("OUT", str(path.parent)) for word in command)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        main([name, str(path), *rest])
    return said.getvalue()


def loaded(load, path):
    try:
        load(path)
    except EngineError:
        return "refused"
    return "read"


def looked_at(path):
    """What everyone says of the file, and how many seconds of the processor each took."""
    ways = {" ".join(command): (commanded, command) for command in COMMANDS}
    ways |= {name: (loaded, load) for name, load in LOADS.items()}
    found = {}
    for name, (look, how) in ways.items():
        start = time.process_time()
        try:
            said = look(how, path)
        except BaseException as error:
            said = f"Internal error: {error!r:.200}"
        found[name] = (said, time.process_time() - start)
    return found


if __name__ == "__main__":
    for place in sorted(Path(sys.argv[1]).iterdir(), key=lambda place: int(place.name)):
        print(json.dumps(looked_at(place / "m.pt")), flush=True)
