"""Numbers with their nouns."""

from engine.lang.counts import age, counted


def test_one_and_many() -> None:
    assert [counted(n, "tensor") for n in (0, 1, 2, 1234)] == ["0 tensors", "1 tensor", "2 tensors", "1,234 tensors"]
    assert counted(2, "class", "classes") == "2 classes"
    assert counted(1, "class", "classes") == "1 class"


def test_spans_of_time_are_said_as_people_say_them() -> None:
    spans = (-3.0, 0.4, 1.0, 59.9, 60.0, 7300.0, 86400.0, 400000.0)
    said = ["a moment", "a moment", "1 second", "59 seconds", "1 minute", "2 hours", "1 day", "4 days"]
    assert [*map(age, spans)] == said
