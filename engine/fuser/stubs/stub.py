"""Stubs: kernels as builtin functions of Python.

In: `Binding`s.  Out: one builtin that runs the first kernel whose guard holds for its arguments, else calls the
fallback with them.  A stub and its kernel are one module, so that LLVM puts small kernels into their stubs.

Note [What a stub does]
It looks at the arguments: how many, none of them by name, their types, what the binding says of them, guards.  Where
something does not hold, nothing has happened yet, and the fallback is called.  It makes the results, advances the
versions of the memory that is written, and calls the kernel.  A kernel that returns another code than 0 has written to
no argument: what was made is dropped, and `on_error(code, *args)` is called, or the fallback; `on_error(code, address,
*args)` where the kernel tells more (`Told`).  But an error of Python that the kernel left set is the stub's.

Note [Recording]
A tensor that records, in a thread that records, is left to the fallback, except by bodies of operators: those who call
them record what they do, or have no need to; and by stubs that record themselves (`Binding.history`).  A view may
record without saying so, after its base was written to (`HOOKS.rebased`), so views are taken to record once that
happened, and views that are written at any time.

Note [Working without the interpreter lock]
Kernels with more work than `RELEASE_AFTER` let other threads of Python run meanwhile.  Those could give a tensor
another array, so the stub counts a reference to each array until the kernel has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.backend import llvm_numbers, machine, to_llvm
from engine.fuser.backend.llvm_numbers import ir
from engine.fuser.backend.to_llvm import Emitter
from engine.fuser.ir.kernel import BOOL, FLOATS, SIZES, Buffer, Constant, Expression
from engine.fuser.stubs import nodes
from engine.fuser.stubs.binding import (
    RELEASE_AFTER,
    Argument,
    Binding,
    FixedArgument,
    History,
    NumberArgument,
    NumberResult,
    ObjectArgument,
    ObjectResult,
    Result,
    TensorArgument,
    ViewResult,
)
from engine.fuser.stubs.process import process
from engine.fuser.stubs.python_objects import Objects, Value, null, pointer_type, whole
from engine.lang.records import dataclass

Function = Callable[..., Any]
AnyResult = Result | ViewResult | NumberResult | ObjectResult

Role = Literal["group", "operator", "method", "body"]
"""The thing that the stub stands for.  operator: while something steps in between operators (`HOOKS.trace`) or
machine code is off (`HOOKS.python_only`), the fallback is called.  method: the same, and arguments that are given by
name only are left out.  body: whether tensors record is not looked at."""


def bind(
    name: str,
    bindings: Sequence[Binding],
    fallback: Function,
    *,
    on_error: Function | None = None,
    role: Role = "group",
) -> Function:
    """A builtin that runs the first kernel whose guard holds, else `fallback(*args)`; the fallback for no binding.

    Raises AbiError or MachineError where there are no stubs to be had.
    """
    found = fallback
    for binding in reversed(bindings):
        doc = f"Compiled as {binding.kernel.name}."
        kept = None if role == "body" else binding.history
        history = () if kept is None else (kept.plan, *kept.constants)
        code, address = _compiled(binding, role)
        found = abi.holding_builtin(name, address, doc, (found, on_error, *history, code))
    return found


def _compiled(binding: Binding, role: Role) -> tuple[machine.Loaded, int]:
    """The binding's stub and its address, compiled once."""
    if role not in binding.stubs:
        names = {each: _name(binding, each) for each in _together(binding, role)}
        text = f"stub {binding} {' '.join(names)} {process().layout}"
        code = machine.loaded(machine.Program(text, lambda: module(binding, role), tuple(names.values())))
        binding.stubs.update((each, (code, code.addresses[name])) for each, name in names.items())
    return binding.stubs[role]


def _together(binding: Binding, role: Role) -> tuple[Role, ...]:
    """The roles of the stubs that share one kernel with this one: an operator's, and its body's where it records."""
    if role == "group" or (role == "body" and binding.history is None):
        return (role,)
    return ("operator", "method") if binding.history is None else ("operator", "method", "body")


