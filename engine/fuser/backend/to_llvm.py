"""Kernel IR as LLVM IR, through llvmlite's builders.

In: `Kernel`s, which are verified.  Out: an `llvmlite.ir.Module` with a function `i64 NAME(parameters in order)` for
each: buffers are addresses, numbers have their own type, bool is a byte.  Nothing in it is an address of this process:
what kernels call are symbols, which `machine` resolves when it loads the code.

A "parallel" loop becomes a function of its own (`NAME.parallel.N`), over a part of the indices; `tsrepl_parallel`
(`threads`) runs it, unless there is too little work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Final

from engine.fuser.backend import llvm_loops, target
from engine.fuser.backend.llvm_lines import Scope
from engine.fuser.backend.llvm_numbers import PRIMITIVES, Value, constant, ir, stored_type, type_of
from engine.fuser.backend.symbols import ALLOCATE, PARALLEL, RELEASE
from engine.fuser.backend.work import Amount, own_work, work_of
from engine.fuser.ir import math
from engine.fuser.ir.externals import ADDRESS_OF, EXTERNALS, INVOKE
from engine.fuser.ir.kernel import (
    BOOL,
    FLOATS,
    POINTER,
    SIZES,
    VECTORS,
    Accumulate,
    Address,
    Allocate,
    Apply,
    Assign,
    Break,
    Buffer,
    Call,
    Constant,
    Continue,
    Declare,
    Expression,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    all_expressions,
    all_statements,
    bodies,
    element_of,
    lanes_of,
    parts,
    strides_of,
    told_apart,
)
from engine.fuser.ir.kernel_verifier import verify
from engine.lang.records import dataclass

STACK: Final = 256 << 10
"""Bytes up to which an allocated buffer of known size lies on the stack."""
CHUNK: Final = 1 << 18
"""Work (see `work_of`) from which on a part of a loop is worth a thread."""
NO_MEMORY: Final = -1
"""The code of a kernel that found no memory for an allocated buffer."""
_SHORT: Final = 20
"""Work on an element up to which a processor has room for several."""
_INTERLEAVED: Final = 4


def _nowhere(symbol: str) -> None:
    """Nothing is compiled ahead."""


def module(
    kernels: Iterable[Kernel], name: str = "kernels", has_lines: bool = False, ahead: Callable[[str], object] = _nowhere
) -> Any:
    """A module with a function for each kernel; raises KernelError for one that breaks the rules.

    `has_lines`: its instructions say which lines of the kernels' texts they are from (`llvm_lines`).  `ahead`: what has
    helpers that need not be part of the module, by their names.
    """
    made = ir().Module(name)
    made.triple = target.current().triple
    scope = Scope.of(made) if has_lines else None
    known = dict[str, Kernel]()
    for each in kernels:
        verify(each)
        kernel = told_apart(each, known)
        helpers = {each.name: each for each in kernel.helpers}
        for helper in kernel.helpers:
            if helper.name in made.globals:
                continue
            if helper.is_ahead and ahead(helper.name) is not None:
                _function(made, helper)
                continue
            function = emit_kernel(made, helper, helpers, scope)
            function.linkage = "internal"
            if helper.is_rare or helper.is_separate or helper.is_ahead:
                function.attributes.add("noinline")
            if helper.is_rare:
                function.attributes.add("cold")
        emit_kernel(made, kernel, helpers, scope)
    return made


def _function(made: Any, kernel: Kernel) -> Any:
    """The kernel's function in a module, without a body."""
    lib = ir()
    types = [lib.PointerType() if isinstance(p, Buffer) else stored_type(p.type) for p in kernel.parameters]
    return lib.Function(made, lib.FunctionType(lib.IntType(64), types), kernel.name)


def emit_kernel(
    made: Any, kernel: Kernel, helpers: Mapping[str, Kernel] = MappingProxyType({}), scope: Scope | None = None
) -> Any:
    """Add the kernel's function to a module that has its helpers."""
    function = _function(made, kernel)
    e = Emitter.into(function, kernel.any_order, helpers, scope, kernel.line)
    for parameter, value in zip(kernel.parameters, function.args, strict=True):
        value.name = parameter.name
        if isinstance(parameter, Scalar):
            e.names[parameter.name] = e.loaded(value, parameter.type)
    for parameter, value in zip(kernel.parameters, function.args, strict=True):
        if isinstance(parameter, Buffer):
            value.add_attribute("noalias")
            e.bind_buffer(parameter, value)
    e.run(kernel.body)
    return function


