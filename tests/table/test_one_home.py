"""A fact of operators has one home, their rows: no other module lists operators by name, but a few with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from engine.aten.dispatch import table
from engine.lang.python_syntax import parse_python

ENGINE: Final = Path(__file__).parents[2] / "engine"
MOST: Final = 10
"""Operators that a module may name in lists."""
FACADE: Final = ("aten/ops/", "torch/", "frontend/names/torch_names.py")
"""The rows themselves, and the tables of names of the façade."""
EXCEPTIONS: Final = {
    "aten/autograd/formula.py": "functions that formulas of gradients call beside operators",
    "aten/autograd/names.py": "names of the nodes of a history, which are the original's and follow no rule",
    "aten/dispatch/quantized_forms.py": "the code for quantized tensors: another dispatch, no fact of the row",
    "aten/kernels/pointwise.py": "functions of scalar expressions on arrays: the vocabulary that rows are written in",
    "aten/quantized/pointwise.py": "the same for quantized tensors",
    "aten/values/arithmetic.py": "functions of Python's numbers",
    "executor/autodiff/specialising.py": "questions about tensors, whose answers gradients take as given",
    "executor/codegen/ranges.py": "arithmetic of intervals of ints, one rule an operator",
    "executor/plans/first_call.py": "bounds of the rounds of loops, one rule an operator",
    "executor/codegen/templates.py": "Python text of operators on numbers, lists and strings in generated code",
    "executor/codegen/unboxing.py": "matches products and parts by pattern, with numpy's expression for them",
    "frontend/diagnostics/cautions.py": "what archived programs may mean by a name",
    "frontend/emit/assignments.py": "augmented assignments of the language",
    "frontend/emit/operators.py": "operators of the language",
    "frontend/names/globals.py": "builtin functions of the language",
    "frontend/matching/overload_order.py": "the original's order of overloads, in-place forms included",
    "frontend/tracing/forms.py": "forms in which traces record calls, one rewrite an operator",
    "frontend/tracing/recording.py": "matches by pattern what traces record of numbers",
    "aten/values/meta.py": "functions of numpy, and methods of its arrays, by their names there",
    "frontend/sugared/values.py": "attributes and methods of values in the language",
    "fuser/groups/numbers.py": "operators of numbers and of forms, as expressions in kernels",
    "fuser/scalars/container_rules.py": "operators of lists and dicts as kernel IR",
    "fuser/ir/externals.py": "functions of the C library",
    "fuser/groups/from_expression.py": "functions of scalar expressions as kernel IR",
    "fuser/groups/choosing.py": "operators that choose elements, as index arithmetic in kernels",
    "fuser/groups/fusion_group.py": "functions that are worth keeping the result of",
    "fuser/ir/kernel.py": "functions of kernel IR",
    "fuser/ir/math.py": "functions of numbers in kernel IR",
    "fuser/ir/numeric_functions.py": "functions of kernel IR in Python",
    "fuser/groups/reductions.py": "operators that combine elements, as stages of kernels",
    "fuser/groups/rearranging.py": "operators that choose elements, as index arithmetic in kernels",
    "fuser/scalars/scalar_rules.py": "operators of numbers as kernel IR",
    "fuser/library/complex_expressions.py": "functions of scalar expressions in the parts of complex numbers",
    "fuser/library/serving.py": "Python's operators that are operators of the table",
    "fuser/library/looped.py": "calls of operators that loops compute, with the loops",
    "fuser/library/moving.py": "operators that move elements as they are, as calls that stubs know",
    "fuser/library/shaped.py": "calls of operators with functions of any sizes, as examples",
    "fuser/library/viewing.py": "operators that show memory, as functions of sizes and strides in stubs",
    "ir/evaluate.py": "matches by pattern what cannot be computed when compiling",
    "ir/facts/rules.py": "matches by pattern views, and what brings tensors to a device",
    "ir/rewriting/mutation_removal.py": "matches writes by pattern, and what to compute in their place",
    "ir/rewriting/weight_folding.py": "matches layers by pattern",
    "passes/fresh_activations.py": "matches makers of fresh memory by pattern",
    "passes/loop_invariant_code_motion.py": "matches by pattern what is worth moving",
    "passes/peephole.py": "matches by pattern",
    "passes/remove_inplace_ops.py": "matches by pattern",
    "passes/size_arithmetic.py": "matches by pattern",
    "serialize/code/expressions.py": "how nodes are written as text",
    "serialize/inspect/check.py": "what is worth telling about a program",
    "serialize/mobile/schema.py": "says which instructions of mobile programs are operators",
}


def test_no_other_module_lists_operators() -> None:
    known = frozenset(name.partition("::")[2] for name in table.names())
    listing = set()
    for path in ENGINE.rglob("*.py"):
        module = path.relative_to(ENGINE).as_posix()
        if not module.startswith(FACADE) and len(_listed(parse_python(path.read_text()), known)) > MOST:
            listing.add(module)
    assert listing - set(EXCEPTIONS) == set(), "a fact of operators is a field of their rows"
    assert set(EXCEPTIONS) - listing == set(), "these need no exception any more"


def _listed(tree: ast.Module, known: frozenset[str]) -> set[str]:
    """The operators named in full anywhere but in docstrings, or in collections and texts of mostly such names."""
    found: set[str] = set()
    for words in _groups(tree):
        names = [word.partition("::")[2] or word for word in words]
        hits = [name for name in (name.partition("(")[0].partition(".")[0] for name in names) if name in known]
        if any("::" in word for word in words) or (len(words) >= 4 and len(hits) >= 0.8 * len(words)):
            found.update(hits)
    return found


def _groups(tree: ast.Module) -> Iterator[list[str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value.replace(",", " ").split()
        elif isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set)):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            yield [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


KINDS: Final = frozenset("biufcmMOSUV")
"""numpy's letters for the kinds of dtypes."""
ABOUT_DTYPES: Final = frozenset("issubdtype finfo isrealobj iscomplexobj".split())
"""Functions of numpy that answer by kind: for bfloat16 they raise, or say that it is no number."""
HOME: Final = "aten/values/xp.py"


