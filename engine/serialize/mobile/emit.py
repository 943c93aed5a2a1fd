"""Bytecode from graphs: the instructions that `lift.py` reads back.

In: a method.  Out: its `MobileFunction`.  Calls are inlined.  Each value has a register of its own; a value that the
last node of its block to use it takes directly is moved there, any other is dropped behind that node.

    prim::If(c)               c, JF to else, then-block, JMP over else, else-block; both leave their outputs
    prim::Loop(max, c, a)     0, max, c, a, LOOP to behind, block, JMP back to LOOP; the block leaves condition and a
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import EnumValue
from engine.ir.clone import copy_graph
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Node, Value
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.custom_classes import is_custom
from engine.lang.errors import NotSupportedError
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import (
    ClassType,
    DictType,
    FunctionType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)
from engine.passes.pipeline import run_pass
from engine.serialize.code.opaque import KEYWORDS
from engine.serialize.mobile.bytecode import MobileFunction, MobileInstruction, Operator
from engine.serialize.mobile.schema import OPERATORS

TypeName = Callable[[Type], str]
"""A type as the file names it."""


def mobile_function(function: Function, name: str, type_name: TypeName) -> MobileFunction:
    """The function as bytecode under that qualified name.

    Raises NotSupportedError for what no bytecode does: contexts, forks.
    """
    graph = copy_graph(function.graph)
    run_pass("inline", graph)

    def named(type: Type) -> str:
        return type_name(_without_names(type))

    emitter = _Emitter(named)
    emitter.block_inputs(graph.block)
    emitter.body(graph.block)
    emitter.emit("RET")
    schema = function.schema
    return MobileFunction(
        name,
        tuple((each.name, named(each.type)) for each in schema.arguments),
        tuple(named(each.type) for each in schema.returns),
        tuple(MobileInstruction(*each) for each in emitter.instructions),
        tuple(emitter.operators),
        tuple(emitter.constants),
        tuple(emitter.types),
        len(emitter.registers) + 1,
        _defaults(schema),
    )


def _without_names(type: Type) -> Type:
    """The type with plain tuples in the place of named ones, which programs for phones do not have."""
    if isinstance(type, TupleType):
        return TupleType(tuple(map(_without_names, type.elements)))
    if isinstance(type, (ListType, OptionalType)):
        return type.__class__(_without_names(type.element))
    if isinstance(type, DictType):
        return DictType(type.key, _without_names(type.value))
    return type


def _defaults(schema: FunctionSchema) -> dict[str, Any]:
    given = (each for each in schema.arguments if each.has_default and each.default is not None)
    return {each.name: each.default for each in given}


@dataclass(slots=True, eq=False)
class _Emitter:
    """The bytecode of one function so far."""

    type_name: TypeName
    instructions: list[list[Any]] = field(default_factory=list)
    operators: dict[Operator, int] = field(default_factory=dict)
    constants: list[Any] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    registers: dict[Value, int] = field(default_factory=dict)
    _places: dict[Any, int] = field(default_factory=dict)
    _dying: dict[Node, dict[Value, bool]] = field(default_factory=dict)
    """Node -> the values that die there, and whether they may be moved."""

    def emit(self, opcode: str, x: int = 0, n: int = 0) -> None:
        self.instructions.append([opcode, x, n])

    # -- blocks

    def block_inputs(self, block: Block) -> None:
        """Take what a block gets from the stack, and find where its values die."""
        self._find_deaths(block)
        self.store(block.param_node)

    def body(self, block: Block) -> None:
        """The nodes of a block; what it gives is left on the stack."""
        for node in block.nodes():
            if node.kind != "prim::Constant":
                self._node(node)
        self._load(block.return_node)
        self._drop(block.return_node)

    def _find_deaths(self, block: Block) -> None:
        nodes = [block.param_node, *block.nodes(), block.return_node]
        order = {node: place for place, node in enumerate(nodes)}
        for node in nodes:
            for value in () if node.kind == "prim::Constant" else node.outputs:
                users = {user: _in_block(user, block) for user, _ in value.uses}
                if users:
                    last = max(users.values(), key=order.__getitem__)
                    is_direct = all(user is last for user, found in users.items() if found is last)
                    self._dying.setdefault(last, {})[value] = is_direct

    # -- nodes

    def _node(self, node: Node) -> None:
        if node.kind == "prim::If":
            self._if(node)
        elif node.kind == "prim::Loop":
            self._loop(node)
        else:
            self._load(node)
            _FORMS.get(node.kind, _Emitter._operator)(self, node)
        self._drop(node)
        self.store(node)

    def _load(self, node: Node) -> None:
        inputs, dying = node.inputs[: _needed(node)], self._dying.get(node, {})
        for index, value in enumerate(inputs):
            constant = constant_value(value)
            if isinstance(value.type, FunctionType):
                raise NotSupportedError("functions are no values of programs for phones", node.range)
            if constant is not NOT_CONSTANT:
                self.emit("LOADC", self.constant(constant))
            elif dying.get(value) and value not in inputs[index + 1 :]:
                self.emit("MOVE", self.registers[value])
                del dying[value]
            else:
                self.emit("LOAD", self.registers[value])

    def _drop(self, node: Node) -> None:
        for value in self._dying.pop(node, ()):
            self.emit("DROPR", self.registers[value])

    def store(self, node: Node) -> None:
        """Put what lies on the stack into the registers of the node's outputs."""
        outputs = node.outputs
        if len(outputs) == 1 and not outputs[0].has_uses:
            self.emit("DROP")
            return
        for value in outputs:
            self.registers[value] = len(self.registers) + 1
        if outputs:
            several = len(outputs) > 1
            self.emit("STOREN" if several else "STORE", self.registers[outputs[0]], len(outputs) if several else 0)
        for value in outputs:
            if not value.has_uses:
                self.emit("DROPR", self.registers[value])

    def _if(self, node: Node) -> None:
        self._load(node)
        test = len(self.instructions)
        self.emit("JF")
        first, second = node.blocks
        self.block_inputs(first)
        self.body(first)
        over = len(self.instructions)
        self.emit("JMP")
        self.instructions[test][1] = over + 1 - test
        self.block_inputs(second)
        self.body(second)
        self.instructions[over][1] = len(self.instructions) - over

    def _loop(self, node: Node) -> None:
        self.emit("LOADC", self.constant(0))
        self._load(node)
        head = len(self.instructions)
        self.emit("LOOP", 0, len(node.inputs))
        self.block_inputs(node.blocks[0])
        self.body(node.blocks[0])
        self.emit("JMP", head - len(self.instructions))
        self.instructions[head][1] = len(self.instructions) - head

    # -- tables

    def constant(self, value: Any) -> int:
        """Its place in the table; equal simple values share one.  Raises NotSupportedError for an Enum's member."""
        refuse_enums(value)
        simple = isinstance(value, (str, int, float, type(None))) and value == value
        key = (type(value), str(value), value) if simple else id(value)
        if key not in self._places:
            self._places[key] = len(self.constants)
            self.constants.append(value)
        return self._places[key]

    def type(self, node: Node, *types: Type) -> int:
        """The place of the first of these types, which lie side by side.  Raises NotSupportedError for a class."""
        for each in types:
            if isinstance(each, ClassType) and not is_custom(each):
                hints = ("a class that is derived from nn.Module can be used",)
                text = f"__torch__ types other than custom c++ classes are not supported in lite interpreter: {each}"
                raise NotSupportedError(text, node.range, hints=hints)
        self.types += map(self.type_name, types)
        return len(self.types) - len(types)

    # -- operators

    def _operator(self, node: Node) -> None:
        entry = op_of(node)
        if node.kind == "aten::wait" or (node.kind.startswith("prim::") and entry is None):
            hints = ("a program for phones runs on one thread, and has no contexts",)
            raise NotSupportedError(f"{node.kind} is not supported in mobile module", node.range, hints=hints)
        name, _, overload = (node.kind if entry is None else entry.qualified_name).partition(".")
        if node.has_attribute(KEYWORDS):
            raise NotSupportedError(f"nothing is known of {node.kind}, which is called by keywords", node.range)
        found = _opcode_of(name, overload)
        if found is not None:
            self.emit(found)
            return
        is_variadic = entry is None or entry.schema.is_vararg
        count = _needed(node)
        operator = Operator(name, overload, None if is_variadic else count)
        place = self.operators.setdefault(operator, len(self.operators))
        self.emit("OPN" if is_variadic else "OP", place, count if is_variadic else 0)

    def _list(self, node: Node) -> None:
        self.emit("LIST_CONSTRUCT", self.type(node, node.output.type), len(node.inputs))

    def _dict(self, node: Node) -> None:
        self.emit("DICT_CONSTRUCT", self.type(node, node.output.type), len(node.inputs))

    def _tuple(self, node: Node) -> None:
        self.emit("TUPLE_CONSTRUCT", len(node.inputs))

    def _tuple_slice(self, node: Node) -> None:
        self.emit("TUPLE_SLICE", node.attr("beg"), node.attr("end") - node.attr("beg"))

    def _unpack_tuple(self, node: Node) -> None:
        self._call(node.kind, 1)

    def _unpack_list(self, node: Node) -> None:
        self.emit("LIST_UNPACK", len(node.outputs))

    def _call(self, name: str, count: int) -> None:
        self.emit("OP", self.operators.setdefault(Operator(name, "", count), len(self.operators)))

    def _cast(self, node: Node) -> None:
        self._call("prim::unchecked_cast", 1)

    def _attribute(self, node: Node) -> None:
        type = node.inputs[0].type
        slot = type.slot(node.attr("name")) if isinstance(type, ClassType) else None
        assert slot is not None, node
        self.emit("GET_ATTR" if node.kind == "prim::GetAttr" else "SET_ATTR", slot)

    def _isinstance(self, node: Node) -> None:
        types = node.attr("types")
        self.emit("ISINSTANCE", self.type(node, *types), len(types))

    def _object(self, node: Node) -> None:
        self.emit("CREATE_OBJECT", self.type(node, node.output.type))

    def _print(self, node: Node) -> None:
        place = self.operators.setdefault(Operator(node.kind, "", None), len(self.operators))
        self.emit("OPN", place, len(node.inputs))

    def _format(self, node: Node) -> None:
        self.emit("FORMAT", len(node.inputs))

    def _call_interface(self, node: Node) -> None:
        if not isinstance(node.inputs[0].type, InterfaceType):
            raise NotSupportedError(f"a call of '{node.attr('name')}' could not be inlined", node.range)
        self.emit("INTERFACE_CALL", self.constant(node.attr("name")), len(node.inputs))


