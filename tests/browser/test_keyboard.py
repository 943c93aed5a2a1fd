"""Every view by the keyboard alone: Tab goes through all that can be worked with, in order, shows where it is, and
leaves at both ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.lab import MODULE, PROGRAM, THEMES

VIEWS = {
    "graph": ("%tsjit_graph f", "canvas[data-drawn]"),
    "passes": ("%tsjit_passes f(x, 3)", ".tsw-diff[data-step]"),
    "trace": ("%tsjit_trace f(x, 3)", "canvas.tsw-heat"),
    "modules": ("%tsjit_modules m", "[role=treeitem]"),
    "profile": ("%tsjit_profile --types g(x, x)", "table"),
    "cost": ("%tsjit_profile m(image)", ".tsw-flame"),
    "guards": ("%tsjit_guards g(x, x)", "table"),
    "kernels": ("%tsjit_kernels g(x, x)", "[aria-label=assembly] .tsw-linked"),
    "debugger": ("%tsjit_debug f(x, 3)", ".tsw-row.here"),
}
"""The command of each, and what shows when it is complete."""

STOPS = """(view) => {
    const isStop = (each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility();
    const stops = [...view.querySelectorAll('*')].filter(isStop);
    stops.forEach((each, at) => { each.dataset.stop = at; });
    return stops.length;
}"""
"""Numbers the elements of a view that Tab comes to, in their order."""
BY_POINTER_ALONE = """(view) => [...view.querySelectorAll('*')].filter((each) =>
    each.onclick && each.checkVisibility() && !each.closest('button, select, input, summary, [tabindex]')
).map((each) => each.className + ' ' + each.textContent.slice(0, 40))"""
"""Elements that take clicks, and that no key reaches."""
HERE = """() => {
    const here = document.activeElement, box = here.getBoundingClientRect(), style = getComputedStyle(here);
    const isSeen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return {
        stop: here.closest('section.tsw') && here.dataset.stop ? Number(here.dataset.stop) : null,
        inside: Boolean(here.closest('section.tsw')), kind: here.tagName + '.' + here.className, isSeen,
        name: here.ariaLabel || here.textContent.slice(0, 40), box: [box.x, box.y, box.width, box.height],
        outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
    };
}"""
MARGIN = 4
"""Pixels around an element in which its focus shows."""


@pytest.fixture(scope="module", autouse=True)
def _program(notebook: Any) -> None:
    notebook.run("%load_ext tsrepl")
    notebook.run(PROGRAM).get_by_text("defined").first.wait_for()
    notebook.run(MODULE)


@pytest.mark.parametrize("name", VIEWS)
def test_tab_goes_through_a_view_and_leaves_it(notebook: Any, name: str) -> None:
    command, complete = VIEWS[name]
    view, page = notebook.view(command), notebook.page
    view.locator(complete).first.wait_for()
    page.wait_for_timeout(300)
    count = view.evaluate(STOPS)
    assert count and view.evaluate(BY_POINTER_ALONE) == []
    view.locator("[data-stop='0']").focus()
    there = [*walk(page, "Tab", count)]
    assert [each["stop"] for each in there] == [*range(count)], [each["name"] for each in there]
    assert not page.evaluate(HERE)["inside"], f"the focus stays in {name}"
    hidden = [each["name"] for each in there if not (each["isSeen"] and each["outline"] >= 1)]
    assert not hidden, f"no focus shows at {hidden}"
    view.locator(f"[data-stop='{count - 1}']").focus()
    assert [each["stop"] for each in walk(page, "Shift+Tab", count)] == [*reversed(range(count))]
    assert not page.evaluate(HERE)["inside"], f"the focus stays in {name}"
    for theme in THEMES.values():
        notebook.theme(theme)
        view.scroll_into_view_if_needed()
        assert unseen(page, view) == [], theme
    notebook.theme(THEMES["light"])
    if name == "debugger":
        view.get_by_role("button", name="leave the debugger").click()
        view.get_by_text("left the debugger").first.wait_for()


def walk(page: Any, key: str, most: int) -> Any:
    """The element that has the focus, and those that the key goes to, as long as they are in a view."""
    for _ in range(most + 1):
        here = page.evaluate(HERE)
        if not here["inside"]:
            return
        yield here
        page.keyboard.press(key)


def unseen(page: Any, view: Any) -> list[str]:
    """The kinds of elements whose focus makes no difference in pixels: an outline may be cut off by what is around, or
    have the colour of what is behind it."""
    kinds, found = set[str](), list[str]()
    count = view.evaluate(STOPS)
    view.locator("[data-stop='0']").focus()
    for here in walk(page, "Tab", count):
        if here["kind"] in kinds:
            continue
        kinds.add(here["kind"])
        with_focus = around(page, here["box"])
        page.evaluate("document.activeElement.blur()")
        without = around(page, here["box"])
        view.locator(f"[data-stop='{here['stop']}']").focus()
        if with_focus == without:
            found.append(f"{here['kind']} {here['name']}")
    return found


def around(page: Any, box: list[float]) -> bytes:
    """The picture of a place."""
    x, y, width, height = box
    size = page.viewport_size
    left, top = max(0.0, x - MARGIN), max(0.0, y - MARGIN)
    clip = {
        "x": left, "y": top, "width": min(x + width + MARGIN, size["width"]) - left,
        "height": min(y + height + MARGIN, size["height"]) - top,
    }  # fmt: skip
    return bytes(page.screenshot(clip=clip, caret="hide"))