# ------------------------------------------------------------------ functions under construction


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable on the stack, which LLVM makes registers of."""

    address: Value
    type: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer: where it begins, and its strides as values."""

    buffer: Buffer
    address: Value
    strides: tuple[Value, ...]


@dataclass(slots=True)
class Emitter:
    """One LLVM function, and what its names stand for."""

    function: Any
    builder: Any
    exit: Any
    status: Value
    any_order: bool
    names: dict[str, Any] = field(default_factory=dict)
    """Values, and slots of variables."""
    buffers: dict[str, Memory] = field(default_factory=dict)
    loops: list[tuple[Any, Any]] = field(default_factory=list)
    """Of the loops around: the blocks that `Break` and `Continue` go to."""
    groups: list[Any] = field(default_factory=list)
    """Of the loops around: the groups of their accesses to memory; None where iterations depend on each other."""
    freed: list[Value] = field(default_factory=list)
    """Slots of addresses that are freed at the end."""
    helpers: Mapping[str, Kernel] = field(default_factory=dict)
    """The kernels that may be called."""
    constant: frozenset[str] = frozenset()
    """Buffers that nothing writes as long as the function runs."""
    scope: Scope | None = None
    """The function as that of lines, if its instructions say theirs."""

    @classmethod
    def into(
        cls, function: Any, any_order: bool, helpers: Mapping[str, Kernel], around: Scope | None = None, line: int = 0
    ) -> Emitter:
        """An emitter at the beginning of a function without blocks, whose text begins at the line."""
        lib = ir()
        builder = lib.IRBuilder(function.append_basic_block("entry"))
        scope = None if around is None else around.inside(function, line)
        builder.debug_metadata = None if scope is None else scope.at(line)
        status = builder.alloca(lib.IntType(64))
        builder.store(lib.Constant(lib.IntType(64), 0), status)
        end = function.append_basic_block("exit")
        return cls(function, builder, end, status, any_order, helpers=helpers, scope=scope)

    @property
    def module(self) -> Any:
        return self.function.module

    def run(self, body: Sequence[Statement]) -> None:
        """The body, then the end of the function."""
        self.block(body)
        if not self.builder.block.is_terminated:
            self.builder.branch(self.exit)
        self.builder.position_at_end(self.exit)
        for slot in self.freed:
            self.release(slot)
        if isinstance(self.function.function_type.return_type, ir().VoidType):  # a kernel of a GPU
            self.builder.ret_void()
        else:
            self.builder.ret(self.builder.load(self.status, typ=ir().IntType(64)))

    def block(self, body: Sequence[Statement]) -> None:
        """Statements with names of their own."""
        names, buffers = dict(self.names), dict(self.buffers)
        for statement in body:
            if self.builder.block.is_terminated:  # after a break or return
                break
            self.statement(statement)
        self.names, self.buffers = names, buffers

    def statement(self, of: Statement) -> None:
        """One statement, whose names are known from then on."""
        with self.at(of.line):
            _STATEMENTS[type(of)](self, of)

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        """A part of the function that is from that line."""
        if self.scope is None:
            yield
            return
        around, self.builder.debug_metadata = self.builder.debug_metadata, self.scope.at(line)
        yield
        self.builder.debug_metadata = around

    # -- values

    def value(self, of: Expression) -> Value:
        """The value of an expression, in the type in which it is computed with."""
        match of:
            case Constant(value=value, type=type):
                return constant(value, type)
            case Name(name=name):
                held = self.names[name]
                return self.builder.load(held.address, typ=type_of(held.type)) if isinstance(held, Slot) else held
            case Load(buffer=buffer, indices=indices, type=type):
                address = self.address(buffer, indices)
                return self.loaded(self.load(buffer, address, SIZES[element_of(type)], stored_type(type)), type)
            case Address(buffer=buffer, indices=indices):
                return self.address(buffer, indices)
            case Apply(function=function, operands=operands, type=type):
                return self.apply(function, operands, type)
        raise AssertionError(of)

    def load(self, buffer: str, address: Value, align: int, type: Any) -> Value:
        """Elements of a buffer, as they are in memory at their address."""
        found = self.grouped(self.builder.load(address, align=align, typ=type))
        if buffer in self.constant:
            found.set_metadata("invariant.load", self.module.add_metadata([]))
        return found

    def loaded(self, value: Value, type: str) -> Value:
        """A value as it is computed with, of one as it is in memory."""
        return self.builder.icmp_unsigned("!=", value, value.type(0)) if type == BOOL else value

    def address(self, name: str, indices: Sequence[Expression]) -> Value:
        """The address of an element."""
        memory = self.buffers[name]
        offset: Value = None
        for index, stride in zip(indices, memory.strides, strict=True):
            term = self.scaled(self.value(index), stride)
            offset = term if offset is None else self.builder.add(offset, term, flags=("nsw",))
        if offset is None:
            return memory.address
        return self.builder.gep(memory.address, [offset], inbounds=True, source_etype=stored_type(memory.buffer.type))

    def scaled(self, index: Value, stride: Value) -> Value:
        is_one = isinstance(stride, ir().Constant) and stride.constant == 1
        return index if is_one else self.builder.mul(index, stride, flags=("nsw",))

    def apply(self, name: str, operands: Sequence[Expression], type: str) -> Value:
        """The value of a function of numbers."""
        given = [self.value(each) for each in operands]
        emit = PRIMITIVES.get(name)
        if emit is not None:
            return emit(self, given, operands[-1].type, type)
        written = math.function(name, operands[-1].type)
        if written is not None:
            return self.builder.call(self.function_of(written), given)
        return self.library(name, given, type)

    def library(self, name: str, given: Sequence[Value], type: str) -> Value:
        """A call of the C library's function of that name."""
        spelled = name + "f" * (type == "f32")
        return self.builder.call(self.declared(spelled, [each.type for each in given], type_of(type)), given)

    def function_of(self, written: Function) -> Any:
        """A function that is written in kernel IR, in this module."""
        lib = ir()
        symbol = f"{written.name}.{written.result.type}"
        known = self.module.globals.get(symbol)
        if known is not None:
            return known
        types = [type_of(parameter.type) for parameter in written.parameters]
        function = lib.Function(self.module, lib.FunctionType(type_of(written.result.type), types), symbol)
        function.linkage = "internal"
        function.attributes.add("alwaysinline")
        builder = lib.IRBuilder(function.append_basic_block("entry"))
        e = Emitter(function, builder, None, None, any_order=False)
        e.names.update((p.name, value) for p, value in zip(written.parameters, function.args, strict=True))
        for let in written.body:
            e.names[let.name] = e.value(let.value)
        builder.ret(e.value(written.result))
        return function

    def declared(self, symbol: str, types: Sequence[Any], result: Any) -> Any:
        """An external function."""
        lib = ir()
        known = self.module.globals.get(symbol)
        return known if known is not None else lib.Function(self.module, lib.FunctionType(result, types), symbol)

    def intrinsic(self, name: str, result: str, *given: Value) -> Value:
        """A call of `llvm.NAME`, overloaded by the type of its result."""
        bits = f"v{lanes_of(result)}{element_of(result)}" if result in VECTORS else {"u8": "i8"}.get(result, result)
        function = self.declared(f"llvm.{name}.{bits}", [each.type for each in given], type_of(result))
        return self.builder.call(function, given)

    def call_external(self, name: str, given: Sequence[Value]) -> Value:
        """A call of one of `externals`."""
        if name == ADDRESS_OF:
            return given[0]
        if name == INVOKE:
            return self.invoke(*given)
        external = EXTERNALS[name]
        returned = type_of(external.result) if external.result else ir().VoidType()
        return self.builder.call(self.declared(name, [type_of(each) for each in external.operands], returned), given)

    def invoke(self, address: Value, *given: Value) -> Value:
        """A call of the function at an address."""
        signature = ir().FunctionType(type_of("i64"), [each.type for each in given])
        number = self.builder.ptrtoint(address, type_of("i64"))  # of which llvmlite makes a pointer with a type
        return self.builder.call(self.builder.inttoptr(number, signature.as_pointer()), given)

    def release(self, slot: Value) -> None:
        """Give back what the slot holds the address of, if anything."""
        pointer = type_of(POINTER)
        function = self.declared(RELEASE, [pointer], ir().VoidType())
        self.builder.call(function, [self.builder.load(slot, typ=pointer)])

    def combined(self, function: str, a: Value, b: Value, type: str) -> Value:
        """Two partial results as one, by one of `ACCUMULATORS`."""
        if type not in FLOATS:
            return PRIMITIVES[function](self, [a, b], type, type)
        if function in ("minimum", "maximum"):
            return self.intrinsic(function, type, a, b)
        return getattr(self.builder, f"f{function}")(a, b, flags=_ANY_ORDER)

    @property
    def flags(self) -> tuple[str, ...]:
        return _ANY_ORDER if self.any_order else ()

    # -- memory

    def slot(self, type: Any) -> Value:
        """Room on the stack, taken once, when the function begins."""
        with self.builder.goto_entry_block():
            address = self.builder.alloca(type)
            address.align = 64 if isinstance(type, ir().ArrayType) else None
            address.type = type_of(
                POINTER
            )  # as LLVM itself prints it; llvmlite still gives it the type of what is there
            return address

    def grouped(self, access: Value) -> Value:
        """The access, in the group of the innermost loop if that has one."""
        if self.groups and self.groups[-1] is not None:
            access.set_metadata("llvm.access.group", self.groups[-1])
        return access

    def bind_buffer(self, buffer: Buffer, address: Value) -> None:
        strides = tuple(self.value(each) for each in strides_of(buffer))
        self.buffers[buffer.name] = Memory(buffer, address, strides)

    def store(self, address: Value, value: Value, type: str) -> None:
        stored = self.builder.zext(value, ir().IntType(8)) if type == BOOL else value
        self.grouped(self.builder.store(stored, address, align=SIZES[type]))

    def fail(self, condition: Value, code: Value) -> None:
        """Return the code where the condition holds."""
        go, stop = (self.function.append_basic_block() for _ in range(2))
        self.builder.cbranch(condition, stop, go)
        self.builder.position_at_end(stop)
        if self.status is not None:
            self.builder.store(code, self.status)
        self.builder.branch(self.exit)
        self.builder.position_at_end(go)


