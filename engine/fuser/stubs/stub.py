"""Stubs: kernels as builtin functions of Python.

In: `Binding`s.  Out: a `Stub` of each (`stub_of`); of several, one builtin that runs the first kernel whose guard holds
for its arguments, else calls the fallback with them (`bound_stubs.bind`).  A stub and its kernel are one module, so
that LLVM puts small kernels into their stubs.

Note [What a stub does]
It looks at the arguments: how many, none of them by name, their types, what the binding says of them, guards.  Where
something does not hold, nothing has happened yet, and the fallback is called.  It makes the results and calls the
kernel.  Where that returns another code than 0, what was made is dropped, and `on_error(code, *args)` is called, or the
fallback; `on_error(code, address, *args)` where the kernel tells more (`Told`).  But an error of Python that the kernel
left set is the stub's.

Note [Recording]
A tensor that records, in a thread that records, is left to the fallback.  A view may record without saying so, after
its base was written to (`HOOKS.rebased`), so views are taken to record once that happened.

Note [Working without the interpreter lock]
Kernels with more work than `RELEASE_AFTER` let other threads of Python run meanwhile.  Those could give a tensor
another array, so the stub counts a reference to each array until the kernel has ended.  Interrupts stop such kernels
between two pieces of work (`backend/threads.py`); what was being written in place is written in part then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.backend import llvm_numbers, machine, to_llvm
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.backend.symbols import LIBRARY, WATCH
from engine.fuser.backend.to_llvm import Emitter
from engine.fuser.ir.kernel import BOOL, FLOATS, SIZES, Buffer, Constant
from engine.fuser.stubs import bound_stubs
from engine.fuser.stubs.binding import (
    RELEASE_AFTER,
    Binding,
    NoneArgument,
    NumberArgument,
    NumberResult,
    ObjectArgument,
    ObjectResult,
    Result,
    TensorArgument,
)
from engine.fuser.stubs.bound_stubs import Function, Stub, symbol_of
from engine.fuser.stubs.process import process
from engine.fuser.stubs.python_objects import Objects, Value, null, pointer_type, whole
from engine.fuser.stubs.unnamed import told_by, unnamed
from engine.lang.records import dataclass

AnyResult = Result | NumberResult | ObjectResult


def bind(name: str, bindings: Sequence[Binding], fallback: Function, *, on_error: Function | None = None) -> Function:
    """A builtin that runs the first kernel whose guard holds, else `fallback(*args)`; the fallback for no binding.

    Raises AbiError or MachineError where there are no stubs to be had.
    """
    return bound_stubs.bind(name, [*map(stub_of, bindings)], fallback, on_error=on_error)


def stub_of(binding: Binding) -> Stub:
    """The binding's stub, compiled once.  Raises AbiError or MachineError."""
    if not binding.stub:
        name, compiled = _name(binding), unnamed(binding)
        text = f"stub {told_by(compiled)} {name} {process().layout}"
        program = machine.Program(text, lambda: module(compiled), (name,))
        code = machine.loaded(program)
        binding.stub.append(Stub(binding.kernel.name, machine.key_of(program), code, code.addresses[name]))
    return binding.stub[0]


def module(binding: Binding) -> Any:
    """An `llvmlite.ir` module with the kernel and `ptr STUB(ptr held, ptr args, i64 n, ptr names)`; raises AbiError.

    `held` is the tuple of the fallback, `on_error`, or None, and the code, which is there as long as the builtin is.
    """
    made = to_llvm.module([binding.kernel], ahead=LIBRARY.find)
    kernel = made.globals[binding.kernel.name]
    kernel.linkage = "internal"
    pointer = pointer_type()
    signature = ir().FunctionType(pointer, [pointer, pointer, ir().IntType(64), pointer])
    computing = {*made.globals}
    function = ir().Function(made, signature, _name(binding))
    o = Objects.into(function, process())
    miss = o.block("miss")
    e = Emitter(function, o.b, miss, None, any_order=False)
    _Stub(binding, o, e, miss, kernel).write()
    for each in made.functions:
        if each.blocks and each.name not in computing and "alwaysinline" not in each.attributes:
            to_llvm.as_it_is(each)
    return made


def _name(binding: Binding) -> str:
    """The name of the stub in its module."""
    return symbol_of(binding.kernel.name)


