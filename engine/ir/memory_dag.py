"""Which memory a value may be: a graph of "may be the same as" and "may hold".

In: elements, one for each value or set of values, and two kinds of arrows between them.  Out: for each
element the memory locations it may be, as an int whose bits are elements without further arrows, so that
"may alias" is one `&`.

    y points to x          y = x.view(..): whatever x is, y may be
    l contains x           l = [x]: y = l[0] may be x
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Element:
    """Something in memory."""

    index: int
    points_to: dict[int, None] = field(default_factory=dict)
    contains: dict[int, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class MemoryDag:
    """Elements and their arrows.  Ask for locations only when all arrows are there: answers are kept."""

    elements: list[Element] = field(default_factory=list)
    _locations: dict[int, int] = field(default_factory=dict)
    _contained: dict[int, int] = field(default_factory=dict)

    def fresh(self) -> Element:
        """A new element that is nothing else."""
        element = Element(len(self.elements))
        self.elements.append(element)
        return element

    def point(self, element: Element, to: Element) -> None:
        """`element` may be whatever `to` is."""
        if element is not to:
            element.points_to[to.index] = None

    def contain(self, container: Element, held: Element) -> None:
        """`container` may hold `held`."""
        container.contains[held.index] = None

    def forget_answers(self) -> None:
        """After new arrows: locations are found anew."""
        self._locations.clear()
        self._contained.clear()

    def locations(self, element: Element) -> int:
        """The memory that the element may be."""
        known = self._locations.get(element.index)
        if known is None:
            known = self._locations[element.index] = self._leaves(element)
        return known

    def contained_locations(self, element: Element) -> int:
        """The memory that the element may be or hold, at any depth."""
        if element.index not in self._contained:
            # Arrows go to older elements mostly; with the answers for these, each search is short.
            for index in sorted(self._unanswered(element)):
                self._contained[index] = self._reach(self.elements[index])
        return self._contained[element.index]

    def leaves(self, element: Element) -> list[Element]:
        """The elements behind the bits of `locations`."""
        mask = self.locations(element)
        return [leaf for leaf in self.elements if mask >> leaf.index & 1]

    def _leaves(self, element: Element) -> int:
        mask, seen, stack = 0, {element.index}, [element]
        while stack:
            current = stack.pop()
            if not current.points_to:
                mask |= 1 << current.index
            for index in current.points_to:
                if index not in seen:
                    seen.add(index)
                    stack.append(self.elements[index])
        return mask or 1 << element.index

    def _reach(self, element: Element) -> int:
        mask = 0
        for index in self._unanswered(element):
            mask |= 1 << index
            for next in (*self.elements[index].points_to, *self.elements[index].contains):
                mask |= self._contained.get(next, 0)
        return mask

    def _unanswered(self, element: Element) -> set[int]:
        """The element and all that it may be or hold, as far as `_contained` does not tell already."""
        seen, stack = {element.index}, [element]
        while stack:
            current = stack.pop()
            for index in (*current.points_to, *current.contains):
                if index not in seen and index not in self._contained:
                    seen.add(index)
                    stack.append(self.elements[index])
        return seen
