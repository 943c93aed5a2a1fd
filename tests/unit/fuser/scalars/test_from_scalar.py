"""Graphs of numbers, lists and dicts as machine code, against the plans that run them in Python."""

import _thread
import copy
import random
import resource
import struct
import threading

import pytest

import engine
from engine.executor.plans.executor import executor_of
from engine.fuser.scalars import from_scalar, scalar_call
from engine.fuser.scalars.scalar_writer import Unsupported
from tests.unit.fuser.scalar_programs import FLOATS, INTS, Generator

pytest.importorskip("llvmlite")


def lowered(source, *example):
    function = engine.CompilationUnit(source).f
    graph = executor_of(function._function).plan_for(example).graph
    return function, from_scalar.lower(graph)


class Failed(Exception):
    """A node failed, with these inputs."""

    def __init__(self, node, inputs):
        super().__init__(node)
        self.node, self.inputs = node, inputs


def native_of(program):
    """The compiled program, which raises where its kernel fails."""

    def fallback(*args):
        raise AssertionError(f"the kernel does not take {args}")

    return scalar_call.function_of("f", program, scalar_call.binding_of(program), fallback, Failed)


def bits(value):
    """The value as something that is equal only to what is the same bit by bit, but for NaN."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("d", value)
    if isinstance(value, (list, tuple)):
        return type(value), [bits(each) for each in value]
    if isinstance(value, dict):
        return [(bits(key), bits(each)) for key, each in value.items()]
    return type(value), value


def outcome(function, args):
    try:
        return function(*copy.deepcopy(args)), None
    except RuntimeError as error:
        return None, error


def arguments(seed):
    chosen = random.Random(seed)
    for _ in range(8):
        number = chosen.choice(INTS) if chosen.random() < 0.4 else chosen.randrange(-9, 9)
        values = [chosen.randrange(-3, 9) for _ in range(chosen.randrange(5))]
        yield number, chosen.randrange(-4, 4), chosen.choice(FLOATS), chosen.random() < 0.5, values


@pytest.mark.parametrize("seed", range(14))
def test_generated_programs_give_what_plans_give(seed):
    function, program = lowered(Generator(seed).program(), 1, 2, 0.5, True, [1])
    native = native_of(program)
    for args in arguments(seed):
        want, error = outcome(function, args)
        mine = copy.deepcopy(args)
        try:
            found = native(*mine)
        except Failed as failed:
            node = failed.node
            assert mine == args
            assert error is None or error.range.start == node.range.start
            assert error is not None or node.kind == "aten::remainder"  # of a huge divisor: not an error
        else:
            assert error is None
            assert bits(found) == bits(want), args


@pytest.mark.parametrize(
    ("body", "args"),
    [
        ("return a // b", [(-(2**63), -1), (7, -2), (-7, 2), (1, 0)]),
        ("return a % b", [(-(2**63), -1), (-7, 2), (7, -2), (5, 0), (2**62 - 1, -3)]),
        ("return (a % 8) * 10 + a % -8", [(-(2**63), 0), (-1, 0), (13, 0)]),
        ("return a // 8 + a // -8 + a // -1", [(-(2**63), 0), (-1, 0), (13, 0)]),
        ("return a * b + a - b", [(2**62, 4), (-(2**63), 2**63 - 1)]),
        ("return a << b | a >> b", [(3, 64), (3, -1), (-5, 2)]),
        ("return abs(a) + (-b)", [(-(2**63), -(2**63))]),
        ("return len([i for i in range(a, b, 3)]) - len([i for i in range(b, a, -2)])", [(0, 10), (10, 0), (-5, 5)]),
        ("return a / b", [(2**53 + 1, 3), (1, 0), (-1, 0), (7575028023959442908, 2059669705361369747)]),
        ("return a ** b", [(2, 3), (2, -3), (0, -1), (-2, 63)]),
        ("return int(a / b), math.ceil(a / 2), math.floor(b / 2)", [(1, 0), (0, 0), (2**62, 3)]),
        ("return divmod(a, b)", [(7, -2), (-7, 2), (-(2**63), -1), (1, 0)]),
        ("return float(a) % b, float(a) // b, math.fmod(a, b)", [(7, -2), (-7, 2), (5, 0)]),
        ("return math.log(a, b), math.atan2(a, b), math.degrees(a)", [(7, 2), (0, 3), (-7, 2)]),
        ("return min(a, 0.5), max(b, -0.5), round(a / b)", [(1, 2), (-1, 2), (7, -2)]),
    ],
)
def test_arithmetic(body, args):
    function, program = lowered(f"def f(a: int, b: int):\n    {body}\n", *args[0])
    native = native_of(program)
    for each in args:
        want, error = outcome(function, each)
        if error is None:
            assert bits(native(*each)) == bits(want)
        else:
            with pytest.raises(Failed):
                native(*each)


ALIASES = """
def f(xs: List[int], ys: List[int], d: Dict[int, float]) -> Tuple[List[int], List[int], int]:
    zs = xs
    zs.append(1)
    ys.append(2)
    d[len(xs)] = 0.5
    return zs, ys, len(xs)