_ANY_ORDER: Final = ("reassoc", "nsz", "contract")


# ------------------------------------------------------------------ statements


def _let(e: Emitter, s: Let) -> None:
    e.names[s.name] = e.value(s.value)


def _declare(e: Emitter, s: Declare) -> None:
    value = e.value(s.value)
    slot = Slot(e.slot(value.type), s.value.type)
    e.builder.store(value, slot.address)
    e.names[s.name] = slot


def _assign(e: Emitter, s: Assign) -> None:
    e.builder.store(e.value(s.value), e.names[s.name].address)


def _accumulate(e: Emitter, s: Accumulate) -> None:
    """Sums may be reassociated; extremes are LLVM's own, of which it knows that their order does not matter."""
    slot = e.names[s.name]
    before, value = e.builder.load(slot.address, typ=type_of(slot.type)), e.value(s.value)
    if slot.type in FLOATS and getattr(value, "opname", "") == "fmul":
        value.flags = [*value.flags, "contract"]  # the product of a sum, which is added in one instruction
    e.builder.store(e.combined(s.function, before, value, slot.type), slot.address)


def _store(e: Emitter, s: Store) -> None:
    value = e.value(s.value)
    e.store(e.address(s.buffer, s.indices), value, e.buffers[s.buffer].buffer.type)


