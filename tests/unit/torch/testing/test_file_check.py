"""FileCheck: what it finds, and what it says when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from engine.torch.testing import FileCheck

TEXT = "aa bb\ncc dd aa\nee aa\nff\n"
GOOD = [
    "check('aa').check('dd')", "check('aa').check_next('cc')", "check('aa').check_same('bb')",
    "check('bb').check_not('bb').check('ff')", "check_not('zz')", "check_count('aa', 3)",
    "check_count('aa', 3, exactly=True)", "check_count('aa', 2, exactly=True).check('ee')",
    "check_dag('dd').check_dag('bb').check('ee')", "check_dag('dd').check_dag('aa').check_not('zz').check('ff')",
    "check_regex('c+ d')", "check('ff').check_not('aa')",
]  # fmt: skip
BAD = {
    "check('dd').check('bb')": 'Expected to find "bb" but did not find it',
    "check('aa').check_next('ee')": "in the next line",
    "check('bb').check_same('cc')": "in the same line",
    "check('aa').check_not('cc').check('dd')": 'Expected to not find "cc" but found it',
    "check_count('aa', 2, exactly=True)": 'Expected to not find "aa"',
    "check_count('aa', 4)": 'Expected to find "aa"',
    "check_dag('ff').check_dag('bb').check('ee')": 'Expected to find "ee"',
}


HIGHLIGHTED = "x y\nf(x)\n  ~ <--- HERE\n"


@pytest.mark.parametrize("marks", ["~ <--- HERE", "~"])
def test_a_highlighted_place(marks: str) -> None:
    FileCheck().check_source_highlighted("x").run(f"x y\n{marks}\n")


def test_a_later_place_may_be_the_highlighted_one() -> None:
    FileCheck().check_source_highlighted("x").check_same(")").run(HIGHLIGHTED)


@pytest.mark.parametrize("text", ["x y", "x y\n", "x y\n~~\n", "x y\n ~\n", "a x\n~~~\n", "x\nx y\n  ~\n"])
def test_other_places_are_not_highlighted(text: str) -> None:
    with pytest.raises(RuntimeError, match='Expected to find "x" highlighted'):
        FileCheck().check_source_highlighted("x").run(text)


def made(checks: str) -> Any:
    return eval(f"FileCheck().{checks}", {"FileCheck": FileCheck})


@pytest.mark.parametrize("checks", GOOD)
def test_found(checks: str) -> None:
    made(checks).run(TEXT)


@pytest.mark.parametrize("checks", BAD)
def test_not_found(checks: str) -> None:
    with pytest.raises(RuntimeError, match=BAD[checks]):
        made(checks).run(TEXT)


def test_the_message_shows_the_place() -> None:
    with pytest.raises(RuntimeError) as error:
        FileCheck().check("cc").check("bb").run(TEXT)
    assert str(error.value) == (
        'Expected to find "bb" but did not find it\nSearched string:\n'
        "cc dd aa\n  ~~~ <--- HERE\nee aa\nff\n\nFrom CHECK: bb\n"
    )


def test_checks_in_comments() -> None:
    FileCheck().run(checks_file="# CHECK: aa", test_file=TEXT)
    FileCheck().run("# CHECK: aa\n  # CHECK-NEXT: cc\n# CHECK-NOT: zz\n# CHECK-COUNT-1: ff\n", TEXT)
    with pytest.raises(RuntimeError, match='not find "aa"'):
        FileCheck().run("# CHECK-COUNT-EXACTLY-2: aa\n", TEXT)
    with pytest.raises(RuntimeError, match="Check for bad input"):
        FileCheck().run("aa", TEXT)


def test_nothing_to_check_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="nothing to check"):
        FileCheck().run(TEXT)


def test_every_kind_of_check_may_stand_in_a_comment() -> None:
    FileCheck().run("# CHECK-SOURCE-HIGHLIGHTED: x\n# CHECK-SAME: )\n# CHECK-REGEX: ~+\n", HIGHLIGHTED)


@pytest.mark.parametrize("line", ["# CHECK-FOO: x", "# CHECK:x", "# CHECK x"])
def test_a_comment_that_is_no_check_is_shown(line: str) -> None:
    with pytest.raises(RuntimeError, match=f"Could not parse check.*\n{line}"):
        FileCheck().run(f"{line}\n# CHECK: x\n", "x")


def test_counts_by_name_and_counts_of_nothing() -> None:
    FileCheck().check_count(str="aa", count=3, exactly=True).run(TEXT)
    FileCheck().check_count("zz", 0, exactly=True).run(TEXT)
    with pytest.raises(RuntimeError, match="checks nothing"):
        FileCheck().check_count("aa", 0)
