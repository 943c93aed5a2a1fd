"""Nodes of results in native code: what `autograd.specialised_recording` does, for the result of a stub.

In: the function of a stub under construction, and a `History`.  Out: guards for calls that record so, and the node,
which its result gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.stubs.binding import History, Kept
from engine.fuser.stubs.python_objects import Objects, Value, pointer_type, whole
from engine.lang.records import dataclass

_EMPTY = ("_edges", "tensor_hooks", "retained", "hooks", "prehooks")
"""Slots of a new node that hold None."""


def guard(o: Objects, history: History, tensors: Mapping[str, Value], need: Callable[[Value], None]) -> None:
    """Go on with calls that record so: each tensor requires grad or does not, and the quick recording is in force."""
    hooks = o.object("HOOKS")
    for name, tensor in tensors.items():
        need(o.same(o.slot(tensor, "_requires_grad"), o.object(str(name in history.recording))))
    need(o.same(o.slot(hooks, "rebased"), o.object("zero")))
    need(o.same(o.slot(hooks, "grad"), o.slot(hooks, "recorded")))
    need(o.is_recording())
    for name in history.sources:
        need(_is_source(o, tensors[name]))


def _is_source(o: Objects, tensor: Value) -> Value:
    """True if its gradient goes to the first input of its node, or to itself: it shows no memory written since."""
    return o.helper("py.is_source", ir().IntType(1), [tensor], _write_is_source)


def _write_is_source(o: Objects) -> None:
    (tensor,) = o.function.args
    view, other, no = o.block("view"), o.block("other"), o.block("no")
    o.need(o.same(o.slot(tensor, "output_nr"), o.object("zero")), no)
    o.b.cbranch(o.same(o.slot(tensor, "_base"), o.object("None")), other, view)
    o.b.position_at_end(view)
    storage = o.slot(tensor, "_storage")
    o.need(o.differ(storage, o.object("None")), no)
    o.b.ret(o.same(o.slot(tensor, "_seen"), o.slot(storage, "version")))
    o.b.position_at_end(other)
    o.b.ret(whole(1, 1))
    o.b.position_at_end(no)
    o.b.ret(whole(0, 1))


@dataclass(frozen=True, slots=True)
class NodeWriter:
    """The maker of a node, of the tensors and objects that the stub has.

    `held`: the tuple that the stub holds, with the plan and the constants from `first` on.  `made` goes on where an
    object could be made, else drops the node.
    """

    o: Objects
    history: History
    result: Value
    tensors: Mapping[str, Value]
    given: Mapping[str, Value]
    held: Value
    first: int
    made: Callable[[Value], Value]

    def new(self) -> Value:
        """A node without anything."""
        return self.made(self.o.call("PyType_GenericAlloc", self.o.object("OperatorNode"), whole(0)))

    def fill(self, node: Value) -> None:
        """Give the node what it needs."""
        o, history = self.o, self.history
        for name in _EMPTY:
            o.put(node, name, o.retain(o.object("None")))
        o.put(node, "plan", o.retain(self._held(0)))
        o.put(node, "sequence", self.made(o.call("PyIter_Next", o.object("numbers"))))
        sources = [self._source(self.tensors[name]) for name in history.sources]
        self._put_row(node, "sources", [lambda source=source: o.retain(source) for source in sources])  # type: ignore[misc]
        self._put_row(node, "kept", [lambda each=each: self._kept(each) for each in history.kept])  # type: ignore[misc]
        self._put_row(node, "outputs", [lambda: self._form(self.result)])

    def attach(self, node: Value) -> None:
        """Give the result its node, with the reference to it."""
        o = self.o
        for name, value in (("_grad_fn", node), ("_requires_grad", o.retain(o.object("True")))):
            before = o.slot(self.result, name)
            o.put(self.result, name, value)
            o.release(before)

    def _held(self, place: int) -> Value:
        return self.o.call("PyTuple_GetItem", self.held, whole(self.first + place))

    def _source(self, tensor: Value) -> Value:
        node = self.o.slot(tensor, "_grad_fn")
        return self.o.b.select(self.o.same(node, self.o.object("None")), tensor, node)

    def _put_row(self, node: Value, slot: str, items: Sequence[Callable[[], Value]]) -> None:
        row = self.made(self.o.call("PyTuple_New", whole(len(items))))
        self.o.put(node, slot, row)
        for i, item in enumerate(items):
            self.o.call("PyTuple_SetItem", row, whole(i), item())

    def _kept(self, kept: Kept) -> Value:
        """The kept object, with a reference."""
        if kept.kind == "constant":
            names = [each.name for each in self.history.kept if each.kind == "constant"]
            return self.o.retain(self._held(1 + names.index(kept.name)))
        if kept.kind == "given":
            return self.o.retain(self.given[kept.name])
        tensor = self.tensors.get(kept.name, self.result)
        if kept.kind == "form":
            return self._form(tensor)
        return self._saved_result() if tensor is self.result else self._saved(tensor)

    def _form(self, tensor: Value) -> Value:
        """A tuple of the shape and the dtype."""
        o, array = self.o, self.o.slot(tensor, "array")
        sizes = self.made(o.call("PyObject_GetAttr", array, o.object("shape")))
        form = self.made(o.call("PyTuple_New", whole(2)))
        o.call("PyTuple_SetItem", form, whole(0), sizes)
        o.call("PyTuple_SetItem", form, whole(1), o.retain(o.field(array, abi.DTYPE)))
        return form

    def _saved(self, tensor: Value) -> Value:
        """`Saved(tensor)`."""
        o = self.o
        saved = self.made(o.call("PyType_GenericAlloc", o.object("Saved"), whole(0)))
        storage = o.slot(tensor, "_storage")
        start, some, done = o.b.block, o.block("some"), o.block("done")
        o.b.cbranch(o.same(storage, o.object("None")), done, some)
        o.b.position_at_end(some)
        found = o.slot(storage, "version")
        o.b.branch(done)
        o.b.position_at_end(done)
        version = o.b.phi(pointer_type())
        version.add_incoming(o.object("zero"), start)
        version.add_incoming(found, some)
        o.put(saved, "saved.held", o.retain(tensor))
        o.put(saved, "saved.version", o.retain(version))
        o.put(saved, "saved.output", o.retain(o.object("minus_one")))
        return saved

    def _saved_result(self) -> Value:
        """`Saved(result, 0)`, of a result that is new: nobody has written to its memory."""
        o, array = self.o, self.o.slot(self.result, "array")
        saved = self.made(o.call("PyType_GenericAlloc", o.object("Saved"), whole(0)))
        storage, zero = self.made(o.memory(self.result)), o.object("zero")
        for name, value in (("held", array), ("storage", storage), ("version", zero), ("output", zero)):
            o.put(saved, f"saved.{name}", o.retain(value))
        return saved
