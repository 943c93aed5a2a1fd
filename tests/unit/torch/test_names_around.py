"""What texts and scripted modules share with the Python around them."""

from __future__ import annotations

import importlib
import io
import pickle

import numpy as np
import pytest

import engine.torch as torch
from engine.lang.errors import ArchiveError, ArgumentError, NotSupportedError
from engine.torch import Tensor, nn

TWO = torch.full((1,), 2.0)


def test_texts_call_the_functions_around_them() -> None:
    def triple(x: Tensor) -> Tensor:
        return x * 3.0

    unit = torch.jit.CompilationUnit("def f(x):\n    return triple(x) + 1.0\n")
    assert unit.f(torch.ones(1)).item() == 4.0
    assert torch.jit.CompilationUnit("def g(x):\n    return torch.nn.init.zeros_(x)\n").g(torch.ones(2)).sum() == 0


def test_settings_of_back_ends_are_constants_of_programs() -> None:
    def program(x: Tensor) -> Tensor:
        if torch.backends.cudnn.enabled:
            return x + 1
        return x

    assert torch.jit.script(program)(torch.zeros(1)).item() == float(torch.backends.cudnn.enabled)


def test_nothing_is_compiled_where_that_is_off() -> None:
    def program(x: Tensor) -> Tensor:
        return x + 1

    torch.jit._state.disable()
    try:
        assert torch.jit.script(program) is program
        assert torch.jit.trace(program, torch.ones(1)) is program
    finally:
        torch.jit._state.enable()
    assert isinstance(torch.jit.script(program), torch.jit.ScriptFunction)


def test_a_function_is_compiled_anew_once_it_is_forgotten() -> None:
    def program(x: Tensor) -> Tensor:
        return x + 1

    first, known = torch.jit.script(program), torch.jit._state._jit_caching_layer
    assert program in known
    assert torch.jit.script(program).graph is first.graph
    del known[program]
    assert program not in known
    assert torch.jit.script(program).graph is not first.graph


def test_graphs_are_shown_inlined_on_request() -> None:
    @torch.jit.script
    def inner(x: Tensor) -> Tensor:
        return x.tanh()

    def outer(x: Tensor) -> Tensor:
        return inner(x)

    compiled = torch.jit.script(outer)
    torch._C._jit_set_inline_everything_mode(True)
    try:
        assert compiled.graph.findNode("aten::tanh") is not None
    finally:
        torch._C._jit_set_inline_everything_mode(False)
    assert compiled.graph.findNode("aten::tanh") is None


def test_forks_are_shown_inlined_on_request() -> None:
    @torch.jit.script
    def inner(x: Tensor) -> Tensor:
        return x.tanh()

    @torch.jit.script
    def outer(x: Tensor) -> Tensor:
        return torch.jit.fork(inner, x).wait()

    assert "aten::tanh" not in str(outer.graph)
    torch._C._jit_set_inline_everything_mode(True)
    try:
        assert "aten::tanh" in str(outer.graph)
    finally:
        torch._C._jit_set_inline_everything_mode(False)
    assert "aten::tanh" not in str(outer.graph)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.layers = nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Tanh())

    def forward(self, x: Tensor, scale: Tensor = TWO) -> Tensor:
        """Scale the result."""
        return self.layers(self.layer(x)) * scale

    @torch.jit.export
    def __len__(self) -> int:
        return 7


def test_modules_answer_as_python_asks() -> None:
    module = torch.jit.script(Net())
    assert (len(module), bool(module), module.forward.__doc__) == (7, True, "Scale the result.")
    assert list(module._modules) == ["layer", "layers"]
    assert list(module.layer._parameters) == ["weight", "bias"]
    assert [each.original_name for each in module.layers] == ["ReLU", "Tanh"]
    with pytest.raises(TypeError, match="'Net' object is not iterable"):
        list(module)
    with pytest.raises(ArgumentError, match="Cannot re-assign modules in a ScriptModule with non-scripted module"):
        module.layer = nn.Linear(2, 2)
    assert str(module._c) == f"ScriptObject <{module._c.qualified_name}>"
    code, constants = module.code_with_constants
    assert code == module.code
    assert (list(vars(constants)), constants.c0.tolist()) == (["c0"], [2.0])


def test_constants_of_a_text_are_at_hand() -> None:
    @torch.jit.script
    def shifted(x: Tensor = TWO) -> Tensor:
        return x

    class Calls(nn.Module):
        def forward(self) -> Tensor:
            return shifted()

    code, constants = torch.jit.script(Calls()).code_with_constants
    assert "CONSTANTS.c0" in code
    assert constants.c0.tolist() == [2.0]


def test_functions_are_no_pickles() -> None:
    @torch.jit.script
    def program(x: Tensor) -> Tensor:
        return x

    with pytest.raises(pickle.PicklingError, match="ScriptFunction cannot be pickled"):
        pickle.dumps(program)


def test_numbers_stand_for_first_operands() -> None:
    x = torch.tensor([1, 2], dtype=torch.int32)
    assert torch.sub(5, x).tolist() == [4, 3]
    assert torch.div(1, x).dtype is torch.float32
    assert (torch.mul(2.5, x).dtype, torch.add(2, 3).item()) == (torch.float32, 5)
    with pytest.raises(TypeError):
        torch.eq(2, x)


