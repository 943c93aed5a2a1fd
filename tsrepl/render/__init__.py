"""Replies made visible: `to_rich(reply, width)`, `to_text` for terminals, `to_html(reply)`, `to_page` for pages."""

from tsrepl.render.html import stylesheet, to_html, to_markup, to_page
from tsrepl.render.terminal import to_rich, to_text

__all__ = ["stylesheet", "to_html", "to_markup", "to_page", "to_rich", "to_text"]
