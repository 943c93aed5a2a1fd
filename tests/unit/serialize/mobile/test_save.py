"""Programs for phones, written here: each form gives the same program back, with its code and by bytecode alone."""

from __future__ import annotations

import copy
import enum
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError, NotSupportedError
from engine.serialize.archive import form_of
from engine.serialize.identify.identify import identify
from engine.serialize.mobile.file import open_program
from engine.serialize.mobile.flatbuffer import FlatBuffer, FlatTable, Member
from engine.serialize.mobile.load import mobile_program
from engine.serialize.mobile.schema import FORMS
from engine.torch import nn
from tests.unit.serialize.mobile.prepacked import recorded
from tests.unit.serialize.mobile.programs import CASES, X, program
from tests.unit.serialize.model_files import without_code


def files(module: Any, folder: Path) -> list[Path]:
    """The program as a zip archive and as a flatbuffer, and both without code."""
    paths = [folder / name for name in ("m.ptl", "m.ff", "bare.ptl", "bare.ff")]
    module._save_for_lite_interpreter(paths[0], {"notes.txt": "hello"})
    module._save_for_lite_interpreter(paths[1], {"notes.txt": "hello"}, _use_flatbuffer=True)
    paths[3].write_bytes(without_code(paths[1].read_bytes()))
    with zipfile.ZipFile(paths[0]) as source, zipfile.ZipFile(paths[2], "w") as target:
        for name in source.namelist():
            if "/code/" not in name:
                target.writestr(name, source.read(name))
    return paths


def shown(value: Any) -> str:
    """The value as text, in which a named tuple is a plain one, as it is for phones."""
    return re.sub(r"grad_fn=<\w+>", "", str(plain(value)))


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", CASES)
def test_programs_come_back(name: str, tmp_path: Path) -> None:
    module, args = program(name)
    paths = files(module, tmp_path)
    wanted = [shown(module(*copy.deepcopy(args))) for _ in range(2)]
    for path in paths:
        extra = {"notes.txt": b""}
        found = engine.load(path, _extra_files=extra)
        assert extra["notes.txt"] == b"hello"
        assert [shown(found(*copy.deepcopy(args))) for _ in range(2)] == wanted, path.name


@torch.jit.interface
class Shape:
    def area(self, x: torch.Tensor) -> torch.Tensor:
        pass


@torch.jit.script
class Square:
    def __init__(self, side: int) -> None:
        self.side = side

    def area(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.side * self.side


class Shaped(nn.Module):
    """What its objects are of is written nowhere but in the data."""

    shape: Shape
    others: dict[str, list[Shape]]

    def __init__(self) -> None:
        super().__init__()
        self.shape, self.others = Square(2), {"a": [Square(3), Square(4)]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shape.area(x)


@pytest.mark.parametrize("flat", [True, False])
def test_classes_of_objects_behind_interfaces_are_written(flat: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.ptl"
    torch.jit.script(Shaped())._save_for_lite_interpreter(path, _use_flatbuffer=flat)
    assert torch.jit.load(path)(torch.ones(1)).tolist() == [4.0]


def test_between_them_they_need_each_instruction_that_is_written(tmp_path: Path) -> None:
    used: set[str] = set()
    for name in CASES:
        module, _ = program(name)
        found = mobile_program(open_program(files(module, tmp_path)[0]))
        assert found is not None
        used |= {each.opcode for function in found.functions for each in function.instructions}
    written = set(
        "OP LOAD MOVE STORE STOREN DROP DROPR LOADC JF JMP LOOP RET GET_ATTR SET_ATTR LIST_CONSTRUCT DICT_CONSTRUCT "
        "TUPLE_CONSTRUCT LIST_UNPACK ISINSTANCE RAISE_EXCEPTION DICT_INDEX __IS__ __ISNOT__ __NOT__ DIM "
        "FORMAT DTYPE DEVICE IS_CUDA TO_LIST UN_INITIALIZED".split()
    )
    assert written <= used, written - used


def test_registers_die_where_their_values_do(tmp_path: Path) -> None:
    """Of each register that is written, something is moved or dropped on every way, and nothing twice."""
    for name in CASES:
        module, _ = program(name)
        found = mobile_program(open_program(files(module, tmp_path)[0]))
        assert found is not None
        for function in found.functions:
            assert left_over(function) == set(), (name, function.name)


def left_over(function: Any) -> set[int]:
    """The registers that hold something at the end; follows both ways of branches and each loop once."""
    alive: set[int] = set()
    ways: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
    seen: set[tuple[int, frozenset[int]]] = set()
    while ways:
        at, held = way = ways.pop()
        if way in seen:
            continue
        seen.add(way)
        opcode, x, n = function.instructions[at]
        if opcode == "RET":
            alive |= held
            continue
        if opcode in ("LOAD", "MOVE", "DROPR"):
            assert x in held, (function.name, at)
        if opcode in ("MOVE", "DROPR"):
            held = held - {x}
        elif opcode in ("STORE", "STOREN"):
            new = frozenset(range(x, x + (n if opcode == "STOREN" else 1)))
            assert not new & held, (function.name, at)
            held = held | new
        if opcode in ("JF", "JMP", "LOOP"):
            ways.append((at + x, held))
        if opcode != "JMP":
            ways.append((at + 1, held))
    return alive


def test_constants_share_their_memory_with_those_of_the_code(tmp_path: Path) -> None:
    module = torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Linear(50, 50), nn.ReLU()).eval()))
    module._save_for_lite_interpreter(tmp_path / "m.ptl")
    module.save(tmp_path / "m.pt")
    assert (tmp_path / "m.ptl").stat().st_size < (tmp_path / "m.pt").stat().st_size + 5_000


