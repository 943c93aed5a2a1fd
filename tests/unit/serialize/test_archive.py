"""Whole archives: three that PyTorch wrote (`archives/`), what is saved from them, and what is refused."""

import contextlib
import io
import os
import random
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.aten.values.ivalue import EnumValue
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans.executor import executor_of
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.ir.clone import copy_graph
from engine.ir.constants import constant_value
from engine.lang.errors import ArchiveError, ExecutionError
from engine.lang.scalars import device
from engine.passes.pipeline import run_pipeline
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.container.write import ContainerWriter
from tests.unit.serialize.model_files import compiled

ARCHIVES = Path(__file__).parent / "archives"
NAMES = ["everything", "function", "constants"]


def load(source, **options):
    return load_archive(source, run=run_function, **options)


def saved(module, name="m.pt", **options):
    """The bytes of the archive that a module is saved as."""
    file = io.BytesIO()
    save_archive(module, file, run=run_function, **options)
    return file.getvalue()


def records(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def rebuilt(name, **changes):
    """A copy of an archive with some records replaced (None: left out)."""
    contents = {**records((ARCHIVES / f"{name}.pt").read_bytes()), **changes}
    writer = ContainerWriter(name)
    for record, data in contents.items():
        if data is not None:
            writer.add(record, data)
    return io.BytesIO(b"".join(writer.pieces()))


def refused(source):
    with pytest.raises(ArchiveError) as caught:
        compiled(load(source))
    return caught.value


@pytest.fixture(scope="module")
def everything():
    return load(ARCHIVES / "everything.pt")


# -- loading


def test_plain_attributes(everything):
    expected = {
        "i": 7, "f": 2.5, "s": "snow ☃\n", "b": True, "c": 1.5 - 2j, "big": 2**40, "neg": -3, "maybe": None,
        "either": "text", "empty": [], "ints": [1, 2], "floats": [0.5], "bools": [True, False], "strs": ["a", "", "a"],
        "nested": {1: ["one"], 2: []}, "pair": (1, (0.25, "deep")),
    }  # fmt: skip
    assert {name: everything.get(name) for name in expected} == expected
    assert str(everything.get("device")) == "cpu"
    assert everything.get("color") == EnumValue(everything.type.attribute("color").type, "GREEN")


def test_the_class(everything):
    type = everything.type
    assert type.qualname == "__torch__.Everything"
    assert type.is_module
    kinds = {a.name: a.kind for a in type.attributes}
    assert (kinds["weight"], kinds["row"], kinds["i"]) == ("parameter", "buffer", "attribute")
    assert type.constants == {"scale": 0.5, "flags": (True, False)}
    assert type.attribute("nested").type.annotation_str == "Dict[int, List[str]]"
    assert [a.name for a in everything.get("layers").type.attributes if a.name.isdigit()] == ["0", "1"]


def test_tensors_share_their_storage(everything):
    weight, row = everything.get("weight"), everything.get("row")
    assert weight.requires_grad
    assert not row.requires_grad
    assert weight.memory is row.memory
    assert row.array.tolist() == [3.0, 4.0, 5.0]
    assert everything.get("tensors")[1].array.strides == (4, 8)
    assert everything.get("origin")[0].array.tolist() == [1.0, -1.0]


def test_state_methods_are_run(everything):
    packed = everything.get("layers").get("1")
    assert packed.get("n") == 3
    assert packed.get("training") is False


def test_the_program_runs(everything):
    forward = everything.type.methods["forward"]
    assert [a.name for a in forward.schema.arguments] == ["self", "x", "n"]
    assert forward.schema.arguments[2].default == 1
    result, count, text = run_function(forward, [everything, Tensor(np.zeros(3, np.float32)), 3])
    assert result.array.tolist() == [13.0, 14.0, 15.0]
    assert (count, text) == (10, "gsnow ☃\n")


def test_errors_point_at_the_authors_text(everything):
    forward = everything.type.methods["forward"]
    ranges = [node.range.original() for node in forward.graph.all_nodes() if node.kind == "prim::RaiseException"]
    assert ranges[0].filename.endswith("make_archives.py")
    assert ranges[0].text.startswith('raise ValueError("too many')


def test_constants_of_the_code():
    module = load(ARCHIVES / "constants.pt")
    result = run_function(module.type.methods["forward"], [module, Tensor(np.ones(3, np.float32))])
    assert result.array.tolist() == [1.0, 2.0, 3.0]
    nodes = module.type.methods["forward"].graph.find_all_nodes("prim::Constant")
    types = {str(node.output.type) for node in nodes if isinstance(constant_value(node.output), Tensor)}
    assert types == {"Tensor"}, "programs know no more of a tensor"


def test_extra_files():
    extra = {"note.txt": "", "missing.txt": "as it was"}
    load(ARCHIVES / "everything.pt", extra_files=extra)
    assert extra == {"note.txt": b"hello", "missing.txt": b"as it was"}


@pytest.mark.parametrize("name", ["../x", "/abs", "a\\b", "", "a\0b", "a//b", ".", "a/", "\ud800", "x" * 40_000])
def test_an_extra_file_that_nobody_could_read_again_is_refused(name, tmp_path):
    module = load(ARCHIVES / "everything.pt")
    with pytest.raises(ArchiveError, match="an extra file cannot be called"):
        save_archive(module, tmp_path / "m.pt", {name: "x"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [3, None, ["a"]])
def test_an_extra_file_is_text_or_bytes(content, tmp_path):
    with pytest.raises(TypeError, match="'a' is neither text nor bytes"):
        save_archive(load(ARCHIVES / "everything.pt"), tmp_path / "m.pt", {"a": content})


def test_a_device_has_no_negative_number():
    with pytest.raises(RuntimeError, match="must not be negative"):
        device("cpu", -1)
    assert str(device("cpu", 999)) == "cpu:999"


def test_map_locations_that_are_none():
    with pytest.raises(TypeError, match="map_location is a device"):
        load(ARCHIVES / "everything.pt", map_location=3)
    with pytest.raises(RuntimeError, match="device type at start of device string: xyz"):
        load(ARCHIVES / "everything.pt", map_location="xyz")
    assert load(ARCHIVES / "everything.pt", map_location="cpu:999") is not None


def coded(code):
    """An archive whose module, of the class `P`, has this code."""
    return rebuilt("function", **{"code/__torch__.py": named(code).encode()})


def named(code):
    return re.sub(r"\bP\b", "PlaceholderModule", code)


BAD_METHOD = named(
    "class P(Module):\n  training : bool\n"
    "  def good(self: __torch__.P) -> int:\n    return 7\n"
    "  def bad(self: __torch__.P, n: int=3) -> int:\n    return y\n"
    "  def calls(self: __torch__.P) -> int:\n    return self.bad()\n"
)


def test_methods_are_compiled_when_they_are_first_needed_or_at_once():
    with pytest.raises(ArchiveError):
        load(coded(BAD_METHOD), lazy=False)
    module = load(coded(BAD_METHOD))
    methods = module.type.methods
    assert run_function(methods["good"], [module]) == 7
    assert [method.is_defined for method in methods.values()] == [True, False, False]


def test_what_is_wrong_with_a_method_is_said_each_time_it_is_needed():
    module = load(coded(BAD_METHOD))
    method = module.type.methods["bad"]
    assert str(method.signature).partition("(")[0] == "bad"
    for need in (lambda: method.graph, lambda: run_function(method, [module]), lambda: saved(module)):
        with pytest.raises(ArchiveError, match="return y") as caught:
            need()
        assert caught.value.record == "code/__torch__.py"
        assert caught.value.offset == BAD_METHOD.index("y\n", BAD_METHOD.index("return y"))


@pytest.mark.parametrize("mode", ["background", "eager", "off"])
def test_what_calls_a_method_is_told_by_the_call_what_is_wrong_with_it(mode, monkeypatch):
    monkeypatch.setattr(tiering, "mode", lambda: mode)
    module = load(coded(BAD_METHOD))
    method = module.type.methods["calls"]
    assert "prim::CallMethod" in str(method.graph) and not module.type.methods["bad"].is_defined
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"return y(.|\n)*record 'code/__torch__.py'") as caught:
            run_function(method, [module])
        assert [frame.function for frame in caught.value.frames] == ["calls"]
    with pytest.raises(ArchiveError, match="return y"):
        saved(module)


CALLED = named(
    "class P(Module):\n  training : bool\n"
    "  def bad(self: __torch__.P, n: int) -> int:\n    return y\n"
    "  def over(self: __torch__.P, n: int) -> int:\n    return self.bad(n)\n"
    "  def forward(self: __torch__.P, n: int) -> int:\n    found = n\n{body}    return found\n"
)
PLACES = {
    "branch": "    if n < 0:\n      found = self.{name}(n)\n",
    "loop": "    for i in range(n):\n      if i > 5:\n        found = self.{name}(n)\n",
    "loop that does not run": "    for i in range(n - 3):\n      found = self.{name}(n)\n",
    "long loop": "    for i in range(n * 20000):\n      if n < 0:\n        found = self.{name}(n)\n",
}


@pytest.mark.parametrize("mode", ["background", "eager", "off"])
@pytest.mark.parametrize("name", ["bad", "over"])
@pytest.mark.parametrize("place", PLACES)
def test_calls_that_are_not_made_may_be_of_what_does_not_compile(place, name, mode, monkeypatch):
    monkeypatch.setattr(tiering, "mode", lambda: mode)
    module = load(coded(CALLED.format(body=PLACES[place].format(name=name))))
    method = module.type.methods["forward"]
    for _ in range(3):
        assert run_function(method, [module, 3]) == 3
        executor_of(method).wait()
    copy = copy_graph(method.graph)
    run_pipeline(("inline", "dce", "constant_propagation"), copy)
    assert any(node.kind == "prim::CallMethod" for node in copy.all_nodes()) or place == "loop that does not run"


def test_signatures_are_read_at_once():
    code = "class P(Module):\n  training : bool\n  def f(self: __torch__.P, x: Unknown) -> int:\n    return 1\n"
    with pytest.raises(ArchiveError, match="Unknown"):
        load(coded(code))


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_the_schemas(name):
    for method in load(ARCHIVES / f"{name}.pt").type.methods.values():
        signature = method.signature
        assert not method.is_defined
        assert signature == method.schema


def test_methods_that_call_themselves_are_still_refused():
    code = (
        "class P(Module):\n  training : bool\n  def f(self: __torch__.P) -> int:\n    return self.g()\n"
        "  def g(self: __torch__.P) -> int:\n    return self.f()\n"
    )
    for first, second in ("fg", "gf"):
        module = load(coded(code))
        methods = module.type.methods
        methods[first].ensure_defined()
        for _ in range(2):
            with pytest.raises(ArchiveError, match=f"function '{second}' is called recursively"):
                methods[second].ensure_defined()
            with pytest.raises(ExecutionError, match=f"function '{second}' is called recursively"):
                run_function(methods[first], [module])
    with pytest.raises(ArchiveError, match="recursive"):
        load(coded(code), lazy=False)


def test_many_threads_may_be_the_first_to_need_a_method():
    lines = "".join(f"    x{i + 1} = torch.add(torch.mul(x{i}, 2), 1)\n" for i in range(60))
    methods = "".join(
        f"  def f{i}(self: __torch__.P, x0: Tensor) -> Tensor:\n{lines}    return self.f{(i + 1) % 8}(x60)\n"
        for i in range(7)
    )
    last = f"  def f7(self: __torch__.P, x0: Tensor) -> Tensor:\n{lines}    return x60\n"
    code = "class P(Module):\n  training : bool\n" + methods + last
    module = load(coded(code))
    with ThreadPoolExecutor(8) as pool:
        graphs = list(pool.map(lambda i: module.type.methods[f"f{i % 8}"].graph, range(32)))
    assert [id(graph) for graph in graphs] == [id(module.type.methods[f"f{i % 8}"].graph) for i in range(32)]


def test_an_open_file_is_read_and_left_open():
    with (ARCHIVES / "function.pt").open("rb") as file:
        assert load(file).type.qualname == "__torch__.PlaceholderModule"
        assert not file.closed


# -- saving


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_is_what_pytorch_saved(name):
    before = (ARCHIVES / f"{name}.pt").read_bytes()
    after = records(saved(load(io.BytesIO(before))))
    for record, data in records(before).items():
        same = record.endswith(".pkl") or record.startswith(("data/", "constants/", "version", "byteorder"))
        if same or record.endswith(".py"):
            assert after[record] == data, record
    assert [r for r in after if not r.startswith("extra")] == [r for r in records(before) if not r.startswith("extra")]


@pytest.mark.parametrize("name", NAMES)
def test_saving_twice_gives_the_same_bytes(name):
    first = saved(load(ARCHIVES / f"{name}.pt"), extra_files={"a": "text", "b": b"\0"})
    second = saved(load(io.BytesIO(first)), extra_files={"a": "text", "b": b"\0"})
    assert first == second


def test_a_saved_module_is_the_same_module(everything):
    again = load(io.BytesIO(saved(everything)))
    for attribute, other in zip(everything.type.attributes, again.type.attributes, strict=True):
        assert (attribute.name, attribute.kind) == (other.name, other.kind)
        assert attribute.type.annotation_str == other.type.annotation_str
    forward = again.type.methods["forward"]
    result, _, _ = run_function(forward, [again, Tensor(np.zeros(3, np.float32)), 1])
    assert result.array.tolist() == [13.0, 14.0, 15.0]


def test_the_folder_is_named_after_the_file(tmp_path, everything):
    save_archive(everything, tmp_path / "model.v1.pt", run=run_function)
    with zipfile.ZipFile(tmp_path / "model.v1.pt") as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"model.v1"}
    assert os.listdir(tmp_path) == ["model.v1.pt"]


