"""Whatever is saved is read again: names of every script in every place of a program, texts, names of files."""

import importlib.util
import io
import os
import random
import re
import sys
from functools import partial

import numpy as np
import pytest

import engine.torch as torch
from engine.lang.errors import ArchiveError
from engine.lang.literals import string_literal
from engine.serialize.archive import load_archive
from engine.serialize.container.read import folder_for

NAMES = [
    "größe", "名", "हिन्दी", "Ωμ", "ß", "à", "नमस्ते", "_0", "if_", "print", "int",
    "str", "range", "annotate", "isinstance", "torch_", "ops", "fork", "inf", "nan", "CONSTANTS", "uninitialized",
    "attribute", "aten", "List", "unchecked_cast",
]  # fmt: skip
PROGRAM = """
import engine.torch as torch
from enum import Enum
from typing import NamedTuple

nn = torch.nn

class P(NamedTuple):
    {field}: torch.Tensor
    b: int

class E(Enum):
    {name} = 1
    other = 2

def f{name}(x):
    return x + 2

class C{name}(nn.Module):
    c{name}: torch.jit.Final[int]

    def __init__(self):
        super().__init__()
        self.{name} = 3
        self.c{name} = 5
        self.e = E.{name}
        self.register_buffer("b{name}", torch.ones(2))
        self.p{name} = nn.Parameter(torch.full((2,), 2.0))
        self.s{name} = nn.Linear(2, 2)

    @torch.jit.export
    def m{name}(self, {name}):
        return {name} * self.{name} + self.b{name} + self.c{name}

    def forward(self, {name}):
        p = P({name}, 1)
        {name} = p.{field} + p.b
        k = 0
        while k < 3:
            {name} = {name} * 2
            k += 1
        if self.e == E.{name}:
            {name} = f{name}(self.m{name}({name}))
        self.b{name} = {name} * self.p{name}
        return self.s{name}(self.b{name})
"""


def _module(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("program_of_names", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program_of_names"] = module
    try:
        spec.loader.exec_module(module)
        made = next(value for key, value in vars(module).items() if key.startswith("C") and key != "C")
        return torch.jit.script(made())
    finally:
        del sys.modules["program_of_names"]


def _again(module):
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_script_come_back_in_every_place(tmp_path, name):
    module = _module(tmp_path, PROGRAM.format(name=name, field=f"f{name}"))
    x = torch.arange(2.0)
    read = _again(module)
    twice = _again(read)
    expected = module(x)
    assert torch.equal(read(x), expected)
    assert torch.equal(twice(x), expected)
    assert list(read.state_dict()) == list(module.state_dict())
    assert [c for c, _ in read.named_modules()] == [c for c, _ in module.named_modules()]


ODD = ["0", "a b", "a-b", 'q"', "it's", "back\\slash", "new\nline", "\r", "é ", "if", "None", "😀", "\x7f", "class"]


@pytest.mark.parametrize("name", ODD)
def test_attributes_may_have_any_name(name):
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2), "other": torch.nn.Linear(2, 2)})
            self.register_buffer(name, torch.ones(2))

        def forward(self, x):
            for part in self.parts.values():
                x = part(x)
            return x

    module = torch.jit.script(Outer())
    read = _again(_again(module))
    assert torch.equal(read(torch.ones(1, 2)), module(torch.ones(1, 2)))
    assert list(read.state_dict()) == list(module.state_dict())
    assert [kind for kind, _ in read.named_buffers()] == [name]


def test_names_that_code_cannot_spell_are_refused_when_they_are_saved():
    class Odd(torch.nn.Module):
        __constants__ = ("a b",)

        def forward(self, x):
            return x

    odd = Odd()
    setattr(odd, "a b", 3)
    with pytest.raises(ArchiveError, match="'a b', the name of a constant"):
        _again(torch.jit.script(odd))


def test_a_class_whose_name_is_no_identifier_is_saved_under_one():
    def forward(self, x):
        return x + 1

    made = type("Some class", (torch.nn.Module,), {"forward": forward})
    assert torch.equal(_again(torch.jit.script(made()))(torch.ones(2)), torch.full((2,), 2.0))


