"""Classes of modules that entries define, and the modules that entries make."""

from __future__ import annotations

import pytest

import engine.torch as torch
from tsrepl.session.replies import DefinitionReply, ErrorReply, GraphReply, ModuleReply, Reply, TextReply, ValueReply
from tsrepl.session.session import Session

NET = """\
class Net(nn.Module):
    def __init__(self, n: int = 2, *sizes, act=nn.ReLU, **more):
        super(Net, self).__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n, **more) for _ in range(2)])
        self.act = act()
        self.scale = nn.Parameter(torch.full((n,), 2.0))
        self.sizes = dict.fromkeys(sizes, lambda: 0)
        self.reset()

    def reset(self):
        for p in self.parameters():
            p.data.fill_(1)

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x) * self.scale
"""


@pytest.fixture
def session() -> Session:
    return Session()


def last(session: Session, text: str) -> Reply | None:
    replies = session.execute(text)
    assert not any(isinstance(reply, ErrorReply) for reply in replies), replies
    return replies[-1] if replies else None


def value(session: Session, text: str) -> object:
    reply = last(session, text)
    assert isinstance(reply, ValueReply)
    return reply.value


def failure(session: Session, text: str) -> ErrorReply:
    reply = session.execute(text)[-1]
    assert isinstance(reply, ErrorReply)
    return reply


def test_init_is_python_and_methods_are_torchscript(session: Session) -> None:
    reply = last(session, NET)
    assert isinstance(reply, DefinitionReply)
    assert reply.signature == "Net(int n=2, *sizes, act=ReLU, **more)"
    assert value(session, "net = Net(2, 3, bias=False); net(torch.ones(1, 2)).sum().item()") == 8.0
    assert [name for name, _, _ in session.variables() if name != "_"] == ["net"]


def test_a_module_is_made_wherever_an_expression_stands(session: Session) -> None:
    last(session, NET)
    assert value(session, "Net()(torch.ones(1, 2)).sum() + Net(act=nn.Tanh).eval()(torch.zeros(1, 2)).shape[0]")
    assert isinstance(last(session, "Net(3)"), ModuleReply)
    assert isinstance(last(session, "%graph Net()"), GraphReply)
    assert value(session, "m = nn.Sequential(nn.Linear(2, 3), Net(3)); m(torch.ones(1, 2)).shape") == [1, 3]


def test_methods_that_forward_does_not_call_are_compiled_when_they_are_called(session: Session) -> None:
    last(session, NET + "    def twice(self, x: Tensor):\n        return self.encode(x) * 2\n")
    assert value(session, "net = Net()\nnet.twice(torch.ones(1, 2)).shape") == [1, 2]
    assert "twice" not in failure(session, "net.nothing(1)").hints


def test_names_of_the_session_are_python_s_in_init(session: Session) -> None:
    last(session, "width = 5\ndef act(x: Tensor):\n    return x + 1\n")
    last(
        session,
        "class Wide(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.first = act(torch.zeros(width))\n\n    def forward(self):\n        return act(self.first)\n",
    )
    assert value(session, "Wide()().sum().item()") == 10.0


def test_a_definition_anew_reaches_what_is_made_anew(session: Session) -> None:
    last(session, "def act(x: Tensor):\n    return x + 1\n\ndef through(x: Tensor):\n    return act(x)\n")
    last(session, "class A(nn.Module):\n    def forward(self, x):\n        return through(x)\n")
    last(session, "class B(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = A()\n"
                  "    def forward(self, x):\n        return self.a(x)\n")  # fmt: skip
    last(session, "old = B()")
    last(session, "def act(x: Tensor):\n    return x + 10\n")
    assert value(session, "B()(torch.zeros(1)).item(), old(torch.zeros(1)).item()") == (10.0, 1.0)
    last(session, "class A(nn.Module):\n    def forward(self, x):\n        return x - 1\n")
    assert value(session, "B()(torch.zeros(1)).item(), old(torch.zeros(1)).item()") == (-1.0, 1.0)


def test_a_name_stands_for_what_was_defined_last(session: Session) -> None:
    last(session, NET)
    last(session, "def Net(x: int):\n    return x + 1\n")
    assert value(session, "Net(1)") == 2
    last(session, NET)
    assert isinstance(last(session, "Net(1)"), ModuleReply)
    last(session, "Net = 7")
    assert value(session, "Net") == 7


def test_other_classes_are_torchscript_as_ever(session: Session) -> None:
    last(session, "class Counter:\n    def __init__(self, n: int):\n        self.n = n\n")
    last(session, "class C(nn.Module):\n    def __init__(self, c: Counter):\n        super().__init__()\n"
                  "        self.c = c\n    def forward(self, d: Counter):\n"
                  "        return self.c.n + d.n + Counter(4).n\n")  # fmt: skip
    assert value(session, "c = Counter(1)\nC(c)(Counter(2))") == 7
    assert "self" in failure(session, "class D:\n    def __init__(self):\n        self.x = lambda: 0\n").excerpt