def test_a_function_is_saved_as_a_module():
    holder = load(ARCHIVES / "function.pt")
    method = holder.type.methods["forward"]
    assert [a.has_default for a in method.schema.arguments] == [False] * 3
    assert holder.get("training") is True


UNION = """def f(x: Union[List[int], int]) -> Union[List[int], int]:
    y = [1, 2]
    return y
"""


def test_a_function_that_is_saved_returns_what_its_graph_does():
    first = saved(compile_source(UNION).functions["f"])
    module = load(io.BytesIO(first))
    assert str(module.type.methods["forward"].schema.returns[0].type) == "int[]"
    assert records(saved(module)).keys() == records(first).keys()
    code = next(name for name in records(first) if name.endswith(".py"))
    assert records(saved(module))[code] == records(first)[code]


def test_a_value_of_the_wrong_type_leaves_no_file(tmp_path, everything):
    module = load(io.BytesIO(saved(everything)))
    module.set("ints", ["one"])
    with pytest.raises(ArchiveError, match="attribute 'ints'"):
        save_archive(module, tmp_path / "m.pt", run=run_function)
    assert not list(tmp_path.iterdir())


# -- refusing


def test_every_truncation_is_refused():
    data = (ARCHIVES / "function.pt").read_bytes()
    for length in range(len(data)):
        refused(io.BytesIO(data[:length]))


