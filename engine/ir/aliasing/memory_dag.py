"""Which memory a value may be: a graph of "may be the same as" and "may hold".

In: elements, one for each value or set of values, and two kinds of arrows between them.  Out: for each
element the memory locations it may be (and hold), as an int with a bit for each location, so that "may alias" is
one `&`.  A location is an element without arrows to others: whatever made it gave it memory of its own.

    y points to x          y = x.view(..): whatever x is, y may be
    l contains x           l = [x]: y = l[0] may be x

Arrows may go round in circles (what a loop carries); elements of a circle are the same memory.  Answers are found for
everything an element reaches at once, each element looked at once, and are kept until an arrow is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from engine.lang.records import dataclass


@dataclass(eq=False, slots=True)
class Element:
    """Something in memory."""

    index: int
    points_to: dict[int, None] = field(default_factory=dict)
    contains: dict[int, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class MemoryDag:
    """Elements and their arrows.  The bit that stands for a location stays the same."""

    elements: list[Element] = field(default_factory=list)
    _bits: dict[int, int] = field(default_factory=dict)
    """Index of a location -> its bit, by the order in which they were asked for: masks stay short."""
    _at_bits: list[int] = field(default_factory=list)
    _locations: dict[int, int] = field(default_factory=dict)
    _contained: dict[int, int] = field(default_factory=dict)

    def fresh(self) -> Element:
        """A new element that is nothing else."""
        element = Element(len(self.elements))
        self.elements.append(element)
        return element

    def point(self, element: Element, to: Element) -> None:
        """`element` may be whatever `to` is."""
        if element is not to and to.index not in element.points_to:
            element.points_to[to.index] = None
            self._forget_answers()

    def contain(self, container: Element, held: Element) -> None:
        """`container` may hold `held`."""
        if held.index not in container.contains:
            container.contains[held.index] = None
            self._forget_answers()

    def locations(self, element: Element) -> int:
        """The memory that the element may be."""
        found = self._locations.get(element.index)
        if found is None:
            _solve(element.index, self._pointed_to, self._bit, self._locations)
            found = self._locations[element.index]
        return found

    def contained_locations(self, element: Element) -> int:
        """The memory that the element may be or hold, at any depth."""
        found = self._contained.get(element.index)
        if found is None:
            _solve(element.index, self._reached, self._own_location, self._contained)
            found = self._contained[element.index]
        return found

    def element_at(self, bit: int) -> Element:
        """The location that the bit stands for."""
        return self.elements[self._at_bits[bit]]

    def _forget_answers(self) -> None:
        if self._locations or self._contained:
            self._locations.clear()
            self._contained.clear()

    def _pointed_to(self, index: int) -> Iterable[int]:
        return self.elements[index].points_to

    def _reached(self, index: int) -> Iterable[int]:
        element = self.elements[index]
        return (*element.points_to, *element.contains) if element.contains else element.points_to

    def _bit(self, circle: list[int], onward: int) -> int:
        """Locations added by a cycle of elements that reaches `onward`: a cycle with no way out is one itself."""
        if onward:
            return 0
        index = min(circle)
        at = self._bits.get(index)
        if at is None:
            at = self._bits[index] = len(self._at_bits)
            self._at_bits.append(index)
        return 1 << at

    def _own_location(self, circle: list[int], onward: int) -> int:
        """Where containers hold each other the circle is all that its elements may be."""
        mask = 0
        for index in circle:
            mask |= self.locations(self.elements[index])
        return mask


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


_Arrows = Callable[[int], Iterable[int]]


def _solve(start: int, arrows: _Arrows, own: Callable[[list[int], int], int], answers: dict[int, int]) -> None:
    """Give `start` and all that it reaches an answer: the `|` of what its arrows lead to, and its `own` part.

    Elements that reach each other get one answer.  (Tarjan's algorithm, without recursion.)
    """
    order: dict[int, int] = {start: 0}
    lowest: dict[int, int] = {start: 0}
    waiting, path = [start], [(start, iter(arrows(start)))]
    while path:
        index, rest = path[-1]
        following = next((to for to in rest if to not in answers), None)
        if following is not None and following not in order:
            order[following] = lowest[following] = len(order)
            waiting.append(following)
            path.append((following, iter(arrows(following))))
        elif following is not None:
            lowest[index] = min(lowest[index], order[following])
        else:
            path.pop()
            if path:
                lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[index])
            if lowest[index] == order[index]:
                _close(waiting, index, arrows, own, answers)


def _close(
    waiting: list[int], first: int, arrows: _Arrows, own: Callable[[list[int], int], int], answers: dict[int, int]
) -> None:
    """`first` and what waits behind it reach each other and nothing else without an answer."""
    at = len(waiting) - 1
    while waiting[at] != first:
        at -= 1
    circle = waiting[at:]
    del waiting[at:]
    onward = 0
    for index in circle:
        for to in arrows(index):
            onward |= answers.get(to, 0)
    mask = onward | own(circle, onward)
    answers.update(dict.fromkeys(circle, mask))
