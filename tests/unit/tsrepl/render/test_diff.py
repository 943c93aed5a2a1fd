"""What changed between two texts."""

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