def _for(e: Emitter, s: For) -> None:
    if s.kind == "parallel":
        _parallel(e, s)
        return
    start, stop, step = (e.value(each) for each in (s.start, s.stop, s.step))
    _counted(e, s, start, stop, step)


def _counted(e: Emitter, s: For, start: Value, stop: Value, step: Value) -> None:
    before = e.builder.block
    head, body, following, done = (e.function.append_basic_block() for _ in range(4))
    e.builder.branch(head)
    e.builder.position_at_end(head)
    index = e.builder.phi(start.type, s.index)
    index.add_incoming(start, before)
    is_down = isinstance(s.step, Constant) and s.step.value < 0
    e.builder.cbranch(e.builder.icmp_signed(">" if is_down else "<", index, stop), body, done)
    e.builder.position_at_end(body)
    group = llvm_loops.group(e.module) if s.kind == "vector" else None
    with _within(e, done, following, {s.index: index}, group):
        e.block(s.body)
    _go(e, following)
    e.builder.position_at_end(following)
    index.add_incoming(e.builder.add(index, step, flags=("nsw",)), following)
    again = e.builder.branch(head)
    if group is not None:
        again.set_metadata("llvm.loop", llvm_loops.note(e.module, group))
    if any(isinstance(each, Assign) and each.value.type in VECTORS for each in s.body):
        again.set_metadata("llvm.loop", llvm_loops.as_written(e.module))
    if s.kind == "parallel" and _is_long_row(s.body):
        again.set_metadata("llvm.loop", _interleaved(e.module))
    e.builder.position_at_end(done)


