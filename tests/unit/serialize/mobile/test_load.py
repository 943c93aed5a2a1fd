"""Mobile programs that are loaded: with their code, and from bytecode alone."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

import engine
from engine.aten.values.ivalue import Object
from engine.executor.interpreter.budget import BudgetedRunner
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError
from engine.lang.types import TupleType
from engine.serialize.archive import load_archive
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.fix import fix_devices, repack
from engine.serialize.inspect.survey import survey
from engine.serialize.mobile.file import open_program
from engine.serialize.mobile.load import mobile_program
from tests.unit.serialize.mobile.flatbuffer_maker import function, program
from tests.unit.serialize.model_files import ARCHIVES, FILES, without_code

MOBILE = ARCHIVES / "mobile.ff"
X = [[1.0, 2.0, 4.0], [0.0, -1.0, 1.0]]


@pytest.fixture(params=["with code", "without code"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "with code":
        return MOBILE
    found = tmp_path / "bytecode.ff"
    found.write_bytes(without_code(MOBILE.read_bytes()))
    return found


def outputs(module: Any) -> list[Any]:
    """What it gives, rounded; PyTorch 2.13 gives `RECORDED`."""
    found: list[Any] = []
    for factor in (None, 1.5):
        y, parts, text = module(engine.tensor(X), factor)
        sums = {name: round(float(part.sum()), 3) for name, part in parts.items()}
        found += [[[round(each, 3) for each in row] for row in y.tolist()], sums, text, module.last]
    return [*found, module.count(6)]


RECORDED = [
    [[0.0, 2.166], [0.0, 2.0]], {"min": 4.166, "a": 4.166, "b": 4.166}, "größer 1", 1,
    [[-1.125, 1.312], [-1.125, 1.125]], {"min": 0.187, "a": 2.437, "b": 0.187}, "größer 2", 2,
    10,
]  # fmt: skip


def test_it_runs_as_in_pytorch(path: Path) -> None:
    assert outputs(engine.load(path)) == RECORDED


def test_it_is_saved_as_an_archive(path: Path, tmp_path: Path) -> None:
    done = repack(path, tmp_path / "new.pt", run_function)
    assert (done.before, done.rewrites) == ("9", [])
    extra = {"notes.txt": ""}
    assert outputs(engine.load(tmp_path / "new.pt", _extra_files=extra)) == RECORDED
    assert extra["notes.txt"] == b"hello"
    assert not compare(path, tmp_path / "new.pt").weights


def test_modules_and_weights_are_those_of_the_file(path: Path) -> None:
    seen = survey(path)
    tensors = {name: (kind, tensor.dtype.name, tuple(tensor.shape)) for name, kind, tensor in seen.tensors()}
    assert tensors == {
        "order": ("buffer", "int64", (2,)), "linear.weight": ("parameter", "float32", (2, 3)),
        "linear.bias": ("parameter", "float32", (2,)), "constants.0": ("constant", "float32", (1, 3)),
    }  # fmt: skip
    assert not seen.broken and not seen.missing()
    assert seen.operators()["aten::linear"] == 1
    assert seen.filled == ["__torch__.Shift"]


def test_an_archive_of_bytecode_alone(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "mobile.ptl") as source, zipfile.ZipFile(tmp_path / "m.ptl", "w") as target:
        for name in source.namelist():
            if "/code/" not in name:
                target.writestr(name, source.read(name))
    x = engine.ones(2, 4)
    found, wanted = (engine.load(path)(x).tolist() for path in (tmp_path / "m.ptl", FILES / "mobile.ptl"))
    assert found == wanted


def test_the_code_of_bytecode_reads_as_code(tmp_path: Path) -> None:
    path = tmp_path / "m.ff"
    path.write_bytes(without_code(MOBILE.read_bytes()))
    code = engine.load(path).count.code
    assert code == CODE


CODE = """\
def count(self,
    n: int) -> int:
  _0 = ((self.pairs)[0])[0]
  _1 = _0
  _2 = 0
  _3 = torch.gt(n, 0)
  while _3:
    if torch.eq(torch.remainder(_2, 2), 0):
      _4 = _1
    else:
      _4 = torch.add(_1, _2)
    _5 = torch.add(_2, 1)
    _6 = torch.__and__(torch.lt(_5, n), True)
    _3, _1, _2 = _6, _4, _5
  return _1
