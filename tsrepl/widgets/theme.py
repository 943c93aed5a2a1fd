"""The styles of all views.

In: `common.css`, which lays views out, and the palette of all doors.  Out: one style sheet.  Colours are those that
JupyterLab, Notebook and VS Code set as variables; where there are none, those of the reader's system.
"""

from __future__ import annotations

from pathlib import Path

from tsrepl.render.palette import PALETTE, SURFACES

_DARK = ("body[data-jp-theme-light=false]", "body.vscode-dark", "body.vscode-high-contrast", "html[theme=dark] body")
_LIGHT = ("body[data-jp-theme-light=true]", "body.vscode-light", "html[theme=light] body")
_HOSTS = {
    "page": "var(--jp-layout-color0,var(--vscode-editor-background,var(--colab-primary-surface-color,{})))",
    "panel": "var(--jp-layout-color1,var(--vscode-sideBar-background,var(--colab-secondary-surface-color,{})))",
    "text": "var(--jp-content-font-color1,var(--vscode-editor-foreground,var(--colab-primary-text-color,{})))",
    "line": "var(--jp-border-color2,var(--vscode-panel-border,var(--colab-border-color,{})))",
    "accent": "var(--jp-brand-color1,var(--vscode-focusBorder,{}))",
}
"""Variables of notebooks that stand for a colour of ours, with ours behind them."""


def styles() -> str:
    """The style sheet of all views."""
    themes = [
        f".tsw{{{_variables('light')}}}",
        f"@media (prefers-color-scheme:dark){{.tsw{{{_variables('dark')}}}}}",
        *(f"{page} .tsw{{{_variables('light')}}}" for page in _LIGHT),
        *(f"{page} .tsw{{{_variables('dark')}}}" for page in _DARK),
    ]
    roles = [f".tsw .r-{role}{{color:var(--ts-{role})}}" for role in PALETTE if role != "plain"]
    layout = Path(__file__).with_name("common.css").read_text(encoding="utf-8")
    return "\n".join([*themes, *roles, layout])


def _variables(theme: str) -> str:
    roles = {role: getattr(colour, theme) for role, colour in PALETTE.items() if role != "plain"}
    surfaces = {name: _HOSTS.get(name, "{}").format(pair[theme == "dark"]) for name, pair in SURFACES.items()}
    return "".join(f"--ts-{name}:{colour};" for name, colour in {**roles, **surfaces}.items())
