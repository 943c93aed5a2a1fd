"""The walk over a pickle before anything is built."""

from __future__ import annotations

import pickle
import pickletools

import pytest

from engine.serialize.pickling.scan import GROWTH, ROOM, STEPS, PickleRefusal, Scan


def walk(data: bytes, stored: int | None = None) -> Scan:
    scan = Scan(data, 0, stored)
    scan.run()
    return scan


def test_it_ends_behind_stop_and_knows_the_names() -> None:
    scan = walk(b"\x80\x02ca\nb\nq\x00ca\nb\n\x86.rest")
    assert scan.data[scan.at :] == b"rest"
    assert [(each.offset, each.module, each.name) for each in scan.names.values()] == [(2, "a", "b")]


def test_names_on_the_stack_are_known() -> None:
    frame = b"\x95" + bytes(8)
    scan = walk(b"\x80\x04" + frame + b"\x8c\x01a\x94" + frame + b"\x8c\x01b\x94\x93\x940h\x01h\x00\x93.")
    assert list(scan.names) == [("a", "b"), ("b", "a")]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value", [None, 1, -5, 2**40, "text", "sn\u2603w", (1, 2, 3, 4), [1, [2]], {"a": (1,)}, 0.5, True]
)
def test_what_pickle_writes_is_walked_to_its_end(value: object, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert walk(data).at == len(data)


def test_every_truncation_is_refused_at_a_place_inside() -> None:
    data = pickle.dumps({"a": [1, 2.5, ("x", None)], "b": {1: 2}}, 2)
    for length in range(len(data)):
        scan = Scan(data[:length], 0)
        with pytest.raises(PickleRefusal):
            scan.run()
        assert scan.at <= length


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"0.", "not there"),
        (b"(0.", "not there"),
        (b"N(0.", "not there"),
        (b"1.", "never opened"),
        (b"t.", "never opened"),
        (b"NN.", "more or less"),
        (b"N(.", "more or less"),
        (b"h\x00.", "before it is set"),
        (b"g0\n.", "before it is set"),
        (b"Nq\x01h\x00\x86.", "before it is set"),
        (b"Npx\n.", "memo number"),
        (b"\x80\x06N.", "protocol 6"),
        (b"c\xff\nb\n.", "not UTF-8"),
        (b"(" * 1000, "nests too deep"),
        (b"\x93.", "right before"),
        (b"\x8c\x01a\x8c\x01bN0\x93.", "right before"),
        (b"\x8c\x01aN\x93.", "right before"),
        (b"N\x94\x8c\x01ah\x00\x93.", "right before"),
        (b"\x8c\x01a\x8c\x01\xff\x93.", "right before"),
        (b"\x8c\x01a(\x8c\x01b\x93.", "right before"),
        (b"\x94.", "not there"),
        (b"\x95\0\0\0.", "cut off"),
        (b"\x90.", "no place"),
    ],
)
def test_what_does_not_add_up_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(PickleRefusal, match=reason):
        walk(data)


def test_memory_and_opcodes_are_bounded_by_the_length_in_the_file() -> None:
    many = b"(" + b"}" * 600_000 + b"t."
    assert walk(many).at == len(many)
    deep = b"(" + b"]" * (ROOM // 64 + 1) + b"t."
    with pytest.raises(PickleRefusal, match=r"opcodes|takes more than"):
        walk(deep, stored=1000)
    with pytest.raises(PickleRefusal, match="opcodes"):
        walk(b"N" + b"20" * STEPS + b".", stored=1000)
    assert GROWTH * len(deep) < 64 * len(deep)


def test_every_opcode_that_is_walked_has_the_stack_effect_of_pickle() -> None:
    """Compared with what Python's own table says."""
    from engine.serialize.pickling.scan import _ROWS

    for code, row in _ROWS.items():
        opcode = pickletools.code2op[chr(code)]
        marked = pickletools.markobject in opcode.stack_before
        assert row.marked == marked, opcode.name
        before = [each for each in opcode.stack_before if each not in (pickletools.markobject, pickletools.stackslice)]
        after = [each for each in opcode.stack_after if each is not pickletools.markobject]
        if opcode.name not in ("POP_MARK",) and "PUT" not in opcode.name:
            assert (row.pops, row.pushes) == (len(before), len(after)), opcode.name