def _texts():
    """Chosen ones, and some of all characters."""
    chosen = random.Random(7)
    ranges = ((0, 0x80), (0, 0x100), (0, 0xD800), (0xE000, 0x110000))
    yield from (
        "",
        "\0",
        "\r",
        "\r\n",
        "'",
        '"',
        "\\",
        "\\303",
        "\\0)+",
        '"""',
        "ü",
        "😀",
        "\u2028",
        "\udcff",
        "x" * 70_000,
    )
    for _ in range(40):
        yield "".join(chr(chosen.randrange(*chosen.choice(ranges))) for _ in range(chosen.randrange(6)))


class Texts(torch.nn.Module):
    def __init__(self, text):
        super().__init__()
        self.text, self.counts, self.pair, self.listed = text, {text: 1, "z": 2}, (text, 1), [text, "a"]

    def forward(self, x: str) -> list[str]:
        return [x + self.text, self.pair[0]] + self.listed + list(self.counts.keys())  # noqa: RUF005


@pytest.mark.parametrize("text", list(_texts()), ids=lambda text: ascii(text)[:20])
def test_texts_and_keys_come_back(text):
    module = torch.jit.script(Texts(text))
    read = _again(module)
    assert (read.text, read.counts, read.pair, read.listed) == (text, {text: 1, "z": 2}, (text, 1), [text, "a"])
    assert read("x") == module("x")


@pytest.mark.parametrize("text", list(_texts()), ids=lambda text: ascii(text)[:20])
def test_texts_in_code_come_back(text):
    literal = string_literal(text)
    unit = torch.jit.CompilationUnit(f"def f(x: str):\n  y = {{{literal}: 1, x: 2}}\n  return x + {literal}, len(y)\n")
    assert unit.f("k")[0] == "k" + text
    assert _again(unit.f)("k") == unit.f("k")


def test_a_text_that_no_file_can_hold_is_refused():
    with pytest.raises(ArchiveError, match="half of one"):
        _again(torch.jit.script(Texts("a\ud800")))


def test_the_escapes_that_pytorch_writes_and_cannot_read_are_read():
    module = torch.jit.CompilationUnit('def f() -> str:\n  return "\\303\\266"\n')
    assert module.f() == "ö"


FILES = [
    *(f"a{chr(code)}b.pt" for code in range(1, 128) if chr(code) != "/"),
    "...pt", "..pt", ".pt", "...", "a.", "C:.pt", " ", "-", "'\".pt", "\udcff.pt", "e\u0301.pt", "none", "m.zip",
    "m.pth", "m.ts", "n" * 252 + ".pt", "😀" * 60 + ".pt",
]  # fmt: skip


def test_whatever_a_file_is_called_it_is_read(tmp_path):
    module = torch.jit.script(torch.nn.Linear(2, 2))
    for name in FILES:
        path = os.path.join(tmp_path, name)
        try:
            open(path, "wb").close()
        except OSError:
            continue  # this file system has no such names
        torch.jit.save(module, path)
        assert torch.equal(torch.jit.load(path).weight, module.weight), name
        torch.save({"a": module.weight}, path)
        assert torch.equal(torch.load(path)["a"], module.weight), name
        assert re.fullmatch(r"[^\x00-\x1f\x7f/\\\ud800-\udfff]+", folder_for(path)), name
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_archives_in_folders_of_any_name_are_read(tmp_path):
    module = torch.jit.script(torch.nn.Linear(2, 2))
    plain = tmp_path / "abcde.pt"
    torch.jit.save(module, plain)
    for folder in (b"a\nb\tc", b"\xff\xfe\x80zz", b"C:\\x\0", b"..\\.."):
        changed = tmp_path / "changed.pt"
        changed.write_bytes(plain.read_bytes().replace(b"abcde/", folder + b"/"))
        assert np.array_equal(load_archive(changed).get("weight").array, module.weight.detach().numpy())


def test_names_too_long_for_a_file_are_refused_in_words(tmp_path):
    module = torch.jit.script(torch.nn.Linear(2, 2))
    for name in ("n" * 300, "\ud800", "a\0b"):
        path = os.path.join(tmp_path, name)
        for action in (module.save, partial(torch.save, {}), torch.jit.load, torch.load):
            with pytest.raises(ArchiveError):
                action(path)