@pytest.mark.parametrize("name", NAMES)
def test_changed_bytes_are_refused_or_harmless(name):
    """Every record is changed under a right checksum, so that what is behind the container is reached."""
    chance = random.Random(11)
    contents = records((ARCHIVES / f"{name}.pt").read_bytes())
    for _ in range(150):
        record = chance.choice([r for r in contents if not r.startswith(("data/", "extra"))])
        data = bytearray(contents[record])
        for _ in range(chance.choice((1, 2, 4))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(ArchiveError):
            load(rebuilt(name, **{record: bytes(data)}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data.pkl": None}, "no record 'data.pkl'"),
        ({"version": None}, "does not say its version"),
        ({"version": b"11\n"}, "versions 1 to 10"),
        ({"version": b"0"}, "versions 1 to 10"),
        ({"version": b"new"}, "says its version is"),
        ({"byteorder": b"middle"}, "byte order"),
        ({"code/__torch__.py": None}, "no class '__torch__.PlaceholderModule'"),
        ({"code/__torch__.py": b"class PlaceholderModule(Module:\n"}, "cannot be read"),
        ({"code/__torch__.py": b"\xff"}, "not UTF-8"),
        ({"data.pkl": b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R."}, "'os.system' is not allowed"),
        ({"data.pkl": b"\x80\x02K\x01."}, "holds data and no module"),
        ({"constants.pkl": b"\x80\x02K\x01."}, "is no tuple"),
        ({"constants.pkl": b"\x80\x02(]ccollections\nOrderedDict\nat."}, "name of a function as a value"),
        ({"data.pkl": None, "constants.pkl": None, "model.json": b"{}"}, "the description of the model is refused"),
        ({"data.pkl": None, "constants.pkl": None}, "holds no program"),
    ],
)
def test_what_is_wrong_is_said(changes, reason):
    assert reason in str(refused(rebuilt("function", **changes)))


@pytest.mark.parametrize(
    "code",
    [
        b"class PlaceholderModule(Module):\n  training : bool\n  training : bool\n",
        b"class PlaceholderModule(Base):\n  training : bool\n",
        b"class PlaceholderModule(Module):\n  training : Unknown\n",
        b"class PlaceholderModule(Module):\n  training : __torch__.Missing\n",
        b"class PlaceholderModule(Module):\n  training : bool\n  def forward(self) -> int:\n    return undefined\n",
        b"class PlaceholderModule(Module):\n  training : bool\n  k : Final[int] = open(1)\n",
        b"class PlaceholderModule(Module):\n  training : bool\n  k : Final[int] = CONSTANTS.c0\n",
        b"class PlaceholderModule(Module):\n  training : str\n",
        b"class PlaceholderModule(Module):\n  other : bool\n",
        b"class PlaceholderModule(Enum):\n  training = 1\n",
        b"class PlaceholderModule(Module):\n  __parameters__ = 3\n",
        b"class PlaceholderModule(Module):\n  print(1)\n",
        b"class PlaceholderModule(Module):\n  a.b : int\n",
        b"def PlaceholderModule() -> int:\n  return 1\n",
    ],
)
def test_code_that_makes_no_sense_is_refused(code):
    refused(rebuilt("function", **{"code/__torch__.py": code}))