def refuse_enums(value: Any) -> None:
    """Raises NotSupportedError for a value with members of Enums, which phones cannot read."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, EnumValue):
            hints = ("give it the member's value",)
            raise NotSupportedError(f"a program for phones cannot hold {each}, a member of an Enum", hints=hints)
        if isinstance(each, (list, tuple, dict)):
            waiting += (*each, *each.values()) if isinstance(each, dict) else each


def _in_block(node: Node, block: Block) -> Node:
    """The node of the block that is, or contains, the node."""
    while node.block is not block:
        owner = node.block.owner if node.block is not None else None
        assert owner is not None, "the node is in no block of the graph"
        node = owner
    return node


def _needed(node: Node) -> int:
    """The number of inputs that have to be given: not the last ones that are their defaults.

    So programs run where an operator does not have its newest arguments.
    """
    entry = op_of(node)
    count = len(node.inputs)
    if (
        entry is None
        or entry.name in _OPCODES
        or any(each.is_write and each.kwarg_only for each in entry.schema.arguments)
    ):
        return count
    arguments = entry.schema.arguments[:count]
    while len(arguments) == count and count and _is_default(arguments[count - 1], node.inputs[count - 1]):
        count -= 1
        arguments = arguments[:count]
    return count


def _is_default(argument: Argument, value: Value) -> bool:
    constant = constant_value(value)
    simple = isinstance(constant, (bool, int, float, str, type(None)))
    return simple and argument.has_default and type(argument.default) is type(constant) and argument.default == constant


def _opcode_of(name: str, overload: str) -> str | None:
    """The instruction that is the operator."""
    if name == "aten::__getitem__" and not overload.startswith("Dict"):
        return None
    return _OPCODES.get(name)


_OPCODES: Final[Mapping[str, str]] = {name: opcode for opcode, (name, _) in OPERATORS.items()}
_FORMS: Final[dict[str, Callable[[_Emitter, Node], None]]] = {
    "prim::ListConstruct": _Emitter._list, "prim::DictConstruct": _Emitter._dict,
    "prim::TupleConstruct": _Emitter._tuple, "prim::NamedTupleConstruct": _Emitter._tuple,
    "prim::TupleSlice": _Emitter._tuple_slice, "prim::TupleUnpack": _Emitter._unpack_tuple,
    "prim::TupleIndex": lambda emitter, _: emitter.emit("TUPLE_INDEX"), "prim::ListUnpack": _Emitter._unpack_list,
    "prim::GetAttr": _Emitter._attribute, "prim::SetAttr": _Emitter._attribute,
    "prim::isinstance": _Emitter._isinstance, "prim::CreateObject": _Emitter._object,
    "prim::unchecked_cast": _Emitter._cast, "prim::Uninitialized": lambda emitter, _: emitter.emit("UN_INITIALIZED"),
    "prim::tolist": lambda emitter, _: emitter.emit("TO_LIST"), "aten::format": _Emitter._format,
    "prim::Print": _Emitter._print, "prim::CallMethod": _Emitter._call_interface,
}  # fmt: skip
