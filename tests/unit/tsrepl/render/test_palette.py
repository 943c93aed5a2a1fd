"""Themes: which is chosen, and how well what is written in them can be read."""

import io
import re

import pytest
from prompt_toolkit.styles import Style as PromptStyle
from rich.color import ColorSystem
from rich.style import Style

from tsrepl.render.palette import EITHER, MENUS, PALETTE, chosen_theme, mixed, prompt_styles, rich_theme
from tsrepl.render.terminal import new_console, print_reply
from tsrepl.session.replies import Reply

BACKGROUNDS = {"dark": ("#000000", "#1e1e1e", "#282c34"), "light": ("#ffffff", "#fafafa", "#f6f2e4")}
ENOUGH = 4.5
"""The least contrast of text, by the guidelines for accessible pages (WCAG 2, level AA)."""
VARIABLES = ("NO_COLOR", "TSREPL_THEME", "COLORFGBG", "COLORTERM")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A terminal of 256 colours that says nothing else."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return monkeypatch


def luminance(colour: tuple[int, ...]) -> float:
    parts = [each / 255 for each in colour]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def rgb(text: str, system: ColorSystem = ColorSystem.TRUECOLOR) -> tuple[int, ...]:
    colour = Style.parse(text).color
    assert colour is not None
    return tuple(colour.downgrade(system).get_truecolor())


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT])
@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_every_role_can_be_read(theme: str, system: ColorSystem) -> None:
    colours = {role: str(rich_theme(theme).styles[role]) for role in PALETTE if role != "plain"}
    found = {
        (role, background): contrast(rgb(colour, system), rgb(background))
        for role, colour in colours.items()
        for background in BACKGROUNDS[theme]
    }
    assert {key: value for key, value in found.items() if value < ENOUGH} == {}


@pytest.mark.parametrize(
    ("text", "backgrounds"), [("#212121", ("#ffffff", "#f5f5f5")), ("#ffffff", ("#111111", "#1e1e1e"))]
)
def test_every_role_can_be_read_on_pages_whose_theme_is_not_known(text: str, backgrounds: tuple[str, ...]) -> None:
    for colour in EITHER:
        found = re.fullmatch(r"color-mix\(in srgb,(#\w{6}) (\d+)%,currentcolor\)", mixed(colour))
        assert found is not None
        own, part = rgb(found[1]), int(found[2]) / 100
        shown = tuple(round(part * a + (1 - part) * b) for a, b in zip(own, rgb(text), strict=True))
        assert all(contrast(shown, rgb(each)) >= ENOUGH for each in backgrounds), colour


@pytest.mark.parametrize("theme", ["dark", "light", "terminal"])
def test_menus_can_be_read(theme: str) -> None:
    text, background = MENUS[theme]
    assert contrast(rgb(text), rgb(background)) >= ENOUGH


@pytest.mark.parametrize("theme", ["dark", "light", "terminal"])
def test_the_prompt_has_the_colours_of_the_replies(theme: str) -> None:
    replies, prompt = rich_theme(theme).styles, PromptStyle.from_dict(prompt_styles(theme))
    for role in PALETTE:
        attributes = prompt.get_attrs_for_style_str(f"class:{role}")
        assert bool(attributes.bold) == bool(replies[role].bold)
        if theme != "terminal" and role != "plain":
            assert f"#{attributes.color}" == str(replies[role].color.name)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("variables", "wanted", "theme"),
    [
        ({}, "auto", "terminal"),
        ({}, "light", "light"),
        ({"COLORFGBG": "15;0"}, "auto", "dark"),
        ({"COLORFGBG": "0;default;15"}, "auto", "light"),
        ({"COLORFGBG": "0;15"}, "dark", "dark"),
        ({"COLORFGBG": "default;default"}, "auto", "terminal"),
        ({"COLORFGBG": "15;8"}, "auto", "dark"),
        ({"COLORFGBG": "0;7"}, "auto", "light"),
        ({"TSREPL_THEME": "light"}, "dark", "light"),
        ({"TSREPL_THEME": "auto", "COLORFGBG": "0;15"}, "dark", "light"),
        ({"TERM": "xterm"}, "dark", "terminal"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "dark", "dark"),
        ({"NO_COLOR": "1", "TSREPL_THEME": "light"}, "dark", "plain"),
    ],
)
def test_the_theme(variables: dict[str, str], wanted: str, theme: str, terminal: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        terminal.setenv(name, value)
    assert chosen_theme(wanted) == theme


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_replies_have_the_colours_of_the_theme(
    theme: str, replies: dict[str, Reply], terminal: pytest.MonkeyPatch
) -> None:
    terminal.setenv("TSREPL_THEME", theme)
    terminal.setenv("COLORTERM", "truecolor")
    console = new_console(force_terminal=True)
    console.file = io.StringIO()
    print_reply(replies["runtime error"], console)
    red, green, blue = rgb(getattr(PALETTE["error"], theme))
    assert f"38;2;{red};{green};{blue}" in console.file.getvalue()


def test_plain_styles_are_none_at_all() -> None:
    assert set(prompt_styles("plain").values()) == {""}
    assert {rich_theme("plain").styles[role] for role in PALETTE} == {Style()}
