"""Completions at the prompt.

In: what the session says could stand at the cursor.  Out: prompt_toolkit completions, each with its kind beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tsrepl.session.replies import Candidate


class EntryCompleter(Completer):
    """Asks `candidates(text before the cursor)`; the session may still be loading when it is made."""

    def __init__(self, candidates: Callable[[str], list[Candidate]]) -> None:
        self._candidates = candidates

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        for candidate in self._candidates(document.text_before_cursor):
            yield Completion(candidate.text, -candidate.replaces, display=candidate.shown, display_meta=candidate.kind)
