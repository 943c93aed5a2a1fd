"""What the lexers see; whatever they see, no character is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrepl.render.highlight import highlight

LANGUAGES = ["ir", "instructions", "tree", "entry", "python", "llvm", "asm"]


def roles(text: str, language: str) -> list[tuple[str, str]]:
    return [(span.text, span.role) for span in highlight(text, language) if span.text.strip() and span.role != "plain"]


def test_a_node() -> None:
    assert roles("  %5 : int[] = aten::add(%x.1, %4)\n", "ir") == [
        ("%", "value"), ("5", "value"), ("int", "type"), ("[]", "type"), ("aten::add", "kind"), ("%x.1", "value"),
        ("%4", "value"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "type",
    ["Tensor?", "Dict(str, int[])", "Float(2, *, strides=[3, 1], requires_grad=0, device=cpu)", "(int, (str, bool))",
     "__torch__.M", "Union(int, str)", "NamedTuple(x : int, y : Tensor)", "Future(Tensor)", "Enum<__torch__.Color>"],
)  # fmt: skip
def test_types_are_one_stretch(type: str) -> None:
    spans = roles(f"%5 : {type}, %6 : int = prim::X()", "ir")
    assert (
        "".join(text for text, role in spans[2 : next(i for i, s in enumerate(spans) if s == ("%", "value") and i)])
        == type
    )
    assert ("prim::X", "kind") in spans


def test_constants() -> None:
    spans = roles('%1 : str = prim::Constant[value="a\\"b"]()\n%2 : int = prim::Constant[value=-7]()', "ir")
    assert ('"a\\"b"', "string") in spans
    assert ("-7", "constant") in spans


def test_instructions() -> None:
    assert roles("15, 16 = Chunk move(14), 3", "instructions") == [
        ("15, 16", "value"), ("Chunk", "kind"), ("move", "keyword"), ("14", "value"), ("3", "value"),
    ]  # fmt: skip


def test_what_kernels_are_compiled_to() -> None:
    llvm = 'define i64 @"group"(i64 %".1") {\nentry:\n  %".9" = alloca i64\n  store i64 0, i64* %".9" ; done\n'
    assert roles(llvm, "llvm") == [
        ("define", "keyword"), ("i64", "type"), ('@"group"', "kind"), ("i64", "type"), ("entry", "kind"),
        ("alloca", "kind"), ("i64", "type"), ("store", "kind"), ("i64", "type"), ("0", "constant"), ("i64", "type"),
        ("; done", "comment"),
    ]  # fmt: skip
    assert roles("group:\n\t.p2align\t4\n\tmovq\t$7, (%rax) # x\n", "asm") == [
        ("group", "kind"), (".p2align", "keyword"), ("4", "constant"), ("movq", "kind"), ("$7", "constant"),
        ("%rax", "type"), ("# x", "comment"),
    ]  # fmt: skip
    assert roles("\t@!%p1 bra \t$L1;\n\tmov.f32 %f1, 0f3F800000;", "asm") == [
        ("bra", "kind"), ("mov.f32", "kind"), ("%f1", "type"), ("0f3F800000", "constant"),
    ]  # fmt: skip


def test_a_command_is_told_from_a_remainder() -> None:
    assert roles("%graph f", "entry")[0] == ("%graph", "command")
    assert "command" not in {role for _, role in roles("x = 7 % 3", "entry")}


@given(
    st.text(alphabet=st.sampled_from(list("%x1: =([])\"'#\n aten::add\\-><~?*.,;@!$/{}\t"))), st.sampled_from(LANGUAGES)
)
def test_no_character_is_lost(text: str, language: str) -> None:
    assert "".join(span.text for span in highlight(text, language)) == text
