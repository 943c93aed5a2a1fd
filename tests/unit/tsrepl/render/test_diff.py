"""What changed between two texts."""

from hypothesis import given
from hypothesis import strategies as st

from tests.timing import within
from tsrepl.render.diff import diff_lines


def shown(before: str, after: str) -> list[str]:
    return [f"{mark}{text}" for mark, text in diff_lines(before, after)]


def test_changes_keep_their_neighbours() -> None:
    before = "\n".join("abcdefghij")
    assert shown(before, before.replace("f", "F")) == [
        "…3 lines the same",
        " d",
        " e",
        "-f",
        "+F",
        " g",
        " h",
        "…2 lines the same",
    ]


def test_one_hidden_line_is_shown_instead() -> None:
    assert shown("a\nb\nc\nd", "a\nb\nc\nD") == [" a", " b", " c", "-d", "+D"]


def test_same_texts_have_no_changes() -> None:
    assert {mark for mark, _ in diff_lines("a\nb", "a\nb")} <= {" ", "…"}


def test_all_new() -> None:
    assert shown("a", "b") == ["-a", "+b"]


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_the_lines_of_both_texts_are_all_there(old: list[str], new: list[str]) -> None:
    old, new = ["(", *old, ")"], ["[", *new, "]"]
    lines = diff_lines("\n".join(old), "\n".join(new), 1000)
    assert [text for mark, text in lines if mark in " -"] == old
    assert [text for mark, text in lines if mark in " +"] == new


def test_texts_of_thousands_of_lines_take_little_time() -> None:
    old = [f"%{i} : int = aten::size(%{i // 3})" if i % 5 else "  -> ()" for i in range(20_000)]
    new = [line for i, line in enumerate(old) if i % 7]
    with within(2):
        lines = diff_lines("\n".join(old), "\n".join(new))
    assert sum(mark == "-" for mark, _ in lines) - sum(mark == "+" for mark, _ in lines) == len(old) - len(new)
