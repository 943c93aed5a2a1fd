"""Plain lines for pipes: the same as a terminal without colours shows, without what draws on terminals."""

import subprocess
import sys

import pytest

from tsrepl.render.plain import to_text
from tsrepl.render.terminal import to_text as drawn
from tsrepl.session.replies import Reply, TextReply, ValueReply


def test_every_reply_is_the_same_as_drawn(name: str, reply: Reply) -> None:
    assert to_text(reply) == drawn(reply)


@pytest.mark.parametrize(
    "text", ["", " ", "a  \n\nb", "tab\there", "bell\x07", "line\u2028separator", "日本語", "x" * 25_000]
)
def test_so_are_characters_that_terminals_treat_otherwise(text: str) -> None:
    for reply in (ValueReply(text, "str", ""), TextReply(text)):
        assert to_text(reply) == drawn(reply)


def test_lines_need_no_rich() -> None:
    program = "import sys; from tsrepl.cli import main; main(['-c', 'torch.ones(2)']); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "tensor([1., 1.])\nfloat32 (2,)\nFalse\n"
