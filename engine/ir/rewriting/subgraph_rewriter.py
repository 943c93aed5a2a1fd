"""Replaces what looks like one graph by another.

In: pairs of patterns and replacements.  Out: graphs, changed.

    graph(%a, %b):                         graph(%a, %b):
      %c = aten::mul(%a, %b)                 %d = my::mul_relu(%a, %b)
      %d = aten::relu(%c)           →        return (%d)
      return (%d)

Whatever stands for the pattern's nodes is computed at one place then, so a match is left alone where a write in
between would be on the wrong side of it.  Of matches that overlap the first is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import inline_graph
from engine.ir.graph import Graph, Node, Value
from engine.ir.parser import parse_ir
from engine.ir.rewrites import allowed
from engine.ir.rewriting.subgraph_match import Match, check_pattern, is_module_access, match_at
from engine.lang.errors import IRError, did_you_mean

Filter = Callable[[Match, Mapping[str, Value]], bool]
"""May the match be replaced?  It is told which value of the graph each name in the pattern stands for."""


class _Rule(NamedTuple):
    """A pattern and its replacement; of each pair the first value, of `new`, gets the source of the second."""

    wanted: Graph
    new: Graph
    places: list[tuple[Value, Value]]


class SubgraphRewriter:
    """Rewrites graphs by patterns, in the order in which they are registered."""

    def __init__(self) -> None:
        self._patterns: list[_Rule] = []

    def register_rewrite_pattern(
        self, pattern: str, replacement: str, value_name_pairs: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Each pair names a value of the replacement and one of the pattern, whose place in the source it gets.

        Raises IRError where a text is no graph, the pattern cannot be one, the two do not take and give alike, or a
        pair names what they do not have.
        """
        wanted, new = parse_ir(pattern), parse_ir(replacement)
        check_pattern(wanted)
        if len(wanted.inputs) != len(new.inputs) or len(wanted.outputs) != len(new.outputs):
            raise IRError("a pattern and its replacement take as many values as each other, and give as many")
        mine, theirs = _values_by_name(new), _values_by_name(wanted)
        places = [
            (_named(name, mine, "replacement"), _named(other, theirs, "pattern")) for name, other in value_name_pairs
        ]
        self._patterns.append(_Rule(wanted, new, places))

    def run_on_graph(self, graph: Graph, filters: Sequence[Filter] = ()) -> bool:
        """Replace every match that passes all filters; True if there was one."""
        changed = [self._rewrite(graph, rule, filters) for rule in self._patterns]
        return any(changed)

    def _rewrite(self, graph: Graph, rule: _Rule, filters: Sequence[Filter]) -> bool:
        wanted, new = rule.wanted, rule.new
        changed, db = False, AliasDb(graph)
        for node in list(graph.all_nodes()):
            match = match_at(wanted, node) if node.block is not None else None
            if match is None or not all(accepts(match, _by_name(match)) for accepts in filters):
                continue
            place = next((place for place in _places(wanted, match) if _is_safe(db, match, place)), None)
            if place is not None and allowed(node, lambda: str(new)):
                _replace(rule, match, place)
                changed, db = True, AliasDb(graph)
        return changed


def custom_pattern_based_rewrite_graph(
    pattern: str, replacement: str, graph: Graph, value_name_pairs: Iterable[tuple[str, str]] = ()
) -> bool:
    """Replace every match of the pattern; was there one?  Raises IRError."""
    rewriter = SubgraphRewriter()
    rewriter.register_rewrite_pattern(pattern, replacement, value_name_pairs)
    return rewriter.run_on_graph(graph)


def _values_by_name(graph: Graph) -> dict[str, Value]:
    return {value.debug_name: value for node in graph.nodes() for value in node.outputs}


def _named(name: str, known: Mapping[str, Value], words: str) -> Value:
    if name not in known:
        raise IRError(f"the {words} makes no value %{name}", hints=did_you_mean(name, known))
    return known[name]


def _by_name(match: Match) -> dict[str, Value]:
    return {value.debug_name: found for value, found in match.values.items()}


def _places(wanted: Graph, match: Match) -> Iterator[Node]:
    """Where the replacement may stand: before these nodes, as early as its inputs are there, or at the end."""
    block = match.anchor.block
    first = min(match.nodes.values(), key=lambda node: node._position)
    taken = [match.values[value].node for value in wanted.inputs if value in match.values]
    later = [node for node in taken if node.block is block and node.is_after(first)]
    behind = max(later, key=lambda node: node._position).next if later else first
    if behind is not None and not behind.is_after(match.anchor):
        yield behind
    yield match.anchor


def _is_safe(db: AliasDb, match: Match, place: Node) -> bool:
    """True if all nodes of the match may run right before `place` unobserved."""
    members = set(match.nodes.values())
    for node in members:
        for other in _between(node, place):
            if other not in members and _disturbs(db, node, other):
                return False
    return True


def _between(node: Node, place: Node) -> Iterator[Node]:
    """The nodes that it would pass on its way to right before `place`."""
    forward = node.is_before(place)
    at = node.next if forward else place
    end = place if forward else node
    while at is not None and at is not end:
        yield at
        at = at.next


def _disturbs(db: AliasDb, node: Node, other: Node) -> bool:
    if is_module_access(node):  # nothing puts another module in its place
        return False
    if db.has_side_effects(node) and db.has_side_effects(other):
        return True
    if db.is_nondeterministic(node) and db.is_nondeterministic(other):
        return True
    mine, theirs = db.writes_of(node), db.writes_of(other)
    return bool(theirs & (mine | db.reads_of(node)) or mine & db.reads_of(other))


def _replace(rule: _Rule, match: Match, place: Node) -> None:
    graph, wanted, new = place.graph, rule.wanted, rule.new
    for value, source in rule.places:
        value.node.range = match.values[source].node.range
    # An input that no node of the pattern takes stands for nothing: any value does, as long as none is needed.
    given = [match.values.get(value) for value in wanted.inputs]
    unused = [inner for inner, value in zip(new.inputs, given, strict=True) if value is None]
    if any(inner.has_uses for inner in unused):
        raise IRError("the replacement uses an input that the pattern does not")
    filler = next((value for value in given if value is not None), None) or match.anchor.outputs[0]
    with graph.inserting_at(place, match.anchor.range):
        results = inline_graph(graph, new, [value or filler for value in given])
    for value, result in zip(wanted.outputs, results, strict=True):
        _take_place(match.values[value], result, set(match.values.values()))
    for node in sorted(match.nodes.values(), key=lambda node: node._position, reverse=True):
        node.destroy()


def _take_place(old: Value, new: Value, known: set[Value]) -> None:
    """Types in patterns are seldom written, so what is made anew is of the type that it had."""
    if new not in known:
        new.set_type(old.type)
    old.replace_all_uses_with(new)