"""


def test_bytecode_can_be_listed() -> None:
    found = mobile_program(open_program(MOBILE))
    assert found is not None and [each.name.rpartition(".")[2] for each in found.functions] == [
        "forward", "count", "__setstate__", "__getstate__",
    ]  # fmt: skip
    assert "aten::linear, 3 arguments" in found.listing()


def test_tensors_alone_are_no_program() -> None:
    path = FILES / "mobile_weights.ff"
    with pytest.raises(ArchiveError, match="tensors in a file for mobile devices"):
        engine.load(path)
    found = engine.load_weights(path)
    assert {name: (each.dtype.name, each.tolist()) for name, each in found.items()} == {
        "linear.weight": ("float32", [[1.0] * 3] * 2), "linear.bias": ("int16", [1, 2]),
    }  # fmt: skip
    assert mobile_program(open_program(path)) is None


def test_devices_are_changed_in_an_archive_of_it(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not changed in place"):
        fix_devices(MOBILE, "cpu", tmp_path / "m.pt")


# -- classes of which only the objects are there

TYPE = {"type_name": "__torch__.M", "type": 1}


def loaded(values: list[Any], attributes: list[int], names: list[str], **more: Any) -> Object:
    """The module of a file without code, whose values come before the module."""
    module = ("Object", {"attrs": attributes})
    data = program([*values, module], object_types=[{**TYPE, "attr_names": names}], **more)
    return load_archive(io.BytesIO(data), run=BudgetedRunner())


RETURN_SELF = function([("STORE", 1, 0), ("LOAD", 1, 0), ("GET_ATTR", 0, 0), ("RET", 0, 0)], returns="Any")


def test_attributes_have_types_that_fit_them() -> None:
    lists = [("IntList", {}), ("IntList", {"items": [1]}), ("List", {"items": [1, 2]}), ("Dict", {})]
    typed = ("List", {"annotation_str": "List[str]"}), ("Dict", {"annotation_str": "Dict[int, List[float]]"})
    values = [*lists, ("String", {"data": "a"}), *typed, ("List", {"annotation_str": "List["}), RETURN_SELF]
    module = loaded(values, [1, 3, 4, 5, 0, 6, 7, 8], list("abcdefgh"))
    assert [each.type.annotation_str for each in module.type.attributes] == [
        "List[int]", "List[List[int]]", "Dict[str, Tensor]", "str", "NoneType", "List[str]", "Dict[int, List[float]]",
        "List[Tensor]",
    ]  # fmt: skip


def test_tuples_of_tuples_get_no_type_without_end() -> None:
    tuples = [("Tuple", {"items": [number, number]}) for number in range(100)]
    module = loaded([*tuples, RETURN_SELF], [100], ["a"])
    type = module.type.attributes[0].type
    assert isinstance(type, TupleType) and type.size < 20_000


def test_an_attribute_that_code_sets_to_something_else() -> None:
    code = [("STORE", 1, 0), ("LOAD", 1, 0), ("LOADC", 0, 0), ("SET_ATTR", 0, 0), ("LOADC", 0, 0), ("RET", 0, 0)]
    setter = function(code, constants=[1], returns="int")
    module = loaded([("Int", (3,)), setter], [0], ["a"])
    assert module.type.attributes[0].type.annotation_str == "Optional[int]"


def test_enums_need_code() -> None:
    with pytest.raises(ArchiveError, match=r"a value is of '__torch__\.E', of which the file's code says nothing"):
        loaded([("Int", (3,)), ("EnumValue", {"type_name": "__torch__.E", "value": 1}), RETURN_SELF], [2], ["a"])