def test_what_was_optimized_for_phones_is_written_again(tmp_path: Path) -> None:
    for path in recorded.forms(tmp_path):
        module, args, wanted = recorded.loaded(path)
        for again in files(module, tmp_path):
            recorded.compared(engine.load(again)(*args), wanted)


def test_every_field_is_read_back(tmp_path: Path) -> None:
    module, _ = program("state")
    module._save_for_lite_interpreter(tmp_path / "m.ff", _use_flatbuffer=True)
    root = FlatBuffer(memoryview((tmp_path / "m.ff").read_bytes()), FORMS).root("Module", b"PTMF")
    assert tables(root) > 50
    assert root["mobile_ivalue_size"] <= len(root["ivalues"])


def tables(table: FlatTable) -> int:
    count = 1
    for name in FORMS.tables[table.name]:
        value = table[name]
        parts = value if isinstance(value, list) else [value.value if isinstance(value, Member) else value]
        count += sum(tables(each) for each in parts if isinstance(each, FlatTable))
    return count


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    module, _ = program("containers")
    for flat in (False, True):
        first = module._save_to_buffer_for_lite_interpreter(_use_flatbuffer=flat)
        assert module._save_to_buffer_for_lite_interpreter(_use_flatbuffer=flat) == first


class Forks(nn.Module):
    def forward(self, x: torch.Tensor):
        future = torch.jit.fork(torch.relu, x)
        return torch.jit.wait(future)


class Contexts(nn.Module):
    def forward(self, x: torch.Tensor):
        with torch.no_grad():
            return x * 2


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Colors(nn.Module):
    def forward(self, x: torch.Tensor, n: int):
        color = Color.RED if n > 1 else Color.BLUE
        return x if color == Color.BLUE else -x


class Colored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.colors = [Color.RED]

    def forward(self, x: torch.Tensor):
        return x


@torch.jit.script
class Counter:
    def __init__(self, n: int):
        self.n = n


class Classes(nn.Module):
    def forward(self, x: torch.Tensor):
        counter = Counter(3)
        return x + counter.n


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(("made", "reason"), [(Colors, "Enum"), (Colored, "Enum"), (Classes, "other than custom")])
def test_values_that_phones_cannot_have_are_refused(made: Any, reason: str, flat: bool, tmp_path: Path) -> None:
    module = torch.jit.script(made())
    with pytest.raises(NotSupportedError, match=reason):
        module._save_for_lite_interpreter(tmp_path / "m.ptl", _use_flatbuffer=flat)


@pytest.mark.parametrize("made", [Forks, Contexts])
@pytest.mark.parametrize("flat", [False, True])
def test_what_bytecode_cannot_do_is_refused(made: Any, flat: bool, tmp_path: Path) -> None:
    module = torch.jit.script(made())
    with pytest.raises(NotSupportedError, match=r"not supported in (mobile module|lite interpreter)(.|\n)*<--- HERE"):
        module._save_for_lite_interpreter(tmp_path / "m.ptl", _use_flatbuffer=flat)
    assert not any(tmp_path.iterdir())


