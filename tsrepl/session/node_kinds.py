"""The kinds of nodes that no operator's row tells of: control flow, values, calls, and what passes put in.

In: nothing.  Out: for each kind, its meaning and a node as graphs show it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class NodeKind(NamedTuple):
    """`meaning` is a sentence or two, `example` text of a graph."""

    meaning: str
    example: str


NODE_KINDS: Final[dict[str, NodeKind]] = {
    "prim::Constant": NodeKind(
        "A value that is known while compiling: a number, text, tensor, function or None.",
        '%2 : int = prim::Constant[value=1]()',
    ),
    "prim::If": NodeKind(
        "A branch: block0 runs where the input is true, block1 elsewhere; the node's outputs are what the block gives.",
        "%y : Tensor = prim::If(%c)\n  block0():\n    -> (%a)\n  block1():\n    -> (%b)",
    ),
    "prim::Loop": NodeKind(
        "A loop, for and while alike. Its inputs are the most rounds, whether a first one runs, and the variables that "
        "it changes; the block takes the number of the round and these, and gives whether another round follows, and "
        "what they have become. The outputs are the variables behind the loop.",
        "%s : int = prim::Loop(%n, %true, %s.1)\n  block0(%i : int, %s.2 : int):\n    %3 : int = aten::add(%s.2, %i)\n"
        "    -> (%true, %3)",
    ),
    "prim::With": NodeKind("A with statement, before prim::Enter and prim::Exit stand around its body.", ""),
    "prim::Enter": NodeKind(
        "Calls __enter__ of a context manager: a with block begins.", "%2 : Tensor = prim::Enter(%c)",
    ),
    "prim::Exit": NodeKind(
        "Calls __exit__ of a context manager: a with block is over.", "%3 : NoneType = prim::Exit(%c)",
    ),
    "prim::ListConstruct": NodeKind(
        "Makes a list of its inputs.", "%3 : int[] = prim::ListConstruct(%1, %2)"
    ),
    "prim::ListUnpack": NodeKind(
        "The items of a list as values of their own; another length is an error.",
        "%a : int, %b : int = prim::ListUnpack(%3)",
    ),
    "prim::TupleConstruct": NodeKind(
        "Makes a tuple of its inputs.", "%3 : (Tensor, int) = prim::TupleConstruct(%x, %n)"
    ),
    "prim::NamedTupleConstruct": NodeKind("Makes a named tuple of its inputs.", ""),
    "prim::TupleUnpack": NodeKind(
        "The items of a tuple as values of their own.", "%a : Tensor, %b : int = prim::TupleUnpack(%3)"
    ),
    "prim::TupleIndex": NodeKind("One item of a tuple.", "%a : Tensor = prim::TupleIndex(%3, %0)"),
    "prim::TupleSlice": NodeKind(
        "Some items of a tuple, as a tuple.", "%b : (int) = prim::TupleSlice[beg=1, end=2](%3)",
    ),
    "prim::DictConstruct": NodeKind(
        "Makes a dict: keys and values take turns.", "%3 : Dict(str, int) = prim::DictConstruct(%k, %v)"
    ),
    "prim::GetAttr": NodeKind(
        "An attribute of an object: a parameter, a module inside, a number.",
        '%w : Tensor = prim::GetAttr[name="weight"](%self)',
    ),
    "prim::SetAttr": NodeKind(
        "Gives an attribute of an object another value.", ' = prim::SetAttr[name="count"](%self, %n)'
    ),
    "prim::CreateObject": NodeKind(
        "Makes an object of a class; __init__ is called behind it.", "%p : Pair = prim::CreateObject()",
    ),
    "prim::CallMethod": NodeKind(
        "Calls a method of a module or object, which is the first input. The pass inline puts its body in its place.",
        '%y : Tensor = prim::CallMethod[name="forward"](%fc1, %x)',
    ),
    "prim::CallFunction": NodeKind(
        "Calls a function, which is the first input. The pass inline puts its body in its place.",
        '%f : Function = prim::Constant[name="g"]()\n%y : Tensor = prim::CallFunction(%f, %x)',
    ),
    "prim::Print": NodeKind("print: shows its inputs.", " = prim::Print(%x)"),
    "prim::RaiseException": NodeKind("raise: the program fails with this message.", ""),
    "prim::isinstance": NodeKind(
        "True if a value is of one of some types.", "%b : bool = prim::isinstance[types=[int]](%v)",
    ),
    "prim::unchecked_cast": NodeKind(
        "The same value under a narrower type, which the program has checked before.",
        "%x : Tensor = prim::unchecked_cast(%maybe)",
    ),
    "prim::Uninitialized": NodeKind("A value that is never read: it stands where a branch has no other.", ""),
    "prim::fork": NodeKind(
        "torch.jit.fork: its block runs as a task of its own; the output is a Future.",
        "%3 : Future(Tensor) = prim::fork(%x)",
    ),
    "prim::awaitable": NodeKind("A call that runs when its value is asked for.", ""),
    "prim::PythonOp": NodeKind("A function of Python, as a trace has recorded it.", "%y : Tensor = ^scale(2)(%x)"),
    "prim::IgnoredPythonOp": NodeKind("A method marked with torch.jit.ignore: Python runs it.", ""),
    "prim::Closure": NodeKind("A function that sees the values around it.", ""),
    "prim::Param": NodeKind("The inputs of a graph or block; it stands first.", ""),
    "prim::Return": NodeKind("The outputs of a graph or block; it stands last.", ""),
    "prim::ConstantChunk": NodeKind(
        "chunk with numbers that are known while compiling.",
        "%a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)",
    ),
    "prim::VarConcat": NodeKind("cat of values instead of a list: the pass use_variadic makes it.", ""),
    "prim::VarStack": NodeKind("stack of values instead of a list: the pass use_variadic makes it.", ""),
    "prim::IfThenElse": NodeKind("A choice between two values that are computed anyway, without blocks.", ""),
    "prim::MMTreeReduce": NodeKind("A sum of products of matrices as one product: the pass batch_mm makes it.", ""),
    "prim::MMBatchSide": NodeKind("Products with one matrix in common as one product: the pass batch_mm makes it.", ""),
    "prim::profile": NodeKind(
        "Notes what a value is, dtype and sizes, while a function is profiled.", "%2 : Tensor = prim::profile(%x)",
    ),
    "prim::profile_ivalue": NodeKind("Notes what a value that is no tensor is, while a function is profiled.", ""),
    "prim::TypeCheck": NodeKind("True if tensors are as a plan was made for: dtype, sizes, strides, gradients.", ""),
    "prim::Guard": NodeKind("A value that a plan has checked to be as it was made for.", ""),
    "prim::BailOut": NodeKind("A check of a plan: where it fails, the interpreter goes on from there.", ""),
    "prim::BailoutTemplate": NodeKind("The rest of the program behind a check that fails.", ""),
    "prim::FallbackGraph": NodeKind("The general form of a group, which runs where a check fails.", ""),
    "prim::FusionGroup": NodeKind("Operators that one kernel computes.", ""),
    "prim::TensorExprGroup": NodeKind("Operators that one kernel computes; %kernels shows it.", ""),
    "prim::FunctionalGraph": NodeKind(
        "A part of a graph that changes nothing: the pass create_functional_graphs makes it.", "",
    ),
    "prim::DifferentiableGraph": NodeKind("A part of a graph that is differentiated as one; %autodiff shows it.", ""),
    "prim::GradOf": NodeKind("Formulas of a gradient, which run where the gradient that they need is there.", ""),
    "prim::AutogradZero": NodeKind("A gradient that is zero, without a tensor.", ""),
    "prim::AutogradAdd": NodeKind("The sum of two gradients, each of which may be zero.", ""),
    "prim::AutogradAnyNonZero": NodeKind("True if one of some gradients is there.", ""),
    "prim::AutogradAllNonZero": NodeKind("True if all of some gradients are there.", ""),
    "prim::ModuleContainerIndex": NodeKind(
        "A part of a ModuleList or ModuleDict by a number or key of the program.", "",
    ),
    "prim::ReturnStmt": NodeKind("return, before the exits of a function are rewritten as branches.", ""),
    "prim::BreakStmt": NodeKind("break, before the exits of a loop are rewritten as branches.", ""),
    "prim::ContinueStmt": NodeKind("continue, before the exits of a loop are rewritten as branches.", ""),
    "prim::LoopContinuation": NodeKind("Whether another round of a loop follows.", ""),
    "prim::Load": NodeKind("Reads a variable, before variables are values.", ""),
    "prim::Store": NodeKind("Assigns a variable, before variables are values.", ""),
    "prim::EmptyListLiteral": NodeKind("An empty list whose type its uses will tell.", ""),
}  # fmt: skip
