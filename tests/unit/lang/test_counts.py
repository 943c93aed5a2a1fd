"""Numbers with their nouns."""

from engine.lang.counts import counted


def test_one_and_many() -> None:
    assert [counted(n, "tensor") for n in (0, 1, 2, 1234)] == ["0 tensors", "1 tensor", "2 tensors", "1,234 tensors"]
    assert counted(2, "class", "classes") == "2 classes"
    assert counted(1, "class", "classes") == "1 class"
