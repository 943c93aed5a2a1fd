"""Names of classes and functions in an archive."""

from engine.serialize.container.qualified_names import TypeNames, is_identifier, name_of, prefix_of, record_of


def test_parts():
    assert prefix_of("__torch__.a.B") == "__torch__.a"
    assert name_of("__torch__.a.B") == "B"
    assert record_of("__torch__.a") == "code/__torch__/a.py"


def test_identifiers():
    assert [is_identifier(text) for text in ("a", "_1", "1", "", "a.b", "é")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_free_name_is_kept():
    names = TypeNames()
    assert names.unique("x", "__torch__.a.B") == "__torch__.a.B"
    assert names.unique("x", "__torch__.a.B") == "__torch__.a.B"


def test_a_taken_name_is_mangled_before_its_last_part():
    names = TypeNames()
    names.unique(1, "__torch__.a.B")
    assert names.unique(2, "__torch__.a.B") == "__torch__.a.___torch_mangle_0.B"
    assert names.unique(3, "__torch__.a.___torch_mangle_0.B") == "__torch__.a.___torch_mangle_1.B"


def test_names_stand_below_the_root():
    assert TypeNames().unique(1, "f") == "__torch__.f"
