"""Archives whose parts share, hold and repeat each other so that walking them might never end: each is read or refused
soon, and so is what looks into it."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zipfile

import numpy as np
import pytest

import engine
from engine.lang.errors import ArchiveError, ArgumentError
from engine.serialize.archive import load_archive
from engine.serialize.container.read import open_container
from engine.serialize.inspect.check import check_archive
from engine.serialize.inspect.compare import compare
from engine.serialize.inspect.extract import extract_weights
from engine.serialize.inspect.survey import survey
from tests.timing import within
from tests.unit.serialize.hostile_archives import (
    CLASS,
    EMPTY,
    MODULE,
    SOON,
    archive,
    refused,
    tensor,
    text,
    zipped,
)
from tests.unit.serialize.model_files import compiled, entangled


@pytest.fixture(autouse=True)
def _soon():
    with within(SOON):
        yield


def holding(declaration, value, more=b"", **records):
    """An archive of a module with one attribute `x`; `more` is further code."""
    data = b"\x80\x02c__torch__\nM\n)\x81}(" + text(b"training") + b"\x88" + text(b"x") + value + b"ub."
    return archive(**{"code/__torch__.py": CLASS + b"  x : " + declaration + b"\n" + more, "data.pkl": data, **records})


def load(data):
    return compiled(load_archive(io.BytesIO(data)))


def in_file(tmp_path, data):
    path = tmp_path / "m.pt"
    path.write_bytes(data)
    return path


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


# -- what is shared


SHARED = b")" + b"q\x01h\x01\x86" * 100
"""A tuple that holds another twice, which holds another twice, and so on."""


def test_constants_that_share_their_parts():
    assert load(archive(**{"constants.pkl": b"\x80\x02" + SHARED + b"."})).get("training") is True
    refused(archive(**{"constants.pkl": b"\x80\x02c__torch__\nM\n" + b"q\x01h\x01\x86" * 100 + b"."}))


@pytest.mark.parametrize(("declaration", "value"), [
    (b"Any", SHARED), (b"List[" * 60 + b"int" + b"]" * 60, b"]" + b"q\x010](h\x01h\x01e" * 59),
])  # fmt: skip
def test_values_that_share_their_parts(declaration, value, tmp_path):
    path = in_file(tmp_path, holding(declaration, value))
    assert compare(path, path).is_same
    assert not check_archive(path).is_suspicious
    if declaration != b"Any":  # which archives can hold, and nobody can write
        engine.jit.load(path).save(tmp_path / "again.pt")
        assert compare(path, tmp_path / "again.pt").is_same


def test_named_tuples_that_are_made_of_each_other_twice_over():
    code = b"class T0(NamedTuple):\n  a : int\n"
    for level in range(1, 61):
        code += b"class T%d(NamedTuple):\n  a : Tuple[__torch__.T%d, __torch__.T%d]\n" % (level, level - 1, level - 1)
    value = b"K\x01\x85" + b"q\x01h\x01\x86\x85" * 60
    assert "parts" in refused(holding(b"__torch__.T60", value, code)).message
    load(holding(b"__torch__.T5", b"K\x01\x85" + b"q\x01h\x01\x86\x85" * 5, code))


def test_interfaces_that_name_each_other_twice_over():
    code = b"class S0(Interface):\n  def f(self) -> int:\n    pass\n"
    code += b"class C0:\n  def f(self: __torch__.C0) -> int:\n    return 1\n"
    for n in range(1, 41):
        code += b"class S%d(Interface):\n  def f(self, a: __torch__.S%d) -> __torch__.S%d:\n    pass\n" % (
            n,
            n - 1,
            n - 1,
        )
        code += b"class C%d:\n  def f(self: __torch__.C%d, a: __torch__.S%d) -> __torch__.C%d:\n" % (n, n, n - 1, n - 1)
        code += b"    return __torch__.C%d.__new__(__torch__.C%d)\n" % (n - 1, n - 1)
    load(holding(b"__torch__.S40", b"c__torch__\nC40\n)\x81}b", code))


def test_modules_that_share_each_other(tmp_path):
    path = entangled(tmp_path / "m.pt", 60)
    module = engine.jit.load(path)
    assert len(list(module.named_modules())) == len(list(module.eval().modules())) == 61
    assert (list(module.named_parameters()), repr(module)) == (
        [], "RecursiveScriptModule(original_name=L60, ...)",
    )  # fmt: skip
    for call in (module.state_dict, lambda: module.apply(print)):
        with pytest.raises(ArgumentError, match="more than 100,000 places"):
            call()
    module.save(tmp_path / "again.pt")
    assert compare(path, tmp_path / "again.pt").is_same
    assert len(list(survey(tmp_path / "again.pt").modules())) == 61
    assert "prim::CallMethod" in str(module.inlined_graph)


def test_classes_that_hold_themselves(tmp_path):
    code = b"  def __getstate__(self: __torch__.M) -> int:\n    return 1\n"
    code += b"  def __setstate__(self: __torch__.M, s: int) -> NoneType:\n    self.x = self\n    self.training = True\n"
    data = archive(**{
        "code/__torch__.py": CLASS + b"  x : __torch__.M\n" + code + b"    return None\n",
        "data.pkl": b"\x80\x02c__torch__\nM\n)\x81K\x01b.",
    })  # fmt: skip
    module = engine.jit.load(in_file(tmp_path, data))
    assert len(list(module.modules())) == 1 and "..." in repr(module)
    module.save(tmp_path / "again.pt")
    assert compare(tmp_path / "m.pt", tmp_path / "again.pt").is_same
    refused(archive(**{
        "code/__torch__.py": CLASS + b"  x : __torch__.M\n",
        "data.pkl": b"\x80\x02c__torch__\nM\n)\x81q\0}(" + text(b"training") + b"\x88" + text(b"x") + b"h\0ub.",
    }))  # fmt: skip


@pytest.mark.parametrize("code", [
    CLASS.replace(b"(Module)", b"(__torch__.M)"), b"class M(N):\n  training : bool\nclass N(M):\n  training : bool\n",
    CLASS + b"  t : __torch__.T\nclass T(NamedTuple):\n  a : __torch__.T\n",
    CLASS + b"  t : __torch__.T\nclass T(NamedTuple):\n  a : __torch__.U\nclass U(NamedTuple):\n  a : __torch__.T\n",
    CLASS + b"  e : __torch__.E\nclass E(Enum):\n  A = __torch__.E.A\n",
    CLASS + b"  c : Final[int] = CONSTANTS.c0\n",
    CLASS + b"  def forward(self: __torch__.M) -> int:\n    return (self).forward()\n",
])  # fmt: skip
def test_definitions_that_need_themselves(code):
    constants = b"\x80\x02c__torch__\nM\n)\x81}(" + text(b"training") + b"\x88ub\x85."
    refused(archive(**{"code/__torch__.py": code, "constants.pkl": constants}))


# -- what is many


def test_thousands_of_attributes_cost_what_thousands_cost():
    count = 10_000
    code = CLASS + b"".join(b"  a%d : int\n" % n for n in range(count))
    state = b"".join(text(b"a%d" % n) + b"K\x01" for n in range(count))
    data = b"\x80\x02c__torch__\nM\n)\x81}(" + text(b"training") + b"\x88" + state + b"ub."
    assert load(archive(**{"code/__torch__.py": code, "data.pkl": data})).get("a9999") == 1
    model = {"protoVersion": "5", "mainModule": {"name": "a", "submodules": [{"name": f"b{n}"} for n in range(count)]}}
    loaded = load(zipped([("m/version", b"1\n"), ("m/model.json", json.dumps({**model, "tensors": []}).encode())]))
    assert len(loaded.slots) == count


def body(line, returned="Tensor"):
    head = f"  def forward(self: __torch__.M, x: Tensor) -> {returned}:\n    return "
    return archive(**{"code/__torch__.py": CLASS + head.encode() + line.encode() + b"\n"})


@pytest.mark.parametrize("line", [
    "(" * 100_000 + "x" + ")" * 100_000, "(" * 100_000, "(" * 50_000 + "x," + ")," * 50_000, "-" * 50_000 + "1",
    "not " * 50_000 + "True", "+".join(["1"] * 50_000), "**".join(["2"] * 10_000), "x" + ".T" * 50_000,
    "x" + "[0]" * 30_000, "torch.relu(" * 2000 + "x" + ")" * 2000, "1 if True else " * 20_000 + "2",
    "__torch__" + ".a" * 20_000 + "(x)", "fork(" * 500 + "x" + ")" * 500, "9" * 100_000, "0x" + "f" * 100_000,
], ids=lambda line: f"{line[:8]} of {len(line)}")  # fmt: skip
def test_code_that_nests_without_measure(line):
    refused(body(line))


@pytest.mark.parametrize("line", [
    'torch.mul("a", 9223372036854775807)', 'torch.format("{:999999999}", 1)', 'torch.ljust("a", 999999999999)',
    'torch.expandtabs("\\t", 999999999999)', "str(torch.pow(9223372036854775807, 9223372036854775807))",
])  # fmt: skip
def test_texts_that_folding_would_make_huge(line):
    with contextlib.suppress(ArchiveError):
        load(body(line, "str"))


# -- tensors that repeat their numbers


@pytest.mark.parametrize(("size", "stride"), [
    (number(1 << 40) + b"\x85", b"K\0\x85"), (number(1 << 20) * 2 + b"\x86", b"K\0K\0\x86"),
])  # fmt: skip
def test_a_view_that_repeats_a_number_without_end_is_looked_at_and_not_written_out(size, stride, tmp_path):
    file = holding(b"Tensor", tensor(size=size, stride=stride), **{"data/0": bytes(16)})
    path = in_file(tmp_path, file)
    assert not check_archive(path).is_suspicious
    for action in (lambda: extract_weights(path, str(tmp_path / "w.npz")), lambda: compare(path, path)):
        with pytest.raises(ArchiveError, match="more than the file holds"):
            action()
    engine.jit.load(path).save(tmp_path / "again.pt")
    assert (tmp_path / "again.pt").stat().st_size < 10_000
    several = in_file(tmp_path, holding(b"List[Tensor]", b"](" + tensor(size=size, stride=stride) * 50 + b"e", **{
        "data/0": bytes(16)}))  # fmt: skip
    assert compare(several, several).is_same


def test_a_view_that_repeats_a_few_numbers_is_extracted(tmp_path):
    file = holding(b"Tensor", tensor(size=b"K\x03K\x04\x86", stride=b"K\0K\x01\x86"), **{"data/0": bytes(16)})
    extract_weights(in_file(tmp_path, file), str(tmp_path / "w.npz"))
    assert np.load(tmp_path / "w.npz")["x"].shape == (3, 4)


@pytest.mark.parametrize("changes", [
    {"offset": (1 << 63) - 1}, {"size": number((1 << 63) - 1) + b"\x85", "stride": b"K\0\x85"},
    {"size": b"K\0" + number((1 << 63) - 1) + b"\x86", "stride": b"K\x01K\x01\x86"},
    {"size": number(1 << 61) + b"\x85", "stride": b"K\0\x85"},
    {"size": b"K\x01\x85", "stride": number((1 << 63) - 1) + b"\x85"},
    {"size": number(1 << 32) + number(1 << 32) + b"\x86", "stride": b"K\0K\0\x86"},
])  # fmt: skip
def test_sizes_at_the_end_of_64_bits(changes):
    refused(holding(b"Tensor", tensor(**changes), **{"data/0": bytes(16)}))


PID = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n"


@pytest.mark.parametrize("pid", [
    b"N", b"K\x01", text(b"storage"), b"}", b"]", b")", b"\x88", PID + text(b"0") + text(b"cpu") + b"\x88t",
    PID + b"K\0" + text(b"cpu") + b"K\x04t", b"(" + text(b"storage") + b"K\x01" + text(b"0") + text(b"cpu") + b"K\x04t",
    PID + text(b"0") + text(b"cpu") + b"G" + struct.pack(">d", 4.0) + b"t",
    PID + text(b"0") + text(b"cpu") + b"K\x04tQ",
])  # fmt: skip
def test_persistent_ids_of_odd_kinds(pid):
    data = b"\x80\x02" + pid + b"Q0" + MODULE[2:]
    refused(archive(**{"data.pkl": data, "data/0": bytes(16)}))


# -- pickles that lie about themselves


@pytest.mark.parametrize("data", [
    b"\x95" + b"\xff" * 8 + MODULE[2:], MODULE[2:-1] + b"\x80\x040" + MODULE[2:],
    b"\x95" + bytes(8) + MODULE[2:],
])  # fmt: skip
def test_numbers_that_nothing_depends_on(data):
    """The length of a frame, a second word on the protocol."""
    assert load(archive(**{"data.pkl": b"\x80\x04" + data})).get("training") is True


@pytest.mark.parametrize(
    "data",
    [
        b"Nr\xff\xff\xff\xff0" + MODULE[2:],
        b"\x80\xff" + MODULE[2:],
        b"\x80",
        b"\x95",
        MODULE[:-1] + b"\x80\x01.",
        b"\x94.",
    ],
)
def test_what_something_depends_on(data):
    refused(archive(**{"data.pkl": data}))


@pytest.mark.parametrize("record", [
    b"\x80\x02]q\0h\0a.", b"\x80\x02(K\0K\0(tt.", b"\x80\x02" + SHARED + b".", b"\x80\x02(" + text(
        b"FORMAT_WITH_STRING_TABLE") + SHARED + SHARED + b"t.", b"\x80\x02((J\xff\xff\xff\xffK\0K\0tt.",
])  # fmt: skip
def test_debug_records_that_make_no_sense(record):
    code = CLASS + b"  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return torch.relu(x)\n"
    module = load(archive(**{"code/__torch__.py": code, "code/__torch__.py.debug_pkl": record}))
    for node in module.type.methods["forward"].graph.nodes():
        assert node.range is None or node.range.original() is not None


# -- the zip file

ENTRIES = [("m/version", b"3\n"), ("m/data.pkl", MODULE), ("m/code/__torch__.py", CLASS), ("m/constants.pkl", EMPTY)]


def zip_of(change, entries=ENTRIES):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            change(info)
            z.writestr(info, data)
    return file.getvalue()


@pytest.mark.parametrize("flag", [0x1, 0x40, 0x2000])
def test_encrypted_in_any_way(flag):
    data = bytearray(zip_of(lambda info: None))
    at = data.index(b"PK\x01\x02")
    for place in (6, at + 8):
        data[place : place + 2] = (int.from_bytes(data[place : place + 2], "little") | flag).to_bytes(2, "little")
    assert "encrypted" in refused(bytes(data)).message


def test_what_else_a_header_says_means_nothing():
    """Links are records as others, other names are not used, fields that are cut off are not read."""
    link = lambda info: setattr(info, "external_attr", 0o120777 << 16)  # noqa: E731
    assert load(zip_of(link)).get("training") is True
    path = b"m/../evil"
    for extra in (
        struct.pack("<HHBL", 0x7075, 5 + len(path), 1, 0) + path, struct.pack("<HHQQ", 1, 16, 1 << 62, 1 << 62),
        b"\1\0\xff\xff", b"\x99\x99\0\0" * 16_000,
    ):  # fmt: skip
        data = zip_of(lambda info, extra=extra: setattr(info, "extra", extra))
        assert open_container(io.BytesIO(data)).names() == ["version", "data.pkl", "code/__torch__.py", "constants.pkl"]
        assert load(data).get("training") is True


def wide(change):
    """A zip file with 64-bit end records, their fields changed."""
    plain = zip_of(lambda info: None)
    end = plain.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<H2L", plain, end + 10)
    fields = {"length": 44, "count": count, "size": size, "start": start, "at": end, **change}
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", fields["length"], 45, 45, 0, 0, fields["count"], fields["count"],
                         fields["size"], fields["start"])  # fmt: skip
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, fields["at"], 1)
    full = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return plain[:end] + record + locator + full


def test_wide_end_records():
    assert load(wide({})).get("training") is True


@pytest.mark.parametrize("change", [
    {"count": 1 << 60}, {"start": (1 << 64) - 1}, {"size": (1 << 64) - 10}, {"size": 0}, {"at": 0}, {"at": 1 << 63},
    {"length": 1 << 63}, {"length": 0}, {"count": 0},
])  # fmt: skip
def test_wide_end_records_that_lie(change):
    refused(wide(change))


def test_names_of_many_parts():
    names = [("m/" + "a/" * 2000 + f"x{n}", b"") for n in range(100)] + [("m/" + "b/" * 30_000 + "x", b"")]
    assert load(zip_of(lambda info: None, [*ENTRIES, *names])).get("training") is True


@pytest.mark.parametrize(("one", "other"), [("a", "a/b"), ("a/b", "a/b/c/d"), ("a", "a/"), ("a!", "a!/x")])
def test_a_name_is_a_record_or_a_folder(one, other):
    entries = [*ENTRIES, (f"m/{one}", b"1"), ("m/a.b", b""), (f"m/{other}", b"")]
    assert "a record and a folder" in refused(zip_of(lambda info: None, entries)).message
    assert load(zip_of(lambda info: None, [*ENTRIES, ("m/d/", b""), ("m/d/e", b"1"), ("m/d.e", b"2")])) is not None
