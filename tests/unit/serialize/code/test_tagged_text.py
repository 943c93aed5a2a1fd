"""Text that remembers where it stems from."""

from engine.lang.source import Source, SourceRange
from engine.serialize.code.tagged_text import TaggedText

SOURCE = Source("abcdef")


def test_marks_stand_where_the_range_changes():
    a, b = SourceRange(SOURCE, 0, 1), SourceRange(SOURCE, 1, 2)
    stack = [None]
    text = TaggedText(stack)
    text.write("x = ")
    stack.append(a)
    text.write("", "f(", "y")
    stack.append(b)
    text.write("")
    stack.pop()
    text.write(")")
    assert str(text) == "x = f(y)"
    assert text.marks == [(0, None), (4, a)]
    assert text.size == 8


def test_text_in_text_keeps_its_ranges():
    a, b = SourceRange(SOURCE, 0, 1), SourceRange(SOURCE, 1, 2)
    stack = [a]
    outer, inner = TaggedText(stack), TaggedText([b])
    outer.write("f(", inner.write("y"), ")")
    assert str(outer) == "f(y)"
    assert outer.marks == [(0, a), (2, b), (3, a)]


def test_equal_ranges_are_one():
    stack = [SourceRange(SOURCE, 0, 1)]
    text = TaggedText(stack).write("a")
    stack[-1] = SourceRange(SOURCE, 0, 1)
    assert len(text.write("b").marks) == 1