def test_a_module_in_a_loop_is_refused_with_what_to_write(session: Session) -> None:
    last(session, NET)
    for text in ("for i in range(2):\n    n = Net(i)\n", "[Net(i) for i in range(2)]", "x = Net() if True else Net()"):
        assert "made before the statement runs" in failure(session, text).message
    assert value(session, "nn.ModuleList([Net(i) for i in range(1, 3)])[1](torch.ones(1, 2)).shape") == [1, 2]


def test_errors_of_python_name_the_lines(session: Session) -> None:
    last(
        session, "class E(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.x = 1 / n\n"
    )
    error = failure(session, "e = E(0)")
    assert (error.kind, error.message) == ("ZeroDivisionError", "division by zero")
    assert [place.location for place in error.places] == ["entry 2", "entry 1, line 4, in __init__"]
    assert "1 / n\n                 ~~~~~ <--- HERE" in error.places[1].excerpt
    assert failure(session, "E(nothing)").message == "name 'nothing' is not defined"


def test_errors_of_methods_name_the_line_when_the_module_is_made(session: Session) -> None:
    last(session, "\nclass E(nn.Module):\n    def forward(self, x):\n        return x + self.y\n")
    error = failure(session, "E()")
    assert error.message.startswith("Module 'E' has no attribute 'y'") and error.location == "entry 1, line 4"
    assert error.places[0].location == "called from entry 2"


def test_what_no_method_may_have_is_refused_at_once_and_binds_nothing(session: Session) -> None:
    error = failure(session, "class E(nn.Module):\n    def forward(self, x):\n        yield x\n")
    assert (error.kind, error.location) == ("Not in TorchScript", "entry 1, line 3")
    assert "nothing is called 'E'" in failure(session, "%graph E").message
    assert failure(session, "class E(nn.Modul):\n    pass\n").hints == () != session.bindings


def test_a_class_without_a_module_says_so(session: Session) -> None:
    last(session, NET)
    assert failure(session, "%graph Net").hints == ("make one: m = Net(...)",)
    last(session, "net = Net()")
    assert isinstance(last(session, "%graph Net"), GraphReply)


def test_what_was_typed_can_be_edited_and_listed(session: Session) -> None:
    last(session, NET)
    assert session.execute("%edit Net")[0].text == NET.rstrip()  # type: ignore[union-attr]
    assert [(each.name, each.kind) for each in session.bindings()] == [("Net", "class")]
    last(session, "%reset")
    assert session.bindings() == () and "Net" in failure(session, "Net()").message


def test_two_sessions_have_entries_of_the_same_number(session: Session) -> None:
    other = Session()
    last(session, "class A(nn.Module):\n    def forward(self):\n        return 1\n")
    last(other, "class A(nn.Module):\n    def forward(self):\n        return 2\n")
    assert value(session, "A()()") == 1 and value(other, "A()()") == 2


def test_modules_made_here_are_saved_with_the_functions_they_call(session: Session, tmp_path: object) -> None:
    last(session, "def act(x: Tensor):\n    return x * 3\n")
    last(session, NET.replace("self.act(layer(x))", "act(layer(x))") + "\nnet = Net()")
    last(session, f"%save net {tmp_path}/net.pt")
    x = torch.ones(1, 2)
    assert torch.equal(torch.jit.load(f"{tmp_path}/net.pt")(x), value(session, "net(torch.ones(1, 2))"))


def test_nothing_of_python_runs_for_a_look_into_a_file(session: Session, tmp_path: object) -> None:
    with pytest.raises(Exception, match="line 1 defines a class of modules"):
        session.workspace.define_all(NET, "net.py")
    with open(f"{tmp_path}/net.py", "w") as file:
        file.write(NET + "\nnet = Net()\n")
    last(session, f"%run {tmp_path}/net.py")
    assert isinstance(last(session, "net.eval()"), TextReply)


def test_layers_and_classes_are_completed(session: Session) -> None:
    last(session, NET)
    assert [each.text for each in session.complete("m = nn.Linea")] == ["Linear"]
    assert [each.text for each in session.complete("m = Ne")] == ["Net"]


def test_a_class_may_have_attributes_of_any_name(session: Session) -> None:
    last(session, "class A(nn.Module):\n    text = 'mine'\n    def forward(self) -> int:\n        return 1\n")
    assert session.execute("%edit A")[0].text.startswith("class A")  # type: ignore[union-attr]
    assert session.workspace.definitions.module_class("A").text == "mine"


@pytest.mark.parametrize(
    "command", ["graph", "code", "schema", "passes", "instructions", "kernels", "profile", "profile --types", "trace"]
)
def test_a_command_makes_its_modules_once(session: Session, command: str, capfd: pytest.CaptureFixture[str]) -> None:
    last(session, NET.replace("self.reset()\n", "self.reset()\n        print('made')\n", 1))
    for _ in range(2):
        reply = last(session, f"%{command} Net()(torch.ones(1, 2))")
        assert reply is not None and not isinstance(reply, ErrorReply)
        assert capfd.readouterr().out.count("made") == 1
