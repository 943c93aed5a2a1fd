"""Archives that mean harm, each made here: all are refused, with place and reason, and nothing of them happens."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pickle
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

import engine
from engine.aten.dispatch import table
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.standard_library import library
from engine.lang.errors import ArchiveError, BudgetExceeded, EngineError
from engine.serialize.archive import load_archive
from engine.serialize.container.read import open_container
from engine.serialize.container.write import ContainerWriter
from tests.timing import within
from tests.unit.serialize.hostile_archives import (
    CLASS,
    MODULE,
    SOON,
    _int,
    archive,
    load,
    refused,
    tensor,
    text,
    zipped,
)

FUNCTION = Path(__file__).parent / "archives" / "function.pt"


@pytest.fixture(autouse=True)
def _nothing_is_executed(monkeypatch):
    def executed(*args, **kwargs):
        raise AssertionError(f"code of an archive was executed: {args} {kwargs}")

    for owner, name in ((os, "system"), (os, "popen"), (subprocess, "Popen"), (pickle, "loads"), (builtins, "input")):
        monkeypatch.setattr(owner, name, executed)


def test_what_all_these_are_made_from_is_a_good_archive():
    assert load(archive()).get("training") is True


# -- pickles


@pytest.mark.parametrize("record", ["data.pkl", "constants.pkl"])
@pytest.mark.parametrize("code", range(256))
def test_no_opcode_runs_anything(record, code):
    command = text(b"true")
    for before, after in (
        (b"cos\nsystem\n(" + command + b"t", b"."),
        (b"cos\nsystem\n" + command + b"\x85", b"."),
        (b"(cos\nsystem\n" + command, b"."),
        (b"(" + command, b"os\nsystem\n."),
        (text(b"os") + text(b"system"), command + b"\x85R."),
        (b"cos\nsystem\n)\x81}", b"."),
    ):
        refused(archive(**{record: b"\x80\x02" + before + bytes([code]) + after}))


class Runs:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("record", ["data.pkl", "constants.pkl"])
@pytest.mark.parametrize(
    "call", [(eval, ("1",)), (exec, ("1",)), (os.getenv, ("A",)), (getattr, (1, "real")), (__import__, ("os",))]
)
def test_what_pickle_would_call_is_refused(record, protocol, call):
    refused(archive(**{record: pickle.dumps(Runs(*call), protocol)}))


def test_a_debug_record_is_read_when_it_is_needed_and_then_by_the_same_rules():
    code = CLASS + b"  def forward(self : __torch__.M) -> int:\n    return 1\n"
    bad = b"\x80\x02cos\nsystem\n" + text(b"true") + b"\x85R."
    module = load(archive(**{"code/__torch__.py": code, "code/__torch__.py.debug_pkl": bad}))
    node = module.type.methods["forward"].graph.block.return_node
    assert node.range is None or node.range.original() is not None


@pytest.mark.parametrize(
    "name",
    [
        "os system",
        "posix system",
        "builtins eval",
        "__builtin__ eval",
        "builtins getattr",
        "nt system",
        "torch._utils _rebuild_tensor_v2.__globals__",
        "torch._utils _rebuild_tensor_v3",
        "torch._utils  _rebuild_tensor_v2",
        "torch.jit._pickle build_intlist.__class__",
        "torch.jit._pickle os.system",
        "torch.jit._pickle restore_type_tag\r",
        "torch FloatStorage.__init__",
        "torch load",
        "torch.serialization load",
        "torch.hub load",
        "Torch device",
        "t\u043erch device",
        "torch\0 device",
        "torch\u200b device",
        "collections OrderedDict.fromkeys",
        "collections OrderedDict.__class__",
        "collections.abc OrderedDict",
        "copyreg _reconstructor",
        "functools partial",
        "_codecs encode",
        "operator attrgetter",
        "types FunctionType",
        "numpy load",
        "__torch__ os.system",
        "__torch__..M M",
        "__torch__ __class__",
        "__torch__.os system",
        "__torch__/../os system",
        "__torch__ M.__init__",
        "__torch__x M",
        "__torch__ torch_mangle_0.M",
        "engine load",
        "engine.serialize.archive load_archive",
        " ",
        ". .",
    ],
)
def test_names_that_look_allowed_are_refused(name):
    module, _, attribute = name.partition(" ")
    error = refused(archive(**{"data.pkl": b"\x80\x02c%b\n%b\n)R." % (module.encode(), attribute.encode())}))
    assert (error.record, error.offset) == ("data.pkl", 2)


def test_all_opcodes_and_names_are_known_before_anything_is_built():
    """The class that comes first is found, but no instance of it is made."""
    code = CLASS + b"  def __getstate__(self : __torch__.M) -> int:\n    return 1\n"
    code += (
        b"  def __setstate__(self : __torch__.M, n : int) -> NoneType:\n    while True:\n      pass\n    return None\n"
    )
    for end in (b"cos\nsystem\n.", b"\x93.", b"X\xff\xff\xff\xff.", b"q", b"(."):
        error = refused(archive(**{"code/__torch__.py": code, "data.pkl": b"\x80\x02c__torch__\nM\n)\x81K\x01b" + end}))
        assert not isinstance(error, BudgetExceeded)


@pytest.mark.parametrize(
    "data",
    [
        b"I__import__('os').system('true')\n",
        b"I1+1\n",
        b"I0x10\n",
        b"I1_0\n",
        b"I\n",
        b"I" + b"9" * 30 + b"\n",
        b"L1+1L\n",
        b"L" + b"9" * 60_000 + b"L\n",
        b"F1+1\n",
        b"Fopen('x')\n",
        b"F1_0.\n",
        b"S'a' + 'b'\n",
        b"Sa\n",
        b"S'\n",
        b"S'\\'\n",
        b"S'a\\N{BULLET}'\n",
        b"Sf'{1}'\n",
        b"V\\ud8\n",
        b"p-1\n",
        b"g__class__\n",
        b"p1 \n",
        b"I" + b"1" * 100_000 + b"\n",
    ],
)
def test_texts_of_numbers_and_strings_are_parsed_and_not_evaluated(data):
    refused(archive(**{"data.pkl": b"\x80\x02N" + data + b"0."}))


@pytest.mark.parametrize(
    "data",
    [
        b"]" * 20_000_000,
        b"(" + b"}" * 10_000_000 + b"t",
        b"(" * 100_000,
        b"]" * 100_000 + b"a" * 99_999,
        b")" + b"\x85" * 100_000,
        b"N" + b"q\x00h\x00\x86" * 300,
        b"]" + b"q\x00h\x00h\x00\x86" * 300,
        b"N" + b"".join(b"r" + struct.pack("<I", n) for n in range(3_000_000)),
        b"X\xff\xff\xff\x7fabc",
        b"\x8a\xff",
        b"T\xff\xff\xff\xffabc",
        b"}" + b"2s" * 1000,
        b"]2a",
        b"]q\x00h\x00a",
        b"}q\x00K\x01h\x00s",
        b"N" + b"2" * 30_000_000,
    ],
    ids=lambda data: f"{data[:8]!r} of {len(data)}",
)
def test_pickles_that_grow_or_nest_without_measure(data):
    file = zipped([("m/data.pkl", b"\x80\x02" + data + b"."), ("m/version", b"3\n")], zipfile.ZIP_DEFLATED)
    refused(file)


def test_a_tuple_that_holds_itself_twice_over_and_over_is_refused_by_its_slot_or_walked_once():
    code = CLASS + b"  x : Any\n"
    data = MODULE[:-3] + text(b"x") + b")" + b"q\x01h\x01\x86" * 100 + b"ub."
    with within(SOON):
        refused(archive(**{"code/__torch__.py": code.replace(b"Any", b"Tuple[int, int]"), "data.pkl": data}))


# -- tensors


def holding(data, **records):
    return archive(**{"data.pkl": b"\x80\x02" + data + b".", "data/0": bytes(16), **records})


def test_the_tensor_that_these_are_made_from_is_a_good_one():
    assert load(holding(MODULE[2:-1] + b"0" + MODULE[2:-1])).get("training") is True
    error = refused(holding(tensor()))
    assert "holds data and no module" in error.message


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"count": 5}, "said to hold 5"),
        ({"count": 3}, "said to hold 3"),
        ({"count": -1}, "said to hold -1"),
        ({"count": 1 << 60}, "said to hold"),
        ({"kind": b"DoubleStorage"}, "said to hold"),
        ({"key": b"1"}, "no record"),
        ({"key": b"../data.pkl"}, "has the key"),
        ({"key": b"0/../0"}, "has the key"),
        ({"key": b"/etc/passwd"}, "has the key"),
        ({"key": b""}, "has the key"),
        ({"key": b"a" * 1000}, "has the key"),
        ({"kind": b"Float"}, "not allowed"),
        ({"where": b"cuda:0"}, "no such device"),
        ({"offset": 1}, "reaches element"),
        ({"offset": -1}, "has sizes"),
        ({"offset": 1 << 62}, "reaches element"),
        ({"size": b"K\x05\x85"}, "reaches element"),
        ({"stride": b"K\x02\x85"}, "reaches element"),
        ({"stride": _int(-1) + b"\x85"}, "has sizes"),
        ({"size": _int(-4) + b"\x85"}, "has sizes"),
        ({"size": _int(1 << 62) + b"\x85"}, "larger than any memory"),
        ({"size": _int(1 << 32) + b"2\x86", "stride": b"K\x00K\x00\x86"}, "larger than any memory"),
        ({"stride": _int((1 << 62) + 1) + b"\x85"}, "larger than any memory"),
        ({"size": b"(" + b"K\x01" * 40 + b"t", "stride": b"(" + b"K\x01" * 40 + b"t"}, "has sizes"),
        ({"size": b"K\x02K\x02\x86"}, "has sizes"),
        ({"size": b"]"}, "no tuple but a list"),
        ({"size": b"\x88\x85"}, "has sizes"),
        ({"size": b"G" + struct.pack(">d", 4.0) + b"\x85"}, "has sizes"),
    ],
)
def test_a_tensor_that_leaves_its_storage_is_refused(changes, reason):
    error = refused(holding(tensor(**changes)))
    assert reason in error.message
    assert error.record == "data.pkl"


def test_a_storage_described_in_two_ways_is_refused():
    assert "two ways" in refused(holding(tensor() + b"0" + tensor(kind=b"IntStorage"))).message


# -- the zip file


def test_a_bomb_is_refused_before_it_grows():
    bomb = zipped([("m/version", b"3\n"), ("m/data.pkl", bytes(300 << 20))], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 400_000
    assert "inflate" in refused(bomb).message


def test_many_small_bombs_are_counted_together():
    entries = [(f"m/data/{n}", bytes(30 << 20)) for n in range(10)]
    assert "inflate" in refused(zipped([("m/version", b"3\n"), *entries], zipfile.ZIP_DEFLATED)).message


def test_a_record_that_inflates_to_more_or_less_than_it_says_is_refused():
    good = zipped([("m/version", b"3\n" + bytes(1000))], zipfile.ZIP_DEFLATED)
    at = good.index(b"PK\x01\x02")
    for size in (0, 1, 1001, 1003, 100_000, 200 << 20):
        data = good[:22] + struct.pack("<L", size) + good[26 : at + 24] + struct.pack("<L", size) + good[at + 28 :]
        refused(data)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "m/../../x",
        "/etc/passwd",
        "m/..",
        "m//x",
        "m/./x",
        "m\\x",
        "c:/x",
        "other/x",
        "x",
        "m/a\nb",
        "m/\x1b[2Jx",
        "m/\x7f",
    ],
)
def test_names_that_lead_elsewhere(name):
    refused(zipped([("m/version", b"3\n"), (name, b"x")]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_twins():
    refused(zipped([("m/version", b"3\n"), ("m/data.pkl", b"1"), ("m/data.pkl", b"2")]))
    assert "a record and a folder" in refused(zipped([("m/data", b"1"), ("m/data/0", b"2")])).message


def patched(data, at, form, value):
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


@pytest.mark.parametrize("field", [(8, "<H"), (10, "<H"), (16, "<L"), (20, "<L"), (24, "<L"), (42, "<L")])
@pytest.mark.parametrize("value", [0, 1, 7, 9, 0xFFFF])
def test_a_directory_that_says_something_else_than_the_header(field, value):
    good = zipped([("m/version", b"3\n"), ("m/b", b"abcd")])
    at, (offset, form) = good.rindex(b"PK\x01\x02"), field
    data = patched(good, at + offset, form, value)
    harmless = offset == 8 and not value & 1  # flags that say nothing of the contents
    if data != good and not harmless:
        with pytest.raises(ArchiveError):
            open_container(io.BytesIO(data)).read("b")


def test_overlapping_records():
    """Two entries of the directory for the same bytes: the second is named otherwise, or lies inside the first."""
    inner = zipped([("m/inner", b"x" * 10)])
    outer = zipped([("m/version", b"3\n"), ("m/outer", inner), ("m/inner", b"x" * 10)])
    directory = outer.index(b"PK\x01\x02")
    entry = outer.index(b"m/inner", outer.index(b"m/outer", directory) + 7) - 46
    refused(patched(outer, entry + 42, "<L", outer.index(inner)))


@pytest.mark.parametrize("offset", [4, 6, 8, 10, 12, 16])
def test_an_end_record_that_does_not_agree(offset):
    good = zipped([("m/version", b"3\n")])
    end = good.rindex(b"PK\x05\x06")
    form = "<L" if offset >= 12 else "<H"
    for value in (0, 2, 100, 0xFFFF):
        data = patched(good, end + offset, form, value)
        if data != good:
            with pytest.raises(ArchiveError):
                open_container(io.BytesIO(data))


def test_only_the_last_end_record_counts():
    good, bad = archive(), zipped([("m/version", b"9\n")])
    comment = len(bad).to_bytes(2, "little")
    refused(good[:-2] + comment + bad)
    refused(good + b"trailing")


def test_a_descriptor_that_says_something_else():
    data = archive()
    at = data.index(b"PK\x07\x08")
    refused(patched(data, at + 4, "<L", 1))
    refused(patched(data, at + 8, "<L", 1))


def test_a_wrong_checksum():
    data = archive()
    at = data.index(CLASS)
    assert "checksum" in refused(data[:at] + b"K" + data[at + 1 :]).message


def test_what_is_no_file_is_not_waited_for(tmp_path):
    for path in ("/dev/zero", "/dev/null", tmp_path, tmp_path / "pipe"):
        if path == tmp_path / "pipe":
            os.mkfifo(path)
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
            continue  # a pipe that nobody writes to would be waited for by open itself
        with pytest.raises(ArchiveError):
            load_archive(path)


# -- code


def method(body, state="int", arguments="n : int"):
    code = f"  def __getstate__(self : __torch__.M) -> {state}:\n    return 1\n"
    code += f"  def __setstate__(self : __torch__.M, {arguments}) -> NoneType:\n    self.training = True\n"
    code += "".join(f"    {line}\n" for line in body.split("\n"))
    return CLASS + code.encode() + b"    return None\n"


def stateful(body):
    return archive(**{"code/__torch__.py": method(body), "data.pkl": b"\x80\x02c__torch__\nM\n)\x81K\x01b."})


def run(module):
    """A method of what `stateful` made."""
    return run_function(module.type.methods["__getstate__"], [module])


def test_code_that_fills_an_instance_runs():
    assert load(stateful("self.training = n == 1")).get("training") is True


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("while True:\n  print(n)", "steps"),
        ("for i in range(9223372036854775807):\n  n = n + i", "steps"),
        ("while n > 0:\n  n = n + 1", "steps"),
        ("x = torch.ones([4000, 4000])\nwhile True:\n  x = torch.mul(x, 2)", "seconds"),
        ("print(torch.ones([1 << 34]))", "memory"),
        ("print(torch.zeros([1 << 20, 1 << 20]))", "memory"),
        (
            "xs = annotate(List[Tensor], [])\nfor i in range(9999):\n  xs.append(torch.ones([1 << 24]))\nprint(xs)",
            "memory",
        ),
        ('s = "a"\nwhile n > 0:\n  s = torch.add(s, s)\nprint(s)', "memory"),
        ("print(torch.mul([0], 1 << 40))", "memory"),
        ("print(torch.sum(torch.expand(torch.ones([1]), [1 << 20, 1 << 20])))", "memory"),
        ("x = torch.ones([4000, 4000])\nprint(torch.mm(x, x))", "seconds"),
        ("print(torch.arange(1 << 40))", "memory"),
    ],
)
def test_code_that_runs_while_loading_has_a_budget(body, what):
    seconds = 2.0 if what == "seconds" else 60.0  # a busy machine comes to its end before it comes to the others
    with pytest.raises(BudgetExceeded) as caught:
        load(stateful(body), steps=20_000, seconds=seconds, nbytes=256 << 20)
    assert what in caught.value.message
    assert (caught.value.record, caught.value.offset) == ("data.pkl", 19)


def test_the_budget_can_be_given(tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(stateful("for i in range(1000):\n  n = n + i"))
    assert engine.jit.load(path).training is True
    with pytest.raises(BudgetExceeded, match="more than 100 steps"):
        engine.load(path, budget=engine.Budget(steps=100))


def test_all_instances_of_a_load_share_one_budget():
    many = b"\x80\x02(" + b"c__torch__\nM\n)\x81K\x01b" * 20 + b"t."
    body = method("for i in range(100):\n  n = n + i")
    with pytest.raises(BudgetExceeded):
        load(archive(**{"code/__torch__.py": body, "data.pkl": many}), steps=2000)


def test_what_code_raises_while_loading_is_an_archive_error():
    refused(stateful('raise ValueError("no")'))
    assert refused(stateful("print(torch.ones([2])[5])")).record == "data.pkl"
    refused(stateful("print(n // 0)"))


@pytest.mark.parametrize(
    "line",
    [
        'x = open("/etc/passwd")',
        'x = eval("1")',
        'exec("1")',
        'x = __import__("os")',
        "import os",
        'x = torch.load("x")',
        'torch.save(n, "x")',
        'x = torch.from_file("/etc/passwd")',
        'x = os.system("true")',
        'x = ops.aten.from_file("/etc/passwd", None, 1)',
        "x = ops.prim.PythonOp(n)",
        "x = self.__class__",
        "x = n.__class__",
        "x = torch.__builtins__",
        "x = torch.os",
        'x = torch.jit.load("x")',
        'x = ops.aten.save(n, "x")',
        'x = torch.hub.load("x", "y")',
        'x = torch.ops.load_library("x.so")',
        "x = input()",
        'x = getattr(torch, "os")',
        "x = globals()",
        "x = CONSTANTS.__class__",
        "x = annotate.__globals__",
        "x = __torch__.__class__",
    ],
)
def test_code_reaches_nothing_outside(line, monkeypatch):
    """What is no operator is refused when the archive is loaded, or is taken for an operator that nobody here knows."""
    library.names()  # reads its own texts once
    monkeypatch.setattr(builtins, "open", None)
    with contextlib.suppress(EngineError):
        load(stateful(line))
    with pytest.raises(EngineError):
        run(load(stateful(f"{line}\nprint(x)")))


@pytest.mark.parametrize("name", "load system exec open read_file write_file _load_for_mobile".split())
def test_operators_that_touch_files_or_processes_do_not_exist(name):
    assert not table.overloads(f"aten::{name}")
    assert not table.overloads(f"prim::{name}")


@pytest.mark.parametrize("line", ['x = torch.save(n, "there")', 'x = torch.from_file("there")'])
def test_operators_on_files_are_refused_before_they_touch_any(line, monkeypatch):
    library.names()  # reads its own texts once
    monkeypatch.setattr(builtins, "open", None)
    with pytest.raises(EngineError, match="do not read or write files, such as 'there'"):
        run(load(stateful(f"{line}\nprint(x)")))


FORWARD = "  def forward(self : __torch__.M, x : Tensor) -> {}:\n{}    return {}\n"


def lines(form, count):
    return "".join("    " + form.format(n, n + 1) + "\n" for n in range(count))


@pytest.mark.parametrize(
    "forward",
    [
        FORWARD.format("Tensor", "", "(" * 5000 + "x" + ")" * 5000),
        FORWARD.format("int", "", "-" * 20_000 + "1"),
        FORWARD.format("Tensor", "", "x" + "[0]" * 5000),
        FORWARD.format("List[" * 3000 + "int" + "]" * 3000, "", "[]"),
        FORWARD.format("int", lines("a{1} = (a{0}, a{0})", 60).replace("a0", "x"), "1"),
        FORWARD.format("int", "", "9" * 100_000),
        FORWARD.format("int", "    a = (" + ", ".join(["1"] * 100_000) + ")\n", "1"),
    ],
    ids=["parentheses", "minus", "subscripts", "types", "doubled tuples", "digits", "long tuple"],
)
def test_code_that_cannot_be_compiled_in_measure_is_refused(forward):
    refused(archive(**{"code/__torch__.py": CLASS + forward.encode()}))


@pytest.mark.parametrize(
    "forward",
    [
        FORWARD.format("str", '    a0 = "a"\n' + lines("a{1} = torch.add(a{0}, a{0})", 60), "a60"),
        FORWARD.format("str", "", 'torch.ljust("a", 1000000000, " ")'),
        FORWARD.format("str", "", 'torch.expandtabs("\\t", 1000000000)'),
        FORWARD.format("List[int]", "", "torch.mul([0], 1000000000)"),
        FORWARD.format("Tensor", "", "torch.zeros([1000000, 1000000])"),
    ],
    ids=["doubled text", "padded text", "tabs", "repeated list", "zeros"],
)
def test_what_would_grow_is_not_computed_while_compiling(forward):
    with within(SOON):
        load(archive(**{"code/__torch__.py": CLASS + forward.encode()}))


def test_any_record_may_be_another():
    """Every record of an archive that PyTorch wrote, replaced by nothing, by noise, and by another one."""
    with zipfile.ZipFile(FUNCTION) as source:
        contents = {name.partition("/")[2]: source.read(name) for name in source.namelist()}
    for victim in contents:
        for data in (b"", bytes(100), zlib.compress(b"x" * 1000), contents["data.pkl"], contents["constants.pkl"]):
            writer = ContainerWriter("m")
            for name, content in contents.items():
                writer.add(name, data if name == victim else content)
            with contextlib.suppress(ArchiveError):
                load(b"".join(writer.pieces()))
