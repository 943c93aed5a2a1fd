"""Replies made visible: `terminal.to_rich(reply, width)` and `to_text`, `html.to_html(reply)` and `to_page` for pages.

What one door needs, the others do not load.
"""