def test_einsum_takes_lists_of_dimensions() -> None:
    x, y = torch.randn(2, 3), torch.randn(3, 4)
    assert np.allclose(torch.einsum(x, [0, 1], y, [1, 2], [2, 0]).numpy(), (x @ y).T.numpy(), 1e-6, 1e-6)
    assert torch.einsum(x, [51, 0]).shape == (3, 2)
    with pytest.raises(RuntimeError, match="not within the valid range"):
        torch.einsum(x, [52, 0])


def test_tensordot_takes_dimensions_in_a_tensor() -> None:
    x, y = torch.randn(3, 4, 5), torch.randn(4, 3, 2)
    wanted = torch.tensordot(x, y, dims=([1, 0], [0, 1]))
    assert torch.equal(torch.tensordot(x, y, dims=torch.tensor([[1, 0], [0, 1]])), wanted)
    assert torch.tensordot(x, torch.ones(5, 1), dims=torch.tensor(1)).shape == (3, 4, 1)


def test_lists_are_the_same_only_as_one_object() -> None:
    unit = torch.jit.CompilationUnit("def f():\n    x = [1, 2]\n    return x is [1, 2], x is x\n")
    assert [unit.f() for _ in range(3)] == [(False, True)] * 3


def test_records_of_archives_are_written_and_read_one_by_one() -> None:
    buffer = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(buffer)
    writer.write_record("first", b"abcdef", 3)
    with pytest.raises(ArchiveError, match="only 1 are given"):
        writer.write_record("second", b"x", 2)
    writer.write_end_of_file()
    reader = torch._C.PyTorchFileReader(io.BytesIO(buffer.getvalue()))
    assert (reader.get_all_records(), reader.get_record("first"), reader.version()) == (["first"], b"abc", 0)
    with pytest.raises(ArchiveError):
        reader.get_record("second")
    assert torch.serialization._is_zipfile(io.BytesIO(buffer.getvalue()))


def test_graphs_are_read_without_the_tensors_that_their_text_does_not_show() -> None:
    unit = torch.jit.CompilationUnit("def f():\n    return torch.zeros([4, 4])\n")
    torch._C._jit_pass_constant_propagation(unit.f.graph)
    text = str(unit.f.graph)
    assert "<Tensor>" in text
    with pytest.raises(RuntimeError, match="does not tell the values"):
        torch._C.parse_ir(text)
    graph = torch._C.parse_ir(text, parse_tensor_constants=True)
    assert torch._C._create_function_from_graph("f", graph)().shape == (4, 4)


def test_dropout_is_removed_of_modules_outside_of_training() -> None:
    module = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Dropout()))
    with pytest.raises(ArgumentError, match="in training mode is not yet supported"):
        torch._C._jit_pass_remove_dropout(module._c)
    frozen = torch.jit.freeze(module.eval())
    torch._C._jit_pass_remove_dropout(frozen._c)
    assert frozen.graph.findNode("aten::dropout") is None


def test_pickles_of_archives_name_functions() -> None:
    names = importlib.import_module("engine.torch").jit._pickle
    assert names.build_intlist([1, 2]) == [1, 2]
    assert names.restore_type_tag({"a": 1}, "Dict[str, int]") == {"a": 1}


def test_programs_and_traces_count_when_they_run() -> None:
    counters = torch.jit._logging

    def counting(x: Tensor) -> Tensor:
        start = torch.jit._logging.time_point()
        for _ in range(3):
            torch.jit._logging.add_stat_value("rounds", 2)
            x = x + 1
        torch.jit._logging.add_stat_value("time", torch.jit._logging.time_point() - start)
        return x

    x = torch.ones(2)
    scripted, traced = torch.jit.script(counting), torch.jit.trace(counting, x, check_trace=False)
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    loaded = torch.jit.load(io.BytesIO(buffer.getvalue()))
    logger = counters.LockingLogger()
    before = counters.set_logger(logger)
    try:
        for program, count in ((scripted, 6), (loaded, 12), (traced, 18), (counting, 24)):
            assert program(x).tolist() == [4, 4]
            assert logger.get_counter_val("rounds") == count
    finally:
        counters.set_logger(before)
    assert logger.get_counter_val("time") > 0


def test_names_that_packages_mention_when_they_are_imported() -> None:
    dispatched = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    both = dispatched | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
    assert both.has(torch._C.DispatchKey.AutocastCUDA)
    assert both & dispatched == dispatched

    def rule(x: Tensor) -> Tensor:
        return x

    symbolic = importlib.import_module("engine.torch").onnx.symbolic_helper
    assert torch.library.register_fake("a::b")(rule) is torch.library.register_fake("a::b", rule) is rule
    assert symbolic.parse_args("v")(rule) is rule
    with torch._C.DisableTorchFunctionSubclass():
        assert rule(torch.ones(1)).item() == 1
    with pytest.raises(NotSupportedError, match="there is one process"):
        nn.SyncBatchNorm(3)
    assert not hasattr(nn.SyncBatchNorm, "_mark")
    with pytest.raises(NotSupportedError, match="enabled=False"):
        torch._C._ExcludeDispatchKeyGuard(both)


def test_conditions_are_asserted() -> None:
    def checked(x: Tensor, size: int) -> Tensor:
        torch._assert(x.size(0) == size, f"expected {size}")
        return x

    x = torch.ones(2)
    for program in (checked, torch.jit.script(checked)):
        assert program(x, 2) is not None
        with pytest.raises((AssertionError, torch.jit.Error), match="expected 3"):
            program(x, 3)