def test_what_a_dtype_is_is_asked_of_one_module() -> None:
    """`xp.FLOATING` and its like know bfloat16, which has the kind of structures."""
    found = {}
    for root in (ENGINE, ENGINE.parent / "tsrepl"):
        for path in root.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            asked = any(word in text for word in ("kind", *ABOUT_DTYPES)) and _asks_numpy(parse_python(text))
            if asked and not path.as_posix().endswith(HOME):
                found[path.relative_to(ENGINE.parent).as_posix()] = asked
    assert found == {}, "ask the sets of dtypes in engine/aten/values/xp.py"


@pytest.mark.parametrize(
    "text",
    [
        "x.dtype.kind in LETTERS", "d.kind == 'f'", "'c' != d.kind", "d.kind not in ('f', 'c')", "RANK[x.dtype.kind]",
        "write('x.dtype.kind == 1')", "np.finfo(d).eps", "np.issubdtype(d, np.floating)",
    ],
)  # fmt: skip
def test_questions_that_only_that_module_may_ask_are_found(text: str) -> None:
    assert _asks_numpy(parse_python(text))
    assert not _asks_numpy(parse_python("node.kind == 'prim::If' and use.user.kind in ('aten::add', 'f32')"))


def _asks_numpy(tree: ast.Module) -> list[str]:
    """The expressions that ask what a dtype is by numpy's kind, those in generated text among them."""
    return [ast.unparse(node) for node in ast.walk(tree) if any(asks(node) for asks in _QUESTIONS)]


def _compares_a_kind(node: ast.AST) -> bool:
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    has_kind = any(isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides)
    return has_kind and any(words and all({*word} <= KINDS for word in words) for words in map(_words_of, sides))


def _words_of(side: ast.expr) -> list[str]:
    parts = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
    return [
        part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value
    ]


def _reads_a_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith("dtype.kind")


def _writes_a_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "dtype.kind" in node.value


def _calls_numpy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ABOUT_DTYPES and ast.unparse(node.value) == "np"


_QUESTIONS: Final = (_compares_a_kind, _reads_a_kind, _writes_a_kind, _calls_numpy)