@dataclass(slots=True)
class _View:
    """A tensor argument: the array, and the sizes and strides (in bytes) of its dimensions."""

    argument: TensorArgument
    tensor: Value
    array: Value
    sizes: list[Value]
    strides: list[Value]

    @property
    def itemsize(self) -> int:
        return SIZES[self.argument.type]


@dataclass(slots=True)
class _Stub:
    """A stub under construction.  `data`: addresses of elements by the names of buffers."""

    binding: Binding
    o: Objects
    e: Emitter
    miss: Any
    kernel: Any
    data: dict[str, Value] = field(default_factory=dict)
    made: list[Value] = field(default_factory=list)
    """New tensors, to be dropped where something fails."""

    def write(self) -> None:
        arguments = self.binding.arguments
        given = self.given()
        views = [self.view(each, given[each.name]) for each in arguments if isinstance(each, TensorArgument)]
        for each in arguments:
            if isinstance(each, NumberArgument):
                self.e.names[each.name] = _READERS[each.type](self, given[each.name])
            elif isinstance(each, ObjectArgument):
                self.e.names[each.name] = self.address(given[each.name], each.type)
            elif isinstance(each, NoneArgument):
                self.need(self.o.same(given[each.name], self.o.object("None")))
        self.need_unrecorded(views)
        self.look_closer()
        results = self.results()
        self.check(self.run(views), given)
        self.answer(results)
        self.otherwise()

    def given(self) -> dict[str, Value]:
        """The arguments, of which there are as many as there have to be, none by name."""
        _, args, count, names = self.e.function.args
        arguments, o = self.binding.arguments, self.o
        self.need(o.same(names, null()))
        self.need(o.same(count, whole(len(arguments))))
        return {each.name: o.field(args, 8 * i) for i, each in enumerate(arguments)}

    def need(self, condition: Value) -> None:
        """Go on where it holds, else drop what was made and call the fallback."""
        self.o.need(condition, self.dropping(self.miss) if self.made else self.miss)

    def dropping(self, then: Any) -> Any:
        """A block that drops the new tensors and goes on there."""
        block, here = self.o.block("drop"), self.o.b.block
        self.o.b.position_at_end(block)
        for tensor in self.made:
            self.o.release(tensor)
        self.o.b.branch(then)
        self.o.b.position_at_end(here)
        return block

    # -- arguments

    def view(self, argument: TensorArgument, tensor: Value) -> _View:
        """The array of an argument, which has the type and layout that the binding says."""
        o = self.o
        kind = o.type_of(tensor)
        self.need(o.b.or_(o.same(kind, o.object("Tensor")), o.same(kind, o.object("Parameter"))))
        array = o.slot(tensor, "array")
        self.need(o.differ(array, null()))
        self.need(o.same(o.type_of(array), o.object("ndarray")))
        self.need(o.same(o.field(array, abi.DTYPE), o.object(f"dtype.{argument.type}")))
        half = ir().IntType(32)
        rank, dimensions = o.field(array, abi.NDIM, half), o.field(array, abi.DIMENSIONS)
        self.need(o.same(rank, whole(argument.rank, 32)))
        flags = abi.ALIGNED if argument.layout == "strided" else abi.PLAIN
        self.need(o.same(o.b.and_(o.field(array, abi.ARRAY_FLAGS, half), whole(flags, 32)), whole(flags, 32)))
        strides, axes = o.field(array, abi.STRIDES), range(argument.rank)
        sizes = [o.item(dimensions, i) for i in axes]
        view = _View(argument, tensor, array, sizes, [o.item(strides, i) for i in axes])
        self.data[argument.name] = o.field(array, abi.DATA)
        self.name(view)
        return view

    def name(self, view: _View) -> None:
        """Give the sizes and strides their names; the strides of strided arguments are multiples of the element."""
        o, shift = self.o, whole(view.itemsize.bit_length() - 1)
        for i, (size, stride) in enumerate(zip(view.sizes, view.strides, strict=True)):
            if view.argument.layout == "strided" and view.itemsize > 1:
                self.need(o.same(o.b.and_(stride, whole(view.itemsize - 1)), whole(0)))
            self.e.names[f"{view.argument.name}_size_{i}"] = size
            self.e.names[f"{view.argument.name}_stride_{i}"] = o.b.ashr(stride, shift)

    def float(self, value: Value) -> Value:
        self.need(self.o.same(self.o.type_of(value), self.o.object("float")))
        return self.o.field(value, abi.FLOAT_VALUE, ir().DoubleType())

    def whole(self, value: Value) -> Value:
        self.need(self.o.same(self.o.type_of(value), self.o.object("int")))
        number, fits = self.o.long(value)
        self.need(fits)
        return number

    def bool(self, value: Value) -> Value:
        is_true = self.o.same(value, self.o.object("True"))
        self.need(self.o.b.or_(is_true, self.o.same(value, self.o.object("False"))))
        return is_true

    def address(self, value: Value, type: str) -> Value:
        self.need(self.o.same(self.o.type_of(value), self.o.object(type)))
        return self.o.b.ptrtoint(value, ir().IntType(64))

    # -- guards

    def need_unrecorded(self, views: Sequence[_View]) -> None:
        """See Note [Recording]."""
        if not views:
            return
        o = self.o
        no_history = o.same(o.slot(o.object("HOOKS"), "rebased"), o.object("zero"))
        plain: Value = whole(1, 1)
        for view in views:
            quiet = o.b.or_(o.same(o.slot(view.tensor, "_base"), o.object("None")), no_history)
            is_off = o.same(o.slot(view.tensor, "_requires_grad"), o.object("False"))
            plain = o.b.and_(plain, o.b.and_(is_off, quiet))
        ask, go = o.block("ask"), o.block("go")
        o.b.cbranch(plain, go, ask)
        o.b.position_at_end(ask)
        o.b.cbranch(o.is_recording(), self.miss, go)
        o.b.position_at_end(go)

    def look_closer(self) -> None:
        """The binding's guards; then its lets."""
        for guard in self.binding.guards:
            self.need(self.e.value(guard))
        for let in self.binding.lets:
            self.e.names[let.name] = self.e.value(let.value)

    # -- results

    def results(self) -> list[tuple[AnyResult, Value]]:
        """The new tensors, and room for numbers and addresses."""
        told = self.binding.told
        if told is not None:
            self.data[told.name] = self.e.slot(ir().ArrayType(ir().IntType(64), told.words))
        return [(each, self.result(each)) for each in self.binding.results]

    def result(self, result: AnyResult) -> Value:
        if not isinstance(result, Result):
            type = result.type if isinstance(result, NumberResult) else "i64"
            self.data[result.name] = room = self.e.slot(llvm_numbers.stored_type(type))
            return room
        o, dimensions = self.o, self.words([self.e.value(extent) for extent in result.shape])
        strides = null() if result.order is None else self.words(self.strides(result))
        tensor = o.new_tensor(result.type, dimensions, whole(len(result.shape), 32), strides)
        self.need(o.differ(tensor, null()))
        self.made.append(tensor)
        self.data[result.name] = o.field(o.slot(tensor, "array"), abi.DATA)
        return tensor

    def words(self, values: Sequence[Value]) -> Value:
        """The address of these numbers of 64 bits."""
        words = self.e.slot(ir().ArrayType(ir().IntType(64), max(len(values), 1)))
        for i, value in enumerate(values):
            self.o.b.store(value, self.o.place(words, 8 * i))
        return words

    def strides(self, result: Result) -> list[Value]:
        """The strides, in bytes, of a result in its order in memory."""
        found, step = [self.e.value(extent) for extent in result.shape], whole(SIZES[result.type])
        for d in reversed(result.order or ()):
            found[d], step = step, self.o.b.mul(step, found[d])
        return found

    # -- the kernel

    def run(self, views: Sequence[_View]) -> Value:
        """The code that the kernel returns.  See Note [Working without the interpreter lock]."""
        b, work = self.o.b, self.binding.work
        given = [self.operand(each) for each in self.binding.kernel.parameters]
        if work is None or (isinstance(work, Constant) and work.value <= RELEASE_AFTER):
            return b.call(self.kernel, given)
        limit = llvm_numbers.constant(RELEASE_AFTER, work.type)
        compare = b.fcmp_ordered if work.type in FLOATS else b.icmp_signed
        much, little, done = map(self.o.block, ("much", "little", "done"))
        b.cbranch(compare(">", self.e.value(work), limit), much, little)
        b.position_at_end(much)
        long = self.run_unlocked(views, given)
        b.branch(done)
        b.position_at_end(little)
        short = b.call(self.kernel, given)
        b.branch(done)
        b.position_at_end(done)
        code = b.phi(ir().IntType(64))
        code.add_incoming(long, much)
        code.add_incoming(short, little)
        return code

    def run_unlocked(self, views: Sequence[_View], given: Sequence[Value]) -> Value:
        arrays = [self.o.retain(view.array) for view in views]
        self.o.call(WATCH, whole(1))
        state = self.o.call("PyEval_SaveThread")
        code = self.o.b.call(self.kernel, given)
        self.o.call("PyEval_RestoreThread", state)
        self.o.call(WATCH, whole(-1))
        for array in arrays:
            self.o.release(array)
        return code

    def operand(self, parameter: Any) -> Value:
        if isinstance(parameter, Buffer):
            return self.data[parameter.name]
        value = self.e.names[parameter.name]
        return self.o.b.zext(value, ir().IntType(8)) if parameter.type == BOOL else value

    # -- the end

    def check(self, code: Value, given: dict[str, Value]) -> None:
        """Go on for 0; see Note [What a stub does]."""
        o, go, failed = self.o, self.o.block("go"), self.o.block("failed")
        o.b.cbranch(o.same(code, whole(0)), go, self.dropping(failed))
        o.b.position_at_end(failed)
        o.need(o.same(o.call("PyErr_Occurred"), null()), self.giving_up())
        held, *_ = self.e.function.args
        on_error = o.call("PyTuple_GetItem", held, whole(1))
        o.need(o.differ(on_error, o.object("None")), self.miss)
        told = self.binding.told
        numbers = [code] if told is None else [code, o.b.ptrtoint(self.data[told.name], ir().IntType(64))]
        first = [o.call("PyLong_FromLongLong", each) for each in numbers]
        for each in first:
            o.need(o.differ(each, null()), self.giving_up())
        operands = [*first, *given.values()]
        passed = self.e.slot(ir().ArrayType(pointer_type(), len(operands)))
        for i, each in enumerate(operands):
            o.b.store(each, o.place(passed, 8 * i))
        answer = o.call("PyObject_Vectorcall", on_error, passed, whole(len(operands)), null())
        for each in first:
            o.release(each)
        o.b.ret(answer)
        o.b.position_at_end(go)

    def there(self, value: Value) -> Value:
        """The object, if it could be made; else the error is the stub's."""
        self.o.need(self.o.differ(value, null()), self.dropping(self.giving_up()))
        return value

    def giving_up(self) -> Any:
        """A block that returns the error that is set."""
        block, here = self.o.block("give_up"), self.o.b.block
        self.o.b.position_at_end(block)
        self.o.b.ret(null())
        self.o.b.position_at_end(here)
        return block

    def answer(self, results: Sequence[tuple[AnyResult, Value]]) -> None:
        """Return the results: itself, several as a tuple, None for none."""
        o = self.o
        values = [self.returned(result, value) for result, value in results]
        if len(values) == 1:
            o.b.ret(values[0])
            return
        if not values:
            o.b.ret(o.retain(o.object("None")))
            return
        answer = self.there(o.call("PyTuple_New", whole(len(values))))
        for i, value in enumerate(values):
            o.call("PyTuple_SetItem", answer, whole(i), value)
        o.b.ret(answer)

    def returned(self, result: AnyResult, value: Value) -> Value:
        """The result with a reference of its own, which is dropped where a later one fails."""
        o = self.o
        if isinstance(result, Result):
            return value
        if isinstance(result, ObjectResult):
            made = o.field(value, 0)
            self.made.append(made)
            return made
        number = self.number(result, value)
        self.made.append(self.there(number))
        return number

    def number(self, result: NumberResult, room: Value) -> Value:
        o, type = self.o, result.type
        found = self.e.loaded(o.b.load(room, typ=llvm_numbers.stored_type(type)), type)
        if type == BOOL:
            return o.retain(o.b.select(found, o.object("True"), o.object("False")))
        if type in FLOATS:
            return o.call("PyFloat_FromDouble", llvm_numbers.converted(self.e, found, type, "f64"))
        return o.call("PyLong_FromLongLong", llvm_numbers.converted(self.e, found, type, "i64"))

    def otherwise(self) -> None:
        """Return the result or error of the fallback."""
        o = self.o
        held, args, count, names = o.function.args
        o.b.position_at_end(self.miss)
        fallback = o.call("PyTuple_GetItem", held, whole(0))
        o.b.ret(o.call("PyObject_Vectorcall", fallback, args, count, names))


_READERS: Final = {"f64": _Stub.float, "i64": _Stub.whole, BOOL: _Stub.bool}
