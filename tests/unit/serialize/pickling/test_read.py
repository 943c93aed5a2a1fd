"""The pickle machine: what it reads, and that it refuses the rest."""

import pickle
import random
import struct

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.pickling.unpickle import unpickle


def read(data):
    return unpickle(data, "data.pkl")


def refused(data):
    with pytest.raises(ArchiveError) as caught:
        read(data)
    assert caught.value.record == "data.pkl"
    assert caught.value.offset is not None
    return caught.value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        255,
        256,
        65535,
        65536,
        -1,
        -(2**31),
        2**31,
        2**63 - 1,
        -(2**63),
        0.5,
        float("inf"),
        "",
        "snow ☃",
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        [],
        [1, "a", [2]],
        {},
        {"a": 1, 2: (3,)},
        [("x", {"y": [0.25]})],
    ],
)
def test_plain_values(value):
    for protocol in range(2, 6):
        found = read(pickle.dumps(value, protocol))
        assert found == value
        assert type(found) is type(value)


def test_references_keep_their_identity():
    inner = [1]
    first, second = read(pickle.dumps([inner, inner], protocol=2))
    assert first is second


def test_long_references():
    values = [f"text {i}" for i in range(600)]
    for protocol in range(2, 6):
        assert read(pickle.dumps([values, values], protocol)) == [values, values]


@pytest.mark.parametrize(
    "code",
    [
        b"i__main__\nA\n",
        b"(o",
        b"P1\n",
        b"\x82\x01",
        b"\x83\x01\x00",
        b"\x8d" + b"\0" * 8,
        b"\x8e" + b"\0" * 8,
        b"(\x90",
        b"(\x91",
        b"\x92",
        b"\x96" + b"\0" * 8,
        b"\x97",
        b"\x8b\x01\x00\x00\x00a",
        b"\x98",
        b"\xff",
    ],
)
def test_opcodes_that_archives_do_not_use_are_refused(code):
    assert "has no place" in refused(b"\x80\x02N(NN" + code + b".").message


@pytest.mark.parametrize("value", [b"abc", b"a" * 300, set()])
def test_bytes_and_sets_are_names_of_functions_and_refused(value):
    for protocol in range(2, 6):
        assert "is not allowed" in refused(pickle.dumps(value, protocol)).message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\x80\x02",
        b"\x80\x02N",
        b"\x80\x00N.",
        b"\x80\x09N.",
        b"\x80\x02.",
        b"\x80\x02NN.",
        b"\x80\x02(N.",
        b"\x80\x02h\x00.",
        b"\x80\x02q\x00.",
        b"\x80\x02t.",
        b"\x80\x02Ne.",
        b"\x80\x02N(e.",
        b"\x80\x02}(Nu.",
        b"\x80\x02X\xff\xff\xff\x7fa.",
        b"\x80\x02\x8a\xff" + b"a" * 255 + b".",
        b"\x80\x02}(]Nu.",
        b"\x80\x02NR.",
        b"\x80\x02N)\x81.",
        b"\x80\x02N}b.",
        b"\x80\x02NQ.",
        b"\x80\x02cxx",
        b"\x80\x02(\x85.",
        b"\x80\x02\x86.",
    ],
)
def test_nonsense_is_refused(data):
    refused(data)


def test_a_list_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    refused(pickle.dumps(loop, protocol=2))
    a, b = [], []
    a.append(b)
    b.append(a)
    refused(pickle.dumps(a, protocol=2))


def test_deep_nesting_is_refused_and_does_not_recurse():
    error = refused(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    assert "nests deeper" in error.message
    refused(b"\x80\x02)" + b"\x85" * 100_000 + b".")
    refused(b"\x80\x02" + b"(" * 100_000)


def test_growth_by_doubling_is_refused_or_stays_shared():
    # Each tuple holds the last one twice: small to read, and the depth limit keeps walks bounded.
    refused(b"\x80\x02)" + b"q\x00h\x00\x86" * 500 + b".")


def test_the_offset_is_where_the_opcode_stands():
    assert refused(b"\x80\x02NN\xff").offset == 4
    assert refused(b"\x80\x02cos\nsystem\n.").offset == 2


def test_every_truncation_and_any_changed_byte():
    good = pickle.dumps([{"a": (1, 2.5, "x")}, [True, None] * 3], protocol=2)
    for length in range(len(good)):
        refused(good[:length])
    chance = random.Random(3)
    for _ in range(5000):
        data = bytearray(good)
        data[chance.randrange(2, len(data))] = chance.randrange(256)
        try:
            read(bytes(data))
        except ArchiveError:
            continue


def test_a_declared_length_is_not_allocated():
    refused(b"\x80\x02X" + struct.pack("<I", 0xFFFFFFF0) + b"abc")