def _is_long_row(body: Sequence[Statement]) -> bool:
    """True for some work on single elements, whose steps wait for one another."""
    if any(True for statement in body for _ in bodies(statement)):
        return False
    work = sum(map(own_work, body))
    return work > _SHORT


def _interleaved(module: Any) -> Any:
    """A loop's mark by which LLVM does several vectors at once, which it decides by itself for short loops only."""
    hint = module.add_metadata(["llvm.loop.interleave.count", ir().IntType(32)(_INTERLEAVED)])
    loop = module.add_metadata([hint, module.get_unique_name("loop")])
    loop.operands = (loop, hint)
    return loop


@contextmanager
def _within(e: Emitter, done: Any, following: Any, names: Mapping[str, Value], group: Any = None) -> Any:
    before = {name: e.names[name] for name in names if name in e.names}
    e.names.update(names)
    e.loops.append((done, following))
    e.groups.append(group)
    yield
    e.groups.pop()
    e.loops.pop()
    for name in names:
        del e.names[name]
    e.names.update(before)


def _go(e: Emitter, block: Any) -> None:
    if not e.builder.block.is_terminated:
        e.builder.branch(block)


def _while(e: Emitter, s: While) -> None:
    head, body, done = (e.function.append_basic_block() for _ in range(3))
    e.builder.branch(head)
    e.builder.position_at_end(head)
    e.builder.cbranch(e.value(s.condition), body, done)
    e.builder.position_at_end(body)
    with _within(e, done, head, {}):
        e.block(s.body)
    _go(e, head)
    e.builder.position_at_end(done)


def _if(e: Emitter, s: If) -> None:
    yes, no, done = (e.function.append_basic_block() for _ in range(3))
    e.builder.cbranch(e.value(s.condition), yes, no)
    for block, body in ((yes, s.body), (no, s.orelse)):
        e.builder.position_at_end(block)
        e.block(body)
        _go(e, done)
    e.builder.position_at_end(done)


def _break(e: Emitter, s: Break) -> None:
    e.builder.branch(e.loops[-1][0])


def _continue(e: Emitter, s: Continue) -> None:
    e.builder.branch(e.loops[-1][1])


def _return(e: Emitter, s: Return) -> None:
    e.builder.store(e.value(s.value), e.status)
    e.builder.branch(e.exit)


def _allocate(e: Emitter, s: Allocate) -> None:
    buffer, lib = s.buffer, ir()
    extents = [each.value for each in buffer.shape or () if isinstance(each, Constant)]
    count = 1
    for each in extents:
        count *= int(each)
    if len(extents) == buffer.rank and count * SIZES[buffer.type] <= STACK:
        e.bind_buffer(buffer, e.slot(lib.ArrayType(stored_type(buffer.type), max(count, 1))))
        return
    size: Value = lib.IntType(64)(SIZES[buffer.type])
    for extent in buffer.shape or ():
        size = e.builder.mul(size, e.value(extent))
    e.bind_buffer(buffer, _allocated(e, size))


def _allocated(e: Emitter, size: Value) -> Value:
    """Memory of that many bytes, freed when the function ends or gets here again."""
    lib = ir()
    pointer, whole = type_of(POINTER), lib.IntType(64)
    slot = e.slot(pointer)
    with e.builder.goto_entry_block():
        e.builder.store(lib.Constant(pointer, None), slot)
    e.freed.append(slot)
    e.release(slot)
    address = e.builder.call(e.declared(ALLOCATE, [whole], pointer), [size])
    e.builder.store(address, slot)
    e.fail(e.builder.icmp_unsigned("==", address, lib.Constant(pointer, None)), whole(NO_MEMORY))
    return address


