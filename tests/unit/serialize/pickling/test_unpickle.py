"""What the pickles of archives may name, and what that means."""

import pickle

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.pickling.unpickle import unpickle


def read(data):
    return unpickle(data, "data.pkl")


def refused(data):
    with pytest.raises(ArchiveError) as caught:
        read(data)
    assert (caught.value.record, caught.value.offset is None) == ("data.pkl", False)


def call(module, name, arguments):
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + pickle.dumps(arguments, protocol=2)[2:-1] + b"R."


def test_what_archives_call():
    assert read(call("builtins", "complex", (1.0, -2.0))) == 1 - 2j
    assert str(read(call("torch", "device", ("cuda", 1)))) == "cuda:1"
    assert read(call("torch.jit._pickle", "build_intlist", ([1, 2],))) == [1, 2]
    assert read(call("torch.jit._pickle", "restore_type_tag", (["a"], "List[str]"))) == ["a"]
    assert read(call("collections", "OrderedDict", ())) == {}


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("os", "system", ("true",)),
        ("builtins", "eval", ("1",)),
        ("posix", "system", ("true",)),
        ("builtins", "getattr", ("a", "b")),
        ("torch", "load", ("x",)),
        ("torch._utils", "_rebuild_tensor_v2", ()),
        ("__torch__", "M", ()),
        ("__torch__.os", "system", ("true",)),
        ("collections", "OrderedDict.fromkeys", ("a",)),
        ("numpy.core.multiarray", "_reconstruct", ()),
        ("torch", "FloatStorage", ()),
        ("", "", ()),
    ],
)
def test_other_names_are_refused(module, name, arguments):
    refused(call(module, name, arguments))


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("builtins", "complex", (1,)),
        ("builtins", "complex", ("1", "2")),
        ("torch", "device", (1,)),
        ("torch", "device", ("nowhere",)),
        ("torch.jit._pickle", "build_intlist", ([1, "a"],)),
        ("torch.jit._pickle", "build_intlist", ([True],)),
        ("torch.jit._pickle", "build_intlist", (1,)),
        ("torch.jit._pickle", "restore_type_tag", ([], 1)),
        ("collections", "OrderedDict", ([("a", 1)],)),
        ("torch.jit._pickle", "build_intlist", ()),
    ],
)
def test_wrong_arguments_are_refused(module, name, arguments):
    refused(call(module, name, arguments))
