"""One reply of each kind, for the tests that render them: `reply` runs a test for each, `name` tells which."""

import pytest

from tsrepl.session.plan_replies import (
    AutodiffReply,
    CapturedRow,
    DifferentiableRow,
    DifferentiatedPlan,
    ExplainReply,
    FailureRow,
    GuardedLine,
    GuardedPlan,
    GuardRow,
    GuardsReply,
    ProfiledLine,
    ProfiledValue,
    ProfileReply,
    ProfileRow,
    SplitRow,
    StoryPlan,
)
from tsrepl.session.replies import (
    Binding,
    CallPlace,
    CodeReply,
    DataReply,
    DebugReply,
    DefinitionReply,
    EditReply,
    ErrorReply,
    FileReply,
    GpuKernelRow,
    GpuKernelsReply,
    GraphReply,
    GroupRow,
    HelpReply,
    HelpTopic,
    InstructionRow,
    InstructionsReply,
    KernelRow,
    KernelsReply,
    Later,
    LaunchRow,
    ListingReply,
    ModuleNode,
    ModuleReply,
    PassesReply,
    PassReply,
    PlanRow,
    Reply,
    ReportReply,
    SchemaReply,
    Section,
    SlotRow,
    SourceRow,
    TapReply,
    TapRow,
    TextReply,
    TimeReply,
    TraceReply,
    TraceRow,
    TreeReply,
    ValueReply,
    WhoReply,
)

GRAPH = """\
graph(%x.1 : Tensor,
      %d.1 : Dict(str, int[])):
  %4 : int = prim::Constant[value=1]()
  %5 : Tensor = aten::add(%x.1, %x.1, %4)
  %6 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::mul(%5, %5)
  return (%6)
"""
SMALLER = GRAPH.replace("  %5 : Tensor = aten::add(%x.1, %x.1, %4)\n", "").replace("%5", "%x.1")
_LINEAR = ModuleNode(
    "fc", "Linear", (SlotRow("weight", "parameter", "Tensor", (2, 3), "float32", 24, 6),), ("forward",), (), 6, 24
)

