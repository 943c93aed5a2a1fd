"""Values of mobile flatbuffers: what cannot be is refused with its place."""

from __future__ import annotations

import io
from typing import Any

import pytest

from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.mobile.file import open_program
from engine.serialize.mobile.makers import described_module
from tests.unit.serialize.mobile.flatbuffer_maker import Maker, program

TENSOR = {"storage_location_index": 0, "scalar_type": 6, "sizes": [2, 3], "strides": [3, 1]}
FLOATS = {"storage_data_size": 1, "storage_data": [{"data": b"\0\0\x80\x3f" * 6}]}


def described(data: bytes) -> Any:
    """The module's value, tensors and objects described."""
    return described_module(open_program(io.BytesIO(data)))


def tensor(**changes: Any) -> tuple[str, dict[str, Any]]:
    return ("TensorMetadata", TENSOR | changes)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (("Int", (-5,)), -5), (("Bool", (True,)), True), (("Double", (0.5,)), 0.5),
        (("ComplexDouble", (1.0, -2.0)), 1 - 2j), (("String", {"data": "größer"}), "größer"),
        (("Device", {"str": "cuda:1"}), scalars.device("cuda:1")), (("IntList", {"items": [1, 2]}), [1, 2]),
        (("DoubleList", {"items": [0.5]}), [0.5]), (("BoolList", {"items": [True, False]}), [True, False]),
        (("List", {"items": [1, 0]}), [7, None]), (("Tuple", {"items": [1, 1]}), (7, 7)),
        (("Dict", {"keys": [1], "values": [0]}), {7: None}), (("List", {}), []),
    ],
)  # fmt: skip
def test_every_kind_of_value(value: tuple[str, Any], wanted: Any) -> None:
    assert described(program([("Int", (7,)), value])) == wanted


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (("List", {"items": [2]}), "the value 2 is used before it is there"),
        (("List", {"items": [3]}), "refers to the value 3, and there are 3"),
        (("Dict", {"keys": [1], "values": []}), "the keys of a dict"),
        (("String", {}), "lacks its text"),
        (("Device", {"str": "nowhere"}), "nowhere"),
        (("Function", {"qn": "f"}), "a 'Function' is used as a value"),
        (("Object", {"type_index": 5}), "an object is of the type 5, and there are 0"),
    ],
)
def test_values_that_cannot_be(value: tuple[str, Any], reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        described(program([("Int", (7,)), value]))
    assert caught.value.record == "flatbuffer" and caught.value.offset is not None


def test_a_dict_with_a_list_as_key() -> None:
    with pytest.raises(ArchiveError, match="the keys of a dict"):
        described(program([("IntList", {"items": [1]}), ("Dict", {"keys": [1], "values": [1]})]))


def test_objects_with_more_attributes_than_names() -> None:
    types = [{"type_name": "__torch__.M", "type": 1, "attr_names": ["a", "a"]}]
    with pytest.raises(ArchiveError, match="has 2 attributes with 1 names"):
        described(program([("Int", (7,)), ("Object", {"attrs": [1, 1]})], object_types=types))


def test_a_tensor() -> None:
    entry = described(program([tensor()], **FLOATS))
    assert (entry.dtype.name, entry.shape, entry.stride, entry.storage.key) == ("float32", (2, 3), (3, 1), "0")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"storage_location_index": 1}, "the storage 1, which is not there"),
        ({"storage_offset": 1}, "reaches element 6 of a storage that has 6"),
        ({"storage_offset": -1}, "sizes|strides"),
        ({"strides": [1 << 30, 1]}, "reaches element"),
        ({"sizes": [2, -3]}, "sizes"),
        ({"sizes": [2]}, "sizes"),
        ({"sizes": [1] * 40, "strides": [1] * 40}, "sizes"),
        ({"sizes": [1 << 30, 1 << 30], "strides": [1 << 30, 1]}, "larger than any memory|reaches element"),
        ({"scalar_type": 7}, "reaches element"),
        ({"scalar_type": 99}, "the dtype 99"),
        ({"quantized_schema": {"qscheme": 77}}, "quantized in the way 77"),
        ({"quantized_schema": {"qscheme": 1, "scales": TENSOR}}, "description is damaged"),
        ({"quantized_schema": {"qscheme": 1, "scales": TENSOR | {"quantized_schema": {}}, "zero_points": TENSOR}},
         "description is damaged"),
    ],
)  # fmt: skip
def test_tensors_that_cannot_be(changes: dict[str, Any], reason: str) -> None:
    for read in (described, lambda data: load_archive(io.BytesIO(data))):
        types = [{"type_name": "__torch__.M", "type": 1, "attr_names": ["t"]}]
        code = [{"name": "__torch__", "content": b"class M(Module):\n  t : Tensor\n"}]
        values = [tensor(**changes), ("Object", {"attrs": [1]})]
        with pytest.raises(ArchiveError, match=reason) as caught:
            read(program(values, object_types=types, jit_sources=code, **FLOATS))
        assert caught.value.offset is not None


def test_tensors_share_their_storage() -> None:
    types = [{"type_name": "__torch__.M", "type": 1, "attr_names": ["a", "b"]}]
    code = [{"name": "__torch__", "content": b"class M(Module):\n  a : Tensor\n  b : Tensor\n"}]
    values = [
        tensor(requires_grad=True),
        tensor(sizes=[2], strides=[2], storage_offset=1),
        ("Object", {"attrs": [1, 2]}),
    ]
    module = load_archive(io.BytesIO(program(values, object_types=types, jit_sources=code, **FLOATS)))
    a, b = module.get("a"), module.get("b")
    assert isinstance(a, Tensor) and a.requires_grad and a.tolist() == [[1.0] * 3] * 2
    b.array[0] = 5.0
    assert a.tolist() == [[1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]


def test_nesting_has_an_end() -> None:
    def nested(levels: int) -> bytes:
        return program([("IntList", {"items": []}), *(("List", {"items": [level]}) for level in range(1, levels))])

    assert described(nested(150))
    with pytest.raises(ArchiveError, match="nests deeper than 200"):
        described(nested(5_000))


def test_values_that_are_shared_are_made_once() -> None:
    data = program([("IntList", {"items": [1]}), *(("List", {"items": [n, n]}) for n in range(1, 60))])
    found = described(data)
    assert found[0] is found[1]


def test_no_module_at_all() -> None:
    with pytest.raises(ArchiveError, match="refers to the value 9"):
        described(program([], state=9))
    with pytest.raises(ArchiveError):
        load_archive(io.BytesIO(Maker().file({})))