def _view(e: Emitter, s: View) -> None:
    e.bind_buffer(s.buffer, e.builder.inttoptr(e.value(s.address), type_of(POINTER)))


def _call(e: Emitter, s: Call) -> None:
    """Of a helper, which is a function of this module, or of an external function."""
    given = [e.value(each) for each in s.operands]
    helper = e.module.globals.get(s.function) if s.function not in EXTERNALS else None
    if helper is None:
        found = _call_external(e, s, given)
    else:
        whole = [e.builder.zext(each, ir().IntType(8)) if each.type == type_of(BOOL) else each for each in given]
        found = e.builder.call(helper, whole)
    if s.name:
        e.names[s.name] = found


def _call_external(e: Emitter, s: Call, given: Sequence[Value]) -> Value:
    """Addresses may be whole numbers on this side."""
    pointer, whole = type_of(POINTER), type_of("i64")
    wanted = zip(given, EXTERNALS[s.function].types(len(given)), strict=True)
    passed = [e.builder.inttoptr(v, pointer) if t == POINTER and v.type == whole else v for v, t in wanted]
    found = e.call_external(s.function, passed)
    return e.builder.ptrtoint(found, whole) if s.name and s.type == "i64" and found.type == pointer else found


_STATEMENTS: Final[dict[type, Callable[[Emitter, Any], None]]] = {
    Let: _let, Declare: _declare, Assign: _assign, Accumulate: _accumulate, Store: _store, For: _for, While: _while,
    If: _if, Break: _break, Continue: _continue, Return: _return, Allocate: _allocate, View: _view, Call: _call,
}  # fmt: skip

# ------------------------------------------------------------------ parallel loops


def _parallel(e: Emitter, s: For) -> None:
    """The loop as a function over a part of its indices, which threads call, or this one where there is little work."""
    lib = ir()
    start, stop = e.value(s.start), e.value(s.stop)
    scalars = {name: e.value(Name(name, "")) for name in _free_names(s, e.names)}
    buffers = {name: e.buffers[name] for name in _used_buffers(s.body, e.buffers)}
    given = [*scalars.values(), *(m.address for m in buffers.values())]
    given += [each for m in buffers.values() for each in m.strides]
    part = _part(e, s, scalars, buffers, [each.type for each in given])
    count = e.builder.sub(stop, start)
    work = work_of(e, s.body)
    whole = lib.IntType(64)
    grain, told = _grains(e, work)
    many, few, done = (e.function.append_basic_block() for _ in range(3))
    e.builder.cbranch(e.builder.icmp_signed(">", count, e.builder.mul(grain, whole(2))), many, few)
    e.builder.position_at_end(few)
    short = e.builder.call(part, [start, stop, *given])
    e.builder.branch(done)
    e.builder.position_at_end(many)
    context = _packed(e, [start, *given])
    signature = [type_of(POINTER), type_of(POINTER), whole, whole]
    entry = _entry(e, part, [each.type for each in given], s.line)
    long = e.builder.call(e.declared(PARALLEL, signature, whole), [entry, context, count, told])
    e.builder.branch(done)
    e.builder.position_at_end(done)
    code = e.builder.phi(whole)
    code.add_incoming(short, few)
    code.add_incoming(long, many)
    e.fail(e.builder.icmp_signed("!=", code, whole(0)), code)