REPLIES: dict[str, Reply] = {
    "number": ValueReply(3, "int", "3"),
    "nothing": ValueReply(None, "NoneType", "None"),
    "list": ValueReply([1, 2], "int[]", "[1, 2]"),
    "tensor": ValueReply(object(), "Tensor", "tensor([1., 2.])", "float32 (2,)"),
    "definition": DefinitionReply("f", "function", "f(Tensor x) -> Tensor"),
    "redefinition": DefinitionReply("f", "function", "f(int x) -> int", True, ("g", "h"), (("k", "no such argument"),)),
    "graph": GraphReply("f", GRAPH),
    "passes": PassesReply("f", 3, Later(lambda: GRAPH, 3)),
    "passes that change nothing": PassReply(
        ("dce", "cse"), False, 0.001, (), 0, Later(lambda: GRAPH), Later(lambda: GRAPH)
    ),
    "pass": PassReply(
        ("cse",), True, 0.00025, (("aten::add", -1),), 1, Later(lambda: GRAPH, 3), Later(lambda: SMALLER, 2)
    ),
    "edit": EditReply("def f(x):\n    return x"),
    "edit nothing": EditReply(""),
    "code": CodeReply("f", "def f(x: Tensor) -> Tensor:\n  return CONSTANTS.c0\n", (("c0", "float32 (2,)"),)),
    "tree": TreeReply("f", "(def (ident f)\n  (return (variable (ident x))))"),
    "instructions": InstructionsReply("f", "0 = Load\n1 = t move(0)\n = JumpZ move(1) -> @4\n@4:\n = Store 1"),
    "kernels": KernelsReply(
        "f",
        "python",
        (
            PlanRow(
                "f", "(x: Float(*))", "",
                (
                    GroupRow(
                        "f_1", (("model.py:3", "y = x * 2"),),
                        (KernelRow("k", ("x: contiguous f32[*]",), 0.1, 1e-6, 800, 100, "def k(n: i64):\n    pass\n"),),
                    ),
                    GroupRow("f_2", (("line 2", "x.exp()"),), ()),
                ),
                (("line 3", "aten::mm", "no kernel holds it"),),
            ),
            PlanRow("f(x) + 1", "(x: Long(*))", "gradients may be recorded", (), ()),
        ),
    ),
    "kernels on a GPU": GpuKernelsReply(
        "f(x)", "sm_90", "asm",
        (
            GpuKernelRow(
                "f_1", 8000,
                (LaunchRow("k_0", 12, 256, 1, 0, 31, 0, 1.0), LaunchRow("k_1", 8, 128, 128, 4112, None, None, None)),
                "", ".visible .entry k_0()\n{\n}\n",
            ),
            GpuKernelRow("f_2", None, (), "the device has a library for it", ""),
        ),
    ),
    "profile": ProfileReply(
        "f",
        (
            ProfileRow(
                "f", "(x: Float(*, *), y: undefined)", 2, 3, 1, "",
                (
                    ProfiledLine(
                        "line 2", "z = x * 2 if y is None else x + y",
                        (
                            ProfiledValue("x", "Float(s0, 4)", ("Float(2, 4)", "Float(3, 4)"), 2, 0, ("mul",)),
                            ProfiledValue("y", "nothing", (), 0, 2, ("add",)),
                            ProfiledValue("x + y", "nothing", (), 0, 0, ("add",)),
                        ),
                    ),
                    ProfiledLine(
                        "line 3", "return z.nonzero() * w",
                        (
                            ProfiledValue("z.nonzero()", "Long(*, 2)", ("Long(8, 2)", "Long(7, 2)"), 2, 0, ("mul",)),
                            ProfiledValue("w", "Tensor(4)", ("Float(4)", "Long(4)"), 2, 1, ("mul", "sum")),
                        ),
                    ),
                ),
                (("s0", (2, 3)),),
                (FailureRow("line 2", "x", "Float(2, 4)", "Float(3, 4)", 2, 0.0123),),
            ),
            ProfileRow("f", "()", 1, 1, 0, "", (), (), ()),
        ),
    ),
    "guards": GuardsReply(
        "f",
        (
            GuardedPlan(
                "f", "(x: Float(*, *))", "",
                (
                    GuardedLine(
                        "line 2", "z = x.nonzero() * 2",
                        (
                            GuardRow("x", "Float(2, 4)", "moved", "to the definition of the value", 1),
                            GuardRow("x.nonzero()", "Long(8, 2)", "eliminated", "it follows from what x takes", 0),
                        ),
                    ),
                ),
                (FailureRow("line 2", "x", "Float(2, 4)", "Float(3, 4)", 1, 0.0123),), 1,
            ),
            GuardedPlan("f", "(x: Long(*))", "no run was profiled", (), (), 0),
        ),
    ),
    "autodiff": AutodiffReply(
        "f",
        (
            DifferentiatedPlan(
                "f", "(x: Float(*, requires_grad))", "",
                (
                    DifferentiableRow(
                        "f_1", (("line 2", "y = torch.tanh(x * x)"),),
                        (
                            SplitRow(
                                ("x: Float(3)",), ("x",), GRAPH, (SMALLER,),
                                (CapturedRow("torch.tanh(x * x)", "Float(3)", 12, False),
                                 CapturedRow("x", "Float(3)", 12, True)),
                                "runs as 1 kernel, compiled in 3 ms", "has not run yet",
                            ),
                        ),
                    ),
                    DifferentiableRow("f_2", (("line 3", "return y + y"),), ()),
                ),
                (("line 4", "dropout", "it is random"),),
            ),
            DifferentiatedPlan("f", "(x: Float(*))", "nothing that it takes requires grad", (), ()),
        ),
    ),
    "explain": ExplainReply(
        "f", ("f: 3 calls looked for a plan, 1 plan was made",),
        (
            StoryPlan(
                "f", "(x: Float(*))",
                (("made", "in 3.4 ms, as code for Python"),
                 ("passes", "18 in 3 ms; 1 changed the graph:"), ("", "cse 1 ms"),
                 ("no kernel", "nonzero (line 2), add_ (line 3): no kernel holds it")),
            ),
        ),
    ),
    "trace": TraceReply(
        "f(x)",
        (
            TraceRow(0, "f", 1, "1 = t move(0)", (("0", "float32 (2, 3)"),), (("1", "float32 (3, 2)"),)),
            TraceRow(1, "g", 0, "2 = mm move(0), move(1)", (("0", "1"), ("1", "2")), (("2", "3"),)),
        ),
        "float32 (2, 2)",
        7,
        1,
        "variable x",
    ),
    "listing": ListingReply(
        "f",
        (
            InstructionRow(0, "0 = Load", "x"),
            InstructionRow(1, "1 = Constant 2", "", "line 2"),
            InstructionRow(2, "2 = mul 0, 1", "y", "line 2", True),
        ),
    ),
    "debug": DebugReply(
        "prog.py:2 in f of layers.0", "breakpoint 1: mul",
        (SourceRow(1, "def f(x):"), SourceRow(2, "    y = x * 2", True, True), SourceRow(3, "    return y")),
        "%y : Tensor = aten::mul(%x, %1)", "2: 2 = mul 0, 1", 12, 2,
        (Binding("x", "variable", "Tensor", "float32 (2,)  1, 2"),),
    ),
    "debugged": DebugReply("the call has returned", result="float32 (2,)  2, 4"),
    "taps": TapReply(
        "m(x)", (TapRow("layers.0", 2, "float32 (2,)  1, 2"), TapRow("", 1, "float32 (2,)  3, 4")), "float32 (2,)", "_"
    ),
    "taps once": TapReply("m(x)", (TapRow("layers.0:h", 1, "3"),), "4"),
    "no taps": TapReply("m(x)", (), "4", unreached=("a", "b")),
    "schema": SchemaReply("add", ("aten::add.int(int a, int b) -> int",), 3),
    "who": WhoReply((Binding("x", "variable", "Tensor", "float32 (2, 3)"), Binding("f", "function", "", "f() -> int"))),
    "empty who": WhoReply(()),
    "time": TimeReply("f(x)", 0.0105, 0.0000102, 0.0000123, 1000, 5, "calls"),
    "done": TextReply("saved f to f.pt", "done"),
    "warning": TextReply("y is not kept", "warning"),
    "compile error": ErrorReply(
        "Compile error", "undefined value y", "entry 3, line 2", "def f(x):\n    return y\n           ~ <--- HERE",
        hints=("did you mean 'x'?",),
    ),
    "runtime error": ErrorReply(
        "RuntimeError", "shapes do not fit", details="\n".join(f"reason {i}" for i in range(20)),
        places=(
            CallPlace("entry 4", "f(x)\n~~~~ <--- HERE"),
            CallPlace("entry 3, line 2, in f", "return x @ x\n       ~~~~~ <--- HERE"),
        ),
    ),
    "module": ModuleReply(
        "m",
        ModuleNode("m", "Net", (SlotRow("scale", "attribute", "float", text="0.5"),), ("forward",), (_LINEAR,), 6, 24)
    ),
    "shared modules": ModuleReply(
        "m",
        ModuleNode(
            "m", "Net", (), (), (_LINEAR, ModuleNode("out", "Linear", (), (), (), 0, 0, same_as="fc"),
                                 ModuleNode("up", "Net", (), (), (), 0, 0, same_as="")), 6, 24,
        ),
    ),
    "help": HelpReply(
        "Commands", ("Type TorchScript.",), (HelpTopic("%graph f", "the graph that f was compiled to, unchanged"),),
        ("%graph f", "x = 1"),
    ),
    "help with a start": HelpReply("Commands", start=(HelpTopic("m", "its modules", "Start here"),)),
    "file": FileReply(
        "my model.pt",
        "a pickled module: torch.save of a whole model, which holds weights and names of Python classes but no code",
        (("size", "4,585 bytes"), ("dtypes", "float16, float32, int64")),
        ("keep the weights: tsrepl extract 'my model.pt' weights.safetensors",),
    ),
    "report": ReportReply(
        "model.pt → new.pt",
        (
            Section("nothing suspicious", level="good"),
            Section("not known here", (">calls", "operator"), (("12", "mylib::fancy"), ("1", "a::b")), "error", "note"),
            Section("forward", level="warning", change=("a = 1\nreturn a\n", "a = 2\nreturn a\n")),
            Section("old: gone", level="warning", change=("return 1\n", "")),
            Section("", ("", "before", "after", ">max"), (("fc.weight", "float32 3×8", "–", ""),)),
        ),
        1,
    ),
    "data": DataReply({"file": "model.pt", "suspicious": False, "loops": []}),
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"name", "reply"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("name", "reply"), REPLIES.items(), ids=list(REPLIES))


@pytest.fixture
def replies() -> dict[str, Reply]:
    return REPLIES
