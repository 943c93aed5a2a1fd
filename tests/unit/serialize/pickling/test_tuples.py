"""What has to be a tuple is one, for the reader that loads and for the one that only describes; the refusal says so."""

from __future__ import annotations

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.pickling.values import describe_pickle
from tests.unit.serialize.hostile_archives import MODULE, archive, refused, tensor, text

OTHERS = {"None": b"N", "int": b"K\5", "str": text(b"ab"), "list": b"]", "dict": b"}", "bool": b"\x88"}
PID = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"0") + text(b"cpu") + b"K\4tQ"
assert tensor().count(b"K\4\x85") == 1
PLACES = {
    "sizes": lambda wrong: tensor(size=wrong), "strides": lambda wrong: tensor(stride=wrong),
    "a persistent id": lambda wrong: wrong + b"Q",
    "arguments of a tensor": lambda wrong: b"ctorch._utils\n_rebuild_tensor_v2\n" + wrong + b"R",
    "a size": lambda wrong: b"ctorch\nSize\n" + wrong + b"\x85R",
    "arguments of a dict": lambda wrong: b"ccollections\nOrderedDict\n" + wrong + b"R",
    "how it is quantized": lambda wrong: (
        b"ctorch._utils\n_rebuild_qtensor\n(" + PID.replace(b"Float", b"QInt8") + b"K\0K\4\x85K\1\x85" + wrong
        + b"\x89ccollections\nOrderedDict\n)RtR"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", OTHERS)
@pytest.mark.parametrize("place", PLACES)
def test_anything_else_is_refused_by_both_readers(place, wrong):
    data = b"\x80\2" + PLACES[place](OTHERS[wrong]) + b"0" + MODULE[2:]
    assert (
        "no tuple but"
        in refused(archive(**{"data.pkl": data, "data/0": bytes(16 if "quant" not in place else 4)})).message
    )
    with pytest.raises(ArchiveError, match="no tuple but"):
        describe_pickle(data, "data.pkl")