def test_the_name_of_a_file_tells_its_form(tmp_path: Path) -> None:
    assert [form_of(name) for name in ("a.pt", "a.ptl", "b/a.ff", "ptl")] == [
        "archive", "mobile", "flatbuffer", "archive",
    ]  # fmt: skip


# -- torch.jit.mobile


def test_lite_modules(tmp_path: Path) -> None:
    module, _ = program("state")
    module._save_for_lite_interpreter(tmp_path / "m.ptl")
    lite = torch.jit.mobile._load_for_lite_interpreter(tmp_path / "m.ptl")
    assert lite.find_method("named") and not lite.find_method("other")
    assert lite.run_method("named", X).tolist() == (X * 2.5).tolist()
    assert lite(X)[1] == 1 and lite.forward(X)[1] == 2
    assert "aten::index.Tensor" in torch.jit.mobile._export_operator_list(lite)
    with pytest.raises(RuntimeError, match="'other' is not defined"):
        lite.run_method("other")
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.mobile._load_for_lite_interpreter(str(tmp_path / "no.ptl"))


def test_facts_about_files(tmp_path: Path) -> None:
    module, _ = program("containers")
    zipped, flat, *_ = files(module, tmp_path)
    mobile = torch.jit.mobile
    assert (mobile._get_model_bytecode_version(zipped), mobile._get_model_bytecode_version(flat)) == (8, 9)
    for path in (zipped, flat):
        assert {"List", "Tensor", "Dict", "str"} <= mobile._get_mobile_model_contained_types(path)
        found = mobile._get_model_ops_and_info(path)
        assert found["aten::max.dim"].num_schema_args == 3
    module.save(tmp_path / "m.pt")
    with pytest.raises(ArchiveError, match="no bytecode"):
        mobile._get_model_bytecode_version(tmp_path / "m.pt")


def test_facts_about_flatbuffers(tmp_path: Path) -> None:
    """Those of the kind of `torch.jit._serialization`, and the extra files."""
    module = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.GELU()))
    data = module._save_to_buffer_for_lite_interpreter({"a/b.txt": "text"}, _use_flatbuffer=True)
    found = torch.jit._serialization.get_flatbuffer_module_info(io.BytesIO(data))
    names = found.pop("function_names")
    assert {name.rpartition(".")[2] for name in names} == {"forward", "__len__"}
    assert found == {
        "bytecode_version": 9, "operator_version": 10, "type_names": set(),
        "opname_to_num_args": {"aten::linear": 3, "aten::gelu": 1},
    }  # fmt: skip
    plain = torch.jit.script(nn.Linear(2, 2))._save_to_buffer_for_lite_interpreter(_use_flatbuffer=True)
    assert torch.jit._serialization.get_flatbuffer_module_info(io.BytesIO(plain))["operator_version"] == 1
    extra: dict[str, bytes] = {}
    torch._C._get_model_extra_files_from_buffer(data, extra)
    assert extra == {"a/b.txt": b"text"}
    module.save(tmp_path / "m.pt")
    with pytest.raises(ArchiveError, match="no flatbuffer"):
        torch.jit._serialization.get_flatbuffer_module_info(tmp_path / "m.pt")


def test_other_versions_of_bytecode(tmp_path: Path) -> None:
    module, args = program("flow")
    zipped, flat, *_ = files(module, tmp_path)
    wanted, mobile = shown(module(*args)), torch.jit.mobile
    assert mobile._backport_for_mobile(flat, tmp_path / "old.ptl", 8)
    assert mobile._backport_for_mobile(zipped, tmp_path / "new.ff", 9)
    assert mobile._get_model_bytecode_version(tmp_path / "old.ptl") == 8
    assert identify(tmp_path / "new.ff").facts[0] == ("format", "flatbuffer")
    assert [shown(engine.load(tmp_path / name)(*args)) for name in ("old.ptl", "new.ff")] == [wanted] * 2
    assert not mobile._backport_for_mobile(flat, tmp_path / "older.ptl", 3)
    assert not (tmp_path / "older.ptl").exists()
