"""Which type a list or dict gets from the annotation that it is written for, whichever form makes it."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.lang.errors import CompileError

DICTS = ["{1: 2}", "{i: 2 for i in [1]}", "{}", "dict()", "dict({})", "dict([])", "dict({1: 2})", "dict([(1, 2)])",
         "dict(zip([1], [2]))"]  # fmt: skip
CAST = ("{1: 2}", "{i: 2 for i in [1]}", "{}")
"""Forms that give the annotated type itself: the others give the dict type in it."""


def type_of(annotation: str, form: str) -> str:
    text = f"def f():\n    x: {annotation} = {form}\n    return x\n"
    return compile_source(text).functions["f"].graph.outputs[0].type.annotation_str


@pytest.mark.parametrize("annotation", ["Dict[int, int]", "Optional[Dict[int, int]]", "Union[Dict[int, int], str]"])
@pytest.mark.parametrize("form", DICTS)
def test_a_dict_is_of_the_one_dict_type_that_the_annotation_allows(annotation: str, form: str) -> None:
    assert type_of(annotation, form) == (annotation if form in CAST else "Dict[int, int]")


SEVERAL = "Union[Dict[int, int], Dict[str, str]]"


@pytest.mark.parametrize("form", DICTS)
def test_of_several_dict_types_only_a_literal_tells_which(form: str) -> None:
    if form in ("{1: 2}", "{i: 2 for i in [1]}"):
        assert type_of(SEVERAL, form) == SEVERAL
        return
    words = "multiple possible Dict type candidates" if form == "{}" else "multiple candidate Dict types"
    with pytest.raises(CompileError, match=words):
        type_of(SEVERAL, form)


@pytest.mark.parametrize("form", DICTS)
def test_an_annotation_without_a_dict_is_refused(form: str) -> None:
    with pytest.raises(CompileError):
        type_of("Union[List[int], int]", form)