def _grains(e: Emitter, work: Amount) -> tuple[Value, Value]:
    """The indices in a piece of such a loop, whose body does that work; and as the pool is told (`backend.threads`):
    where that is 0, since a single one is more than a piece, how many pieces it is, negated."""
    whole = ir().IntType(64)
    if isinstance(work, int):
        grain = CHUNK // work
        return whole(grain), whole(grain or -(work // CHUNK))
    grain = e.builder.sdiv(whole(CHUNK), work)
    pieces = e.builder.sdiv(work, whole(CHUNK))
    is_large = e.builder.icmp_signed("==", grain, whole(0))
    return grain, e.builder.select(is_large, e.builder.neg(pieces), grain)


def _part(e: Emitter, s: For, scalars: Mapping[str, Value], buffers: Mapping[str, Memory], types: Sequence[Any]) -> Any:
    """`i64 part(i64 begin, i64 end, scalars, addresses, strides)`, which gives the code of what failed, or 0."""
    lib, whole = ir(), ir().IntType(64)
    name = e.module.get_unique_name(f"{e.function.name}.parallel")
    function = lib.Function(e.module, lib.FunctionType(whole, [whole, whole, *types]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")  # it is called from two places, and compiled once
    inner = Emitter.into(function, e.any_order, e.helpers, e.scope, s.line)
    begin, end, *given = function.args
    values = iter(given)
    for each in scalars:
        inner.names[each] = next(values)
    addresses = [next(values) for _ in buffers]
    for memory, address in zip(buffers.values(), addresses, strict=True):
        address.add_attribute("noalias")
        strides = tuple(each if isinstance(each, lib.Constant) else None for each in memory.strides)
        passed = tuple(next(values) for _ in strides)
        kept = tuple(known if known is not None else value for known, value in zip(strides, passed, strict=True))
        inner.buffers[memory.buffer.name] = Memory(memory.buffer, address, kept)
    rooms = [*_rooms_of_all(s)]
    for room in rooms:
        inner.statement(room)
    _counted(inner, replace(s, body=s.body[len(rooms) :]), begin, end, whole(1))
    inner.run(())
    return function


def _rooms_of_all(s: For) -> Iterator[Allocate]:
    """The buffers that the body begins with, as far as they are the same for all iterations: allocated once a part."""
    for each in s.body:
        if not isinstance(each, Allocate):
            return
        used = (e for root in each.buffer.shape or () for e in all_expressions(root))
        if any(isinstance(e, Name) and e.name == s.index for e in used):
            return
        yield each


def _entry(e: Emitter, part: Any, types: Sequence[Any], line: int) -> Any:
    """`i64 entry(ptr context, i64 begin, i64 end)`, which unpacks the context."""
    lib, whole = ir(), ir().IntType(64)
    signature = lib.FunctionType(whole, [type_of(POINTER), whole, whole])
    function = lib.Function(e.module, signature, e.module.get_unique_name(f"{part.name}.entry"))
    function.linkage = "internal"
    as_it_is(function)
    builder = lib.IRBuilder(function.append_basic_block("entry"))
    if e.scope is not None:
        builder.debug_metadata = e.scope.inside(function, line).at(line)
    context, begin, end = function.args
    first, *given = (_field(builder, context, i, type) for i, type in enumerate([whole, *types]))
    builder.ret(builder.call(part, [builder.add(first, begin), builder.add(first, end), *given]))
    return function


def as_it_is(function: Any) -> None:
    """Let LLVM take the function as it is written: one without loops is as fast, and there in a third of the time."""
    function.attributes.add("noinline")
    function.attributes.add("optnone")


def _field(builder: Any, context: Value, i: int, type: Any) -> Value:
    place = builder.gep(context, [ir().IntType(64)(i)], source_etype=ir().IntType(64))
    return builder.load(place, typ=type)


def _packed(e: Emitter, given: Sequence[Value]) -> Value:
    """The address of these values, each in 8 bytes."""
    lib = ir()
    context = e.slot(lib.ArrayType(lib.IntType(64), len(given)))
    for i, value in enumerate(given):
        e.builder.store(value, e.builder.gep(context, [lib.IntType(64)(i)], source_etype=lib.IntType(64)))
    return context


def _free_names(s: For, known: Mapping[str, Any]) -> list[str]:
    """Names from outside that the loop's body reads."""
    roots = [part for each in all_statements(s.body) for part in parts(each)]
    used = {each.name for root in roots for each in all_expressions(root) if isinstance(each, Name)}
    shapes = (part for each in all_statements(s.body) if isinstance(each, Allocate) for part in each.buffer.shape or ())
    used |= {each.name for root in shapes for each in all_expressions(root) if isinstance(each, Name)}
    return [name for name in known if name in used and name != s.index]


def _used_buffers(body: Sequence[Statement], known: Mapping[str, Memory]) -> list[str]:
    roots = [part for each in all_statements(body) for part in parts(each)]
    used = {each.buffer for root in roots for each in all_expressions(root) if isinstance(each, (Load, Address))}
    used |= {each.buffer for each in all_statements(body) if isinstance(each, Store)}
    return [name for name in known if name in used]