def module(binding: Binding, role: Role = "group") -> Any:
    """An `llvmlite.ir` module with the kernel and `ptr STUB(ptr held, ptr args, i64 n, ptr names)`; raises AbiError.

    `held` is the tuple of the fallback and `on_error`, or None, then the plan and constants of a `History`, and last
    the code, which is thereby there as long as the builtin is.  The stubs for other roles are there, too (`_together`).
    """
    made = to_llvm.module([binding.kernel])
    kernel = made.globals[binding.kernel.name]
    kernel.linkage = "internal"
    pointer = pointer_type()
    signature = ir().FunctionType(pointer, [pointer, pointer, ir().IntType(64), pointer])
    functions = {each: ir().Function(made, signature, _name(binding, each)) for each in _together(binding, role)}
    for each, function in functions.items():
        o = Objects.into(function, process())
        if each == "method":
            _write_method(binding, o, functions["operator"])
            continue
        miss = o.block("miss")
        e = Emitter(function, o.b, miss, None, any_order=False)
        _Stub(replace(binding, history=None) if each == "body" else binding, o, e, miss, kernel).write(each)
    return made


def _write_method(binding: Binding, o: Objects, stub: Value) -> None:
    """A stub that leaves calls with arguments to the fallback that are to be given by name."""
    miss = o.block("miss")
    most = sum(not (isinstance(each, FixedArgument) and each.is_named) for each in binding.arguments)
    spread = _spread(binding.arguments, most)
    o.need(o.b.icmp_unsigned("<=", o.function.args[2], whole(most + (len(spread) - 1 if spread else 0))), miss)
    o.b.ret(o.b.call(stub, o.function.args))
    o.b.position_at_end(miss)
    _call_fallback(o)


def _call_fallback(o: Objects) -> None:
    """Return the result or error of the fallback."""
    held, args, count, names = o.function.args
    fallback = o.call("PyTuple_GetItem", held, whole(0))
    o.b.ret(o.call("PyObject_Vectorcall", fallback, args, count, names))


def _spread(arguments: Sequence[Argument], least: int) -> tuple[int, ...] | None:
    """The list of ints, the last argument but for those that may be missing, that calls of methods may spread."""
    last = arguments[least - 1] if least else None
    wanted = last.value if isinstance(last, FixedArgument) else None
    are_named = all(isinstance(each, FixedArgument) and each.is_named for each in arguments[least:])
    return wanted if isinstance(wanted, tuple) and len(wanted) > 1 and are_named else None


def _may_be_missing(argument: Argument) -> bool:
    return isinstance(argument, FixedArgument) and argument.may_be_missing


