"""Search for the rewrite of a pass that changes the value of an expression.

In: an expression, and names of passes after it.  Out: a `TextReply`.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.passes.pipeline import ALIASES, OPTIMIZE, PIPELINES, names
from engine.torch.bisection import bisect as find_culprit
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace


def bisect(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%bisect expression [pass ...]`."""
    words, chosen = argument.split(" "), list[str]()
    known = {*names(), *ALIASES, *PIPELINES}
    while len(words) > 1 and words[-1] in known:
        chosen.insert(0, words.pop())
    pipeline = [name for word in chosen for name in PIPELINES.get(word, (word,))] or list(OPTIMIZE)
    function, arguments = workspace.compile_expression(" ".join(words))
    culprit = find_culprit(function, arguments, pipeline=pipeline)
    if culprit is None:
        yield TextReply(f"no rewrite of {len(pipeline)} passes changes the result", "done")
    else:
        yield TextReply(str(culprit).rstrip(), "warning")
