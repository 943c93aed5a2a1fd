"""The layout of model.json, written by hand as its description has it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive, save_archive
from tests.unit.serialize.legacy.model_json_files import (
    BIAS,
    WEIGHT,
    archive,
    model,
    tensor,
)


def load(*parts: Any, **records: str) -> Object:
    return load_archive(archive(*(parts or (model(),)), **records), run=run_function)


def call(module: Object, method: str, *args: Any) -> Any:
    return run_function(module.type.methods[method], [module, *args])


X = np.ones((2, 3), np.float32)


def test_it_runs() -> None:
    module = load()
    expected = (X @ WEIGHT.T + BIAS + 2) * 2.5
    assert np.allclose(call(module, "forward", Tensor(X)).array, expected)
    assert call(module, "numbers", {"a": 1}) == (8, "abc", 2)
    assert call(module, "numbered").array.tolist() == [0, 2, 3, 4]


def test_old_operators_mean_what_they_meant() -> None:
    assert call(load(), "halved", Tensor(np.array([7]))).array.tolist() == [3]


def test_parts_and_kinds() -> None:
    module = load()
    kinds = {each.name: each.kind for each in module.get("fc").type.attributes}
    assert kinds == {"weight": "parameter", "bias": "parameter", "training": "attribute"}
    assert module.type.attribute("count").kind == "buffer"  # type: ignore[union-attr]
    assert module.get("none") is None
    assert module.get("fc").get("weight").requires_grad
    assert module.get("t").array.tolist() == [2.0] * 4


def test_shared_storage_stays_shared() -> None:
    module = load()
    module.get("fc").get("bias").array[1] = 9.0
    assert module.get("t").array.tolist() == [9.0] * 4
    assert module.get("point").get("x") is module.get("fc").get("bias")


def test_saved_it_is_an_archive_of_today() -> None:
    module, file = load(), io.BytesIO()
    save_archive(module, file, run=run_function)
    again = load_archive(io.BytesIO(file.getvalue()))
    assert np.array_equal(call(again, "forward", Tensor(X)).array, call(module, "forward", Tensor(X)).array)
    assert call(again, "halved", Tensor(np.array([7]))).array.tolist() == [3]
    second = io.BytesIO()
    save_archive(again, second)
    assert second.getvalue() == file.getvalue()


def test_state_by_method() -> None:
    described = {
        "protoVersion": 5,
        "mainModule": {
            "name": "M", "torchscriptArena": {"key": "code/M.py"}, "getStateAttributeId": "0",
            "attributes": [{"name": "n", "type": "int", "id": -1}],
        },
    }  # fmt: skip
    code = "def __setstate__(self, s: int) -> NoneType:\n  self.n = s + 1\n  return None\n"
    code += "def __getstate__(self) -> int:\n  return self.n\n"
    assert load(described, b"\x80\x02K\x04\x85.", M=code).get("n") == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: "{", "no JSON"),
        (lambda m: "[1]", "no JSON object"),
        (lambda m: "[" * 100_000, "no JSON"),
        (lambda m: m | {"protoVersion": "6"}, "layout 6"),
        (lambda m: m | {"mainModule": 3}, "no object 'mainModule'"),
        (lambda m: m["tensors"][0].update(dims=["4000", "3"]), "reaches element"),
        (lambda m: m["tensors"][0].update(dims=["x"]), "no integer"),
        (lambda m: m["tensors"][0].update(offset=-1), "sizes|strides"),
        (lambda m: m["tensors"][0].update(dataType="STRING"), "not supported"),
        (lambda m: m["tensors"][0]["data"].update(key="../../etc/passwd"), "no record of tensors"),
        (lambda m: m["tensors"][0].update(device="cuda:0"), "map_location"),
        (lambda m: m["mainModule"].update(name="a/b"), "named"),
        (lambda m: m["mainModule"]["attributes"][0].update(id=70), "there are 7"),
        (lambda m: m["mainModule"]["attributes"][0].update(type="List["), "type of attribute 'scale'"),
        (lambda m: m["mainModule"]["attributes"][0].update(type="int"), "attribute 'scale'"),
        (lambda m: m["mainModule"]["parameters"][0].update(tensorId=9), "no tensor 9"),
        (lambda m: m["mainModule"]["submodules"][1].update(name="fc"), "two attributes 'fc'"),
        (lambda m: m["mainModule"]["torchscriptArena"].update(key="code/none.py"), "code/none.py"),
    ],
)
def test_refusals(change: Any, message: str) -> None:
    described = model()
    changed = change(described)
    with pytest.raises(ArchiveError, match=message):
        load(described if changed is None else changed)


def test_tensors_in_the_pickle_are_checked() -> None:
    with pytest.raises(ArchiveError, match="no tensor 200"):
        load(model(), b"\x80\x02(ctorch.jit._pickle\nbuild_tensor_from_id\n(K\xc8tRt.")


@pytest.mark.parametrize(("kind", "dtype"), [("INT8", "qint8"), ("BYTE", "quint8"), ("UINT8", "quint8")])
def test_quantized_tensors(kind: str, dtype: str) -> None:
    described = model()
    how = {"isQuantized": True, "scale": 0.5, "zeroPoint": "3"}
    described["tensors"][2] = {**tensor("tensors/2", kind, [2, 2], [1, 2]), **how}
    module = load(described)
    count = module.get("count")
    assert count.dtype.name == dtype
    assert count.dequantize().tolist() == [[1.0, -1.5], [-1.5, -1.5]]
    kept = io.BytesIO()
    save_archive(module, kept)
    kept.seek(0)
    assert load_archive(kept).get("count").dequantize().tolist() == count.dequantize().tolist()


@pytest.mark.parametrize(
    "how", [{}, {"scale": "x"}, {"scale": 0.5, "zeroPoint": "x"}, {"scale": 0.5, "zeroPoint": 1 << 40}]
)
def test_quantized_tensors_say_how(how: Any) -> None:
    described = model()
    described["tensors"][2] = {**tensor("tensors/2", "INT8", [2], [1]), "isQuantized": True, **how}
    with pytest.raises(ArchiveError):
        load(described)


def _kept(name: bytes, state: bytes) -> bytes:
    """An instance of a class of `__main__` with its state, as PyTorch 1.1 wrote lists and tensors."""
    return b"c__main__\n" + name + b"\n)\x81" + state + b"b"


def test_lists_and_tensors_of_pytorch_1_1() -> None:
    described = model()
    described["mainModule"]["attributes"] = [
        {"name": "ints", "type": "List[int]", "id": 0}, {"name": "t", "type": "Tensor", "id": 1},
        {"name": "floats", "type": "List[float]", "id": 2}, {"name": "tensors", "type": "List[Tensor]", "id": 3},
        {"name": "flags", "type": "List[bool]", "id": 4},
    ]  # fmt: skip
    described["mainModule"]["torchscriptArena"] = {"key": "code/one.py"}
    described["mainModule"]["submodules"] = []
    parts = [
        _kept(b"IntList", b"](K\x01K\x02e"), _kept(b"TensorID", b"K\x03"),
        _kept(b"DoubleList", b"](G" + b"\x3f\xf8\0\0\0\0\0\0" + b"e"),
        _kept(b"TensorList", b"](" + _kept(b"TensorID", b"K\x01") + b"e"), _kept(b"BoolList", b"](\x88e"),
    ]  # fmt: skip
    pickled = b"\x80\x02](" + b"".join(parts) + b"e."
    code = "op_version_set = 1\nimport __torch__.Point\ndef forward(self) -> int:\n  return (self.ints)[1]\n"
    module = load(described, pickled, one=code)
    assert (module.get("ints"), module.get("floats"), module.get("flags")) == ([1, 2], [1.5], [True])
    assert module.get("t").array.tolist() == [2.0] * 4
    assert module.get("tensors")[0].array.tolist() == BIAS.tolist()
    assert call(module, "forward") == 2


@pytest.mark.parametrize("tail", [b"q\x01K\x01b", b"0K\x01", b""])
def test_an_instance_without_its_state_is_refused(tail: bytes) -> None:
    pickled = b"\x80\x02](" + b"c__main__\nIntList\n)\x81" + tail + b"e."
    with pytest.raises(ArchiveError):
        load(model(), pickled)