def _name(binding: Binding, role: Role) -> str:
    """The name of the stub in its module; that of an operator and that of a group are "stub"."""
    return f"{binding.kernel.name}.{role if role in ('method', 'body') else 'stub'}"


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
    flat: tuple[Value, Value, Value] | None = None
    """Rank, sizes and number of elements of the flat arguments."""

    def write(self, role: Role) -> None:
        arguments, history, o = self.binding.arguments, self.binding.history, self.o
        given = self.given()
        if role == "operator":
            self.need(o.same(o.slot(o.object("HOOKS"), "trace"), o.object("None")))
            self.need(o.same(o.slot(o.object("HOOKS"), "python_only"), o.object("False")))
        views = [self.view(each, given[each.name]) for each in arguments if isinstance(each, TensorArgument)]
        for each in arguments:
            if isinstance(each, NumberArgument):
                self.e.names[each.name] = _READERS[each.type](self, given[each.name])
            elif isinstance(each, ObjectArgument):
                self.e.names[each.name] = self.address(given[each.name], each.type)
            elif isinstance(each, FixedArgument) and each.name in given:
                self.need_fixed(each, given[each.name])
        tensors = {view.argument.name: view.tensor for view in views}
        if history is not None:
            nodes.guard(o, history, tensors, self.need)
        elif role != "body" and any(isinstance(each, ViewResult) for each in self.binding.results):
            self.need_without_gradient(views)
        elif role != "body":
            self.need_unrecorded(views)
        self.look_closer(views)
        results = self.results(tensors)
        for view in views:
            if view.argument.is_written:
                self.need(o.advance(view.tensor))
        self.check(self.run(views), given)
        if history is not None:
            self.record(history, results[0][1], tensors, given)
        self.answer(results)
        self.otherwise()

    def given(self) -> dict[str, Value]:
        """The arguments that no call leaves out or spreads, after a look at the others."""
        _, args, count, names = self.e.function.args
        arguments, o = self.binding.arguments, self.o
        least = next((i for i, each in enumerate(arguments) if _may_be_missing(each)), len(arguments))
        self.need(o.same(names, null()))
        spread = _spread(arguments, least)
        if spread is None:
            self.need_others(least)
        else:
            least -= 1
            self.need(o.b.icmp_unsigned(">", count, whole(least)))
            is_spread, is_listed, done = o.block("is_spread"), o.block("is_listed"), o.block("done")
            o.b.cbranch(o.same(o.type_of(o.field(args, 8 * least)), o.object("int")), is_spread, is_listed)
            o.b.position_at_end(is_spread)
            self.need(o.same(count, whole(least + len(spread))))
            for i, each in enumerate(spread, least):
                value = o.field(args, 8 * i)
                self.need(o.same(self.whole(value), whole(each)))
            o.b.branch(done)
            o.b.position_at_end(is_listed)
            self.need_others(least + 1)
            self.need_list(spread, o.field(args, 8 * least))
            o.b.branch(done)
            o.b.position_at_end(done)
        return {each.name: o.field(args, 8 * i) for i, each in enumerate(arguments[:least])}

    def need_others(self, least: int) -> None:
        """Go on where the arguments that may be missing are, or are what they have to be, and there are no more."""
        _, args, count, _ = self.e.function.args
        arguments, o = self.binding.arguments, self.o
        self.need(o.b.icmp_unsigned("<=", o.b.sub(count, whole(least)), whole(len(arguments) - least)))
        for i, each in enumerate(arguments[least:], least):
            is_there, go = o.block("is_there"), o.block("go")
            o.b.cbranch(o.b.icmp_unsigned(">", count, whole(i)), is_there, go)
            o.b.position_at_end(is_there)
            assert isinstance(each, FixedArgument)
            self.need_fixed(each, o.field(args, 8 * i))
            o.b.branch(go)
            o.b.position_at_end(go)

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
        if argument.layout != "flat":
            self.need(o.same(rank, whole(argument.rank, 32)))
        flags = abi.ALIGNED if argument.layout == "strided" else abi.PLAIN
        flags |= abi.WRITEABLE if argument.is_written else 0
        self.need(o.same(o.b.and_(o.field(array, abi.ARRAY_FLAGS, half), whole(flags, 32)), whole(flags, 32)))
        if argument.layout == "flat":
            view = _View(argument, tensor, array, [self.flat_size(rank, dimensions)], [whole(SIZES[argument.type])])
        else:
            strides, axes = o.field(array, abi.STRIDES), range(argument.rank)
            sizes = [o.item(dimensions, i) for i in axes]
            view = _View(argument, tensor, array, sizes, [o.item(strides, i) for i in axes])
        self.data[argument.name] = o.field(array, abi.DATA)
        self.name(view)
        return view

    def flat_size(self, rank: Value, dimensions: Value) -> Value:
        """The number of elements of a flat argument, which has the sizes of the first one."""
        if self.flat is None:
            self.flat = rank, dimensions, self.o.count(rank, dimensions)
        else:
            first_rank, first, _ = self.flat
            self.need(self.o.same(rank, first_rank))
            self.need(self.o.has_same_sizes(rank, dimensions, first))
        return self.flat[2]

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

    def need_fixed(self, argument: FixedArgument, value: Value) -> None:
        wanted, o = argument.value, self.o
        if wanted is None or isinstance(wanted, bool):
            self.need(o.same(value, o.object(str(wanted))))
        elif isinstance(wanted, int):
            self.need(o.same(self.whole(value), whole(wanted)))
        elif isinstance(wanted, str):
            self.need(o.same(o.type_of(value), o.object("str")))
            self.need(o.same(o.call("PyUnicode_CompareWithASCIIString", value, o.text(wanted)), whole(0, 32)))
        else:
            self.need_numbers(wanted, value)

    def need_numbers(self, wanted: tuple[int, ...], value: Value) -> None:
        """The value is a list of these ints, or the one that there is."""
        o = self.o
        if len(wanted) != 1:
            self.need_list(wanted, value)
            return
        alone, is_list, done = o.block("alone"), o.block("is_list"), o.block("done")
        o.b.cbranch(o.same(o.type_of(value), o.object("int")), alone, is_list)
        o.b.position_at_end(alone)
        self.need(o.same(self.whole(value), whole(wanted[0])))
        o.b.branch(done)
        o.b.position_at_end(is_list)
        self.need_list(wanted, value)
        o.b.branch(done)
        o.b.position_at_end(done)

    def need_list(self, wanted: tuple[int, ...], value: Value) -> None:
        """The value is a list of these ints."""
        o = self.o
        self.need(o.same(o.type_of(value), o.object("list")))
        self.need(o.same(o.call("PyList_Size", value), whole(len(wanted))))
        for i, each in enumerate(wanted):
            self.need(o.same(self.whole(o.call("PyList_GetItem", value, whole(i))), whole(each)))

    # -- guards

    def need_unrecorded(self, views: Sequence[_View]) -> None:
        """See Note [Recording]."""
        if not views:
            return
        o = self.o
        no_history = o.same(o.slot(o.object("HOOKS"), "rebased"), o.object("zero"))
        plain: Value = whole(1, 1)
        for view in views:
            is_own = o.same(o.slot(view.tensor, "_base"), o.object("None"))
            quiet = is_own if view.argument.is_written else o.b.or_(is_own, no_history)
            is_off = o.same(o.slot(view.tensor, "_requires_grad"), o.object("False"))
            plain = o.b.and_(plain, o.b.and_(is_off, quiet))
        ask, go = o.block("ask"), o.block("go")
        o.b.cbranch(plain, go, ask)
        o.b.position_at_end(ask)
        o.b.cbranch(o.is_recording(), self.miss, go)
        o.b.position_at_end(go)

    def need_without_gradient(self, views: Sequence[_View]) -> None:
        """No tensor requires grad, also where nothing records: views keep that in mind."""
        for view in views:
            self.need(self.o.same(self.o.slot(view.tensor, "_requires_grad"), self.o.object("False")))
        self.need(self.o.same(self.o.slot(self.o.object("HOOKS"), "rebased"), self.o.object("zero")))

    def look_closer(self, views: Sequence[_View]) -> None:
        """The binding's guards and those of memory that is written; then its lets."""
        for guard in self.binding.guards:
            self.need(self.e.value(guard))
        for view in views:
            if view.argument.is_written:
                self.need_own_elements(view)
                for other in views:
                    if other is not view:
                        self.need_apart(view, other)
        for let in self.binding.lets:
            self.e.names[let.name] = self.e.value(let.value)

    def need_own_elements(self, view: _View) -> None:
        """No dimension repeats the same elements."""
        b = self.o.b
        if view.argument.layout == "strided":
            for size, stride in zip(view.sizes, view.strides, strict=True):
                self.need(b.or_(b.icmp_signed("<=", size, whole(1)), self.o.differ(stride, whole(0))))

    def need_apart(self, view: _View, other: _View) -> None:
        b = self.o.b
        (begin, end), (low, high) = self.extent(view), self.extent(other)
        self.need(b.or_(b.icmp_unsigned("<=", end, low), b.icmp_unsigned("<=", high, begin)))

    def extent(self, view: _View) -> tuple[Value, Value]:
        """The addresses at which the elements begin and end; the same for none."""
        b = self.o.b
        begin = b.ptrtoint(self.data[view.argument.name], ir().IntType(64))
        end = b.add(begin, whole(view.itemsize))
        is_empty: Value = whole(0, 1)
        for size, stride in zip(view.sizes, view.strides, strict=True):
            is_empty = b.or_(is_empty, self.o.same(size, whole(0)))
            reach = b.mul(stride, b.sub(size, whole(1)))
            is_back = b.icmp_signed("<", reach, whole(0))
            begin = b.add(begin, b.select(is_back, reach, whole(0)))
            end = b.add(end, b.select(is_back, whole(0), reach))
        return begin, b.select(is_empty, begin, end)

    # -- results

    def results(self, arguments: dict[str, Value]) -> list[tuple[AnyResult, Value]]:
        """The new tensors, the arguments that are results, and room for numbers and addresses."""
        told = self.binding.told
        if told is not None:
            self.data[told.name] = self.e.slot(ir().ArrayType(ir().IntType(64), told.words))
        return [(each, self.result(each, arguments)) for each in self.binding.results]

    def result(self, result: AnyResult, arguments: dict[str, Value]) -> Value:
        if isinstance(result, ViewResult):
            return self.new_view(result, arguments[result.of])
        if not isinstance(result, Result):
            type = result.type if isinstance(result, NumberResult) else "i64"
            self.data[result.name] = room = self.e.slot(llvm_numbers.stored_type(type))
            return room
        if result.shape is None:
            return arguments[result.name]
        o, (rank, dimensions) = self.o, self.sizes(result, result.shape)
        strides = null() if result.order is None else self.words(self.strides(result, result.shape))
        tensor = o.new_tensor(result.type, dimensions, rank, strides)
        self.need(o.differ(tensor, null()))
        self.made.append(tensor)
        self.data[result.name] = o.field(o.slot(tensor, "array"), abi.DATA)
        return tensor

    def new_view(self, result: ViewResult, of: Value) -> Value:
        o, itemsize = self.o, whole(SIZES[result.type])
        sizes = self.words([self.e.value(extent) for extent in result.shape])
        strides = self.words([o.b.mul(self.e.value(stride), itemsize) for stride in result.strides])
        first = o.moved(self.data[result.of], o.b.mul(self.e.value(result.first), itemsize))
        tensor = o.new_view(of, whole(len(result.shape), 32), sizes, strides, first)
        self.need(o.differ(tensor, null()))
        self.made.append(tensor)
        return tensor

    def sizes(self, result: Result, shape: tuple[Expression, ...]) -> tuple[Value, Value]:
        """The rank, and the address of the sizes."""
        if result.is_flat:
            assert self.flat is not None
            return self.flat[:2]
        return whole(len(shape), 32), self.words([self.e.value(extent) for extent in shape])

    def words(self, values: Sequence[Value]) -> Value:
        """The address of these numbers of 64 bits."""
        words = self.e.slot(ir().ArrayType(ir().IntType(64), max(len(values), 1)))
        for i, value in enumerate(values):
            self.o.b.store(value, self.o.place(words, 8 * i))
        return words

    def strides(self, result: Result, shape: tuple[Expression, ...]) -> list[Value]:
        """The strides, in bytes, of a result in its order in memory."""
        found, step = [self.e.value(extent) for extent in shape], whole(SIZES[result.type])
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
        state = self.o.call("PyEval_SaveThread")
        code = self.o.b.call(self.kernel, given)
        self.o.call("PyEval_RestoreThread", state)
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

    def record(self, history: History, result: Value, tensors: dict[str, Value], given: dict[str, Value]) -> None:
        """Give the result its node."""
        held, *_ = self.e.function.args
        writer = nodes.NodeWriter(self.o, history, result, tensors, given, held, 2, self.there)
        node = writer.new()
        self.made.append(node)
        writer.fill(node)
        self.made.remove(node)
        writer.attach(node)

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
        if isinstance(result, (Result, ViewResult)):
            if result.shape is None:
                self.made.append(o.retain(value))
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
        self.o.b.position_at_end(self.miss)
        _call_fallback(self.o)


_READERS: Final = {"f64": _Stub.float, "i64": _Stub.whole, BOOL: _Stub.bool}