"""


def test_lists_and_dicts_are_themselves():
    _, program = lowered(ALIASES, [], [], {})
    native = native_of(program)
    one, table = [5], {7: 1.5}
    assert native(one, one, table) == (one, one, 3)
    assert one == [5, 1, 2]
    assert table == {7: 1.5, 3: 0.5}
    first, second, _ = native(one, [], table)
    assert first is one
    assert second == [2]


def test_failing_changes_nothing():
    _, program = lowered("def f(xs: List[int], i: int) -> int:\n    xs.append(4)\n    return xs[i]\n", [], 0)
    native, values = native_of(program), [1]
    with pytest.raises(Failed) as failed:
        native(values, 9)
    assert failed.value.node.kind == "aten::__getitem__"
    assert failed.value.inputs == [[1, 4], 9]
    assert values == [1]
    assert native(values, -1) == 4
    assert values == [1, 4]


MANY_LISTS = """
def f(n: int) -> int:
    total = 0
    kept = [0]
    for i in range(n):
        values = [i] * 1000
        if i % 2 == 0:
            kept = values + kept[:5]
        total += len(kept) + values[7]
    return total
"""


def test_memory_of_a_loop_is_given_back():
    function, program = lowered(MANY_LISTS, 3)
    native = native_of(program)
    assert native(100) == function(100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    native(100_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


LONG_LOOPS = {
    "while": "x = 1\n    while x != 0:\n        x = x * 3 + n\n        n += x % 2\n    return n",
    "for": "x = 1.5\n    for i in range(n):\n        x = x * 0.5 + 1.0 / x\n    return int(x)",
    "nested": "x = 1\n    for i in range(n):\n        for j in range(3):\n            x = x * 5 + j ^ i\n    return x",
    "calls": "d = {1: 1}\n    for i in range(n):\n        d[i % 1000] = d.get(i % 77, 0) + i\n    return len(d)",
}


@pytest.mark.parametrize("kind", LONG_LOOPS)
def test_long_loops_let_others_run_and_can_be_interrupted(kind):
    _, program = lowered(f"def f(n: int) -> int:\n    {LONG_LOOPS[kind]}\n", 2)
    native, begun = native_of(program), threading.Event()

    def interrupt():
        begun.wait()
        _thread.interrupt_main()

    other = threading.Thread(target=interrupt)
    other.start()
    begun.set()
    with pytest.raises(KeyboardInterrupt):
        native(2_000_000_000)
    other.join()


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: str) -> int:\n    return len(x)\n",
        "def f(x: int) -> int:\n    print(x)\n    return x\n",
        "def f(x: List[List[int]]) -> int:\n    return len(x)\n",
        "def f(x: Optional[int]) -> int:\n    return 1 if x is None else x\n",
        "def f(x: Tensor) -> int:\n    return x.dim()\n",
    ],
)
def test_other_values_are_left_to_other_means(source):
    function = engine.CompilationUnit(source).f
    with pytest.raises(Unsupported):
        from_scalar.lower(executor_of(function._function).graph)


LEAVING_EARLY = """
def f(a: int, b: int) -> List[int]:
    out: List[int] = []
    for i in range(4):
        if i == a:
            continue
        for j in range(4):
            if i + j == b:
                return out
            out.append(i * j)
    return out + [a, b]
"""


def test_loops_may_be_left_early():
    function, program = lowered(LEAVING_EARLY, 1, 2)
    native = native_of(program)
    for a in range(5):
        for b in range(8):
            assert native(a, b) == function(a, b)


SORTING = """
def f(xs: List[int], ys: List[float]) -> Tuple[List[int], List[int], List[float], List[float], int]:
    descending = xs.copy()
    descending.sort(reverse=True)
    ys.sort(reverse=True)
    return sorted(xs), descending, sorted(ys), ys, math.gcd(xs[0], xs[1])
"""


def test_sorting_keeps_the_order_of_what_is_equal():
    function, program = lowered(SORTING, [1, 2], [0.5])
    native, chosen = native_of(program), random.Random(3)
    for length in (2, 3, 8, 9, 64, 200):
        numbers = [chosen.choice((*INTS, -(2**63))) for _ in range(length)]
        reals = [chosen.choice((0.0, -0.0, 1.5, -2.5, 1e300)) for _ in range(length)]
        assert bits(native(numbers, [*reals])) == bits(function(numbers, [*reals]))
    with pytest.raises(Failed):
        native([1, 2], [0.5, float("nan")])


def test_messages_of_errors_are_not_computed():
    source = "def f(n: int) -> int:\n    if n < 0:\n        raise ValueError('not ' + str(n))\n    return n\n"
    _, program = lowered(source, 1)
    native = native_of(program)
    assert native(3) == 3
    with pytest.raises(Failed):
        native(-3)
