"""What is offered at the cursor."""

from pathlib import Path

import pytest

from tsrepl.session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session()
    session.execute("weights = [1, 2]\nname = 'n'\nx = torch.ones(2)")
    session.execute("def widen(n: int):\n    return n\n")
    return session


def offered(session: Session, before: str) -> list[str]:
    return [candidate.text for candidate in session.complete(before)]


def test_names_of_the_session_come_first(session: Session) -> None:
    assert offered(session, "y = w")[:2] == ["widen", "weights"]


def test_the_typed_part_is_replaced(session: Session) -> None:
    (candidate,) = session.complete("print(weig")
    assert (candidate.text, candidate.kind, candidate.replaces) == ("weights", "variable", 4)


def test_commands(session: Session) -> None:
    assert offered(session, "%tr") == ["tree", "trace"]
    assert offered(session, "%help tr") == ["tree", "trace"]


def test_functions_for_commands_that_want_one(session: Session) -> None:
    assert offered(session, "%graph w") == ["widen"]


def test_operators_after_torch(session: Session) -> None:
    assert "relu" in offered(session, "torch.rel")
    assert "float32" in offered(session, "torch.float")
    assert "floor" in offered(session, "math.flo")


def test_methods_by_type(session: Session) -> None:
    assert "append" in offered(session, "weights.app")
    assert "upper" in offered(session, "name.up")
    assert {"shape", "sum"} <= set(offered(session, "x.s"))
    assert "append" not in offered(session, "x.app")


def test_methods_of_an_expression_are_those_of_a_tensor(session: Session) -> None:
    assert "relu" in offered(session, "torch.ones(2).rel")


def test_private_names_only_when_asked_for(session: Session) -> None:
    assert not [text for text in offered(session, "torch.") if text.startswith("_")]


def test_files(session: Session, tmp_path: Path) -> None:
    (tmp_path / "net.pt").touch()
    (tmp_path / "nets").mkdir()
    (tmp_path / ".hidden").touch()
    assert offered(session, f"%load {tmp_path}/ne") == [f"{tmp_path}/net.pt", f"{tmp_path}/nets/"]
    assert offered(session, f"%load {tmp_path}/") == [f"{tmp_path}/net.pt", f"{tmp_path}/nets/"]


def test_files_whose_names_need_quotation_marks(session: Session, tmp_path: Path) -> None:
    (tmp_path / "my net.pt").touch()
    (tmp_path / "it's.pt").touch()
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "in side.pt").touch()
    assert offered(session, f"%load {tmp_path}/my") == [f"'{tmp_path}/my net.pt'"]
    assert offered(session, f"%load '{tmp_path}/my n") == [f"'{tmp_path}/my net.pt'"]
    assert offered(session, f'%load "{tmp_path}/my n') == [f"'{tmp_path}/my net.pt'"]
    assert offered(session, f"%load {tmp_path}/my\\ n") == [f"'{tmp_path}/my net.pt'"]
    assert offered(session, f"%load {tmp_path}/it") == [f"'{tmp_path}/it'\"'\"'s.pt'"]
    assert offered(session, f"%load {tmp_path}/a") == [f"'{tmp_path}/a b/"]
    assert offered(session, f"%load '{tmp_path}/a b/") == [f"'{tmp_path}/a b/in side.pt'"]
    (candidate,) = session.complete(f"%load '{tmp_path}/a b/in")
    assert candidate.replaces == len(f"'{tmp_path}/a b/in") and candidate.shown == "in side.pt"


def test_a_name_then_a_path_for_save(session: Session, tmp_path: Path) -> None:
    (tmp_path / "old.pt").touch()
    assert offered(session, "%save wi") == ["widen"]
    assert offered(session, f"%save widen {tmp_path}/o") == [f"{tmp_path}/old.pt"]


@pytest.mark.parametrize("before", ["", "   ", "%nosuch a", "%who ", "1.", "x = 'a", ")))"])
def test_nothing_goes_wrong(session: Session, before: str) -> None:
    session.complete(before)


@pytest.mark.parametrize(
    "before",
    ["'tor", '"a', "# tor", "x = 1  # tor", "'''tor", "'''a\ntor", 'def f(x):\n    """doc\n    tor', "f('tor",
     r"'\'tor", "f'tor", "f'{x} tor", "%graph 'tor", "%time f('tor"],
)  # fmt: skip
def test_strings_and_comments_are_left_alone(session: Session, before: str) -> None:
    assert offered(session, before) == []


@pytest.mark.parametrize(
    "before",
    ["''; tor", "'a' + tor", "'#' + tor", "'''a''' + tor", "'''a\nb''' + tor", "f'{tor", "f('a', tor", r"'\'' + tor",
     '"\'" + tor', "x = 1  # a\ntor"],
)  # fmt: skip
def test_what_stands_behind_them_is_completed(session: Session, before: str) -> None:
    assert "torch" in offered(session, before)


def test_names_are_found_by_some_of_their_letters(session: Session) -> None:
    assert "constant_propagation" in offered(session, "%passes widen cprop")
    assert "max_pool2d" in offered(session, "torch.mpool2")
    assert "continue" in offered(session, "cntn")
    assert offered(session, "xq") == []


def test_passes_behind_a_function(session: Session) -> None:
    assert offered(session, "%passes widen dc") == ["dce"]
    assert offered(session, "%passes widen(wei") == ["weights"]


def test_arguments_of_calls_and_options_of_commands() -> None:
    made = Session()
    made.execute(
        "def fancy(x, size: int = 2, *, scale: float = 1.0):\n    return x * size * scale\n\nxt = torch.ones(2)"
    )

    def texts(before: str) -> list[str]:
        return [each.text for each in made.complete(before)]

    assert "size=" in texts("fancy(xt, s") and "scale=" in texts("fancy(xt, s")
    assert "size=" not in texts("fancy(xt, 2, s") and "scale=" not in texts("fancy(xt, scale=1., s")
    assert "size=" not in texts("s")
    assert {"--value", "--op", "--plan", "--all"} <= {*texts("%trace --")}
    assert texts("%trace --no") == ["--no-lines"]
    assert texts("%kernels fancy(xt) --target sm") == []
    assert "--target" in texts("%kernels fancy(xt) --t")
