"""Operators that nobody knows: the archive loads, is saved again as it was, and a call names what is missing."""

import pytest

import engine
from engine.fuser.backend import tiering
from engine.lang.errors import ArchiveError, CompileError, ExecutionError
from engine.serialize.code.opaque import is_opaque
from tests.unit.serialize.model_files import HEAD, archive, method


def load(tmp_path, *lines, **options):
    return engine.jit.load(archive(tmp_path / "m.pt", method(*lines, **options)))


def test_the_call_stays_in_the_graph(tmp_path):
    module = load(tmp_path, "y = ops.mylib.fancy(x, [1, 2])", "return torch.relu(y)")
    nodes = [node for node in module.forward._function.graph.all_nodes() if is_opaque(node)]
    assert [node.kind for node in nodes] == ["mylib::fancy"]


def test_calling_it_names_it(tmp_path):
    module = load(tmp_path, "return ops.mylib.fancy(x)")
    with pytest.raises(ExecutionError, match=r"there is no operator mylib::fancy") as caught:
        module(engine.ones(2))
    assert "extension" in caught.value.hints[0]


@pytest.mark.parametrize("gradients", [True, False])
def test_a_branch_that_is_not_taken_may_call_it(gradients, tmp_path):
    lines = (
        "if torch.eq(torch.dim(x), 1):", "  y = torch.mul(torch.relu(x), 2)",
        "else:", "  if torch.gt(torch.dim(x), 2):", "    y = torch.sin(ops.mylib.fancy(x))",
        "  else:", "    y = torch._from_tomorrow(torch.relu(x), 2)", "return torch.neg(y)",
    )  # fmt: skip
    module = load(tmp_path, *lines)
    for _ in range(3):
        assert module(engine.tensor([-1.0, 2.0], requires_grad=gradients)).tolist() == [0.0, -4.0]
    with pytest.raises(ExecutionError, match=r"there is no operator aten::_from_tomorrow") as caught:
        module(engine.ones(2, 2))
    assert caught.value.hints[0].startswith("another version of PyTorch has it")


def test_other_methods_still_run(tmp_path):
    code = (
        method("return ops.mylib.fancy(x)", name="other")
        + method("return torch.relu(x)").partition("training : bool\n")[2]
    )
    module = engine.jit.load(archive(tmp_path / "m.pt", code))
    assert module(engine.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    "lines",
    [
        ("return ops.mylib.fancy(x)",),
        ("a, b = ops.mylib.split(x, 2)", "return torch.add(a, b)"),
        ('return ops.mylib.fancy(x, 2, mode="fast")',),
        ('a, b = ops.mylib.split(n=2, mode="fast")', "return torch.add(a, b)"),
        ("return torch._from_tomorrow(x)",),
    ],
)  # fmt: skip
def test_it_is_saved_as_it_was(lines, tmp_path):
    module = load(tmp_path, *lines)
    module.save(str(tmp_path / "again.pt"))
    again = engine.jit.load(tmp_path / "again.pt")
    assert again.code == module.code
    for line in lines:
        assert line in module.code or line.replace("return ", "") in module.code


def test_what_does_not_compile_for_want_of_it_says_so_when_called(tmp_path):
    module = load(tmp_path, "y = ops.mylib.pair(x)", "a, b = y", "return torch.add(a, b)")
    with pytest.raises(CompileError, match="cannot run: it calls 'mylib::pair', which is not known here"):
        module(engine.ones(2))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("mode", ["background", "eager", "off"])
def test_what_calls_it_runs_to_the_call(mode, first, tmp_path, monkeypatch):
    monkeypatch.setattr(tiering, "mode", lambda: mode)
    inner = method("y = ops.mylib.pair(x)", "a, b = y", "return torch.add(a, b)", name="inner")
    outer = method(
        "if torch.eq(torch.dim(x), 1):", "  y = self.inner(x)", "else:", "  y = torch.relu(x)", "return y"
    ).partition("training : bool\n")[2]  # fmt: skip
    module = engine.jit.load(archive(tmp_path / "m.pt", inner + outer))
    for name in ("inner", "forward") if first else ("forward", "inner"):
        error = CompileError if name == "inner" else ExecutionError
        with pytest.raises(error, match="'inner' cannot run: it calls 'mylib::pair'"):
            getattr(module, name)(engine.ones(2))
    assert module(engine.ones(1, 1)).tolist() == [[1.0]]
    assert "inner" in repr(module.inner)
    assert engine.jit.load(tmp_path / "m.pt", lazy=False) is not None


def test_an_error_names_the_record_where_there_are_no_debug_records(tmp_path):
    code = method("return nope")
    with pytest.raises(ArchiveError, match="undefined value nope") as caught:
        engine.jit.load(archive(tmp_path / "m.pt", code)).forward(engine.ones(2))
    assert (caught.value.record, caught.value.offset) == ("code/__torch__.py", code.index("nope"))
    with pytest.raises(ArchiveError, match="undefined value nope"):
        engine.load(tmp_path / "m.pt", lazy=False)


def test_known_operators_are_never_opaque(tmp_path):
    module = load(tmp_path, "return torch.clip(torch.multiply(x, 2), 0, 1)")
    assert module(engine.tensor([2.0])).tolist() == [1.0]


def test_an_interface_is_told_by_signatures(tmp_path):
    """Whether a module has an interface is asked while loading, when nothing is compiled."""
    inner = HEAD.replace("M(", "Inner(") + method("y = ops.mylib.pair(x)", "a, b = y", "return torch.add(a, b)")[
        len(HEAD) :
    ].replace("__torch__.M", "__torch__.Inner")
    asked = "class Shape(ModuleInterface):\n  def forward(self, x: Tensor) -> Tensor:\n    pass\n"
    outer = HEAD + "  shape : __torch__.Shape\n" + method("return (self.shape).forward(x, )")[len(HEAD) :]
    data = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\0\0\0training\x89X\x05\0\0\0shape"
    data += b"c__torch__\nInner\n)\x81}X\x08\0\0\0training\x89sbub."
    module = engine.jit.load(archive(tmp_path / "m.pt", asked + inner + outer, data=data))
    with pytest.raises(ExecutionError, match="cannot run: it calls 'mylib::pair'"):
        module(engine.ones(2))
    wrong = inner.replace("-> Tensor:", "-> int:")
    with pytest.raises(ArchiveError, match=r"a value of type '__torch__.Shape' is wanted"):
        engine.jit.load(archive(tmp_path / "m.pt", asked + wrong + outer, data=data))


@pytest.mark.parametrize("body", ["ops.mylib.unpack(s)", "self.other(s)"])
def test_a_state_that_needs_it_stays_empty(body, tmp_path):
    code = HEAD + "  w : Tensor\n" + method("return torch.add(x, self.w)")[len(HEAD) :]
    code += "  def other(self: __torch__.M, s: int) -> Tensor:\n    return ops.mylib.unpack(s)\n"
    code += "  def __getstate__(self: __torch__.M) -> int:\n    return 1\n"
    code += f"  def __setstate__(self: __torch__.M, s: int) -> NoneType:\n    self.w = {body}\n    return None\n"
    module = engine.jit.load(archive(tmp_path / "m.pt", code, data=b"\x80\x02c__torch__\nM\n)\x81K\x03b."))
    assert (list(module.state_dict()), "mylib::unpack" in str(module.other.graph)) == ([], True)
    for _ in range(2):
        with pytest.raises(CompileError, match=r"'__torch__.M' is empty, since .* there is no operator mylib::unpack"):
            module(engine.ones(2))
    with pytest.raises(CompileError, match="is empty"):
        module.save(tmp_path / "again.pt")
