"""The names of `engine`: each found when asked for."""

import pickle
import subprocess
import sys
from operator import attrgetter

import pytest

import engine
import engine.torch as torch
from engine.torch import names


@pytest.mark.parametrize("name", [*names.HOMES, *names.MODULES])
def test_every_name_has_what_it_promises(name: str) -> None:
    assert getattr(engine, name) is names.find(name)
    assert getattr(engine.torch, name) is getattr(engine, name)


def test_dtypes_and_operators_are_there_by_their_names_in_torch() -> None:
    assert engine.float32.name == "float32"
    assert engine.long is engine.int64
    assert engine.add(engine.tensor([1.0]), engine.tensor([2.0])).tolist() == [3.0]
    assert engine.add(engine.tensor([1.0]), engine.tensor([2.0]), alpha=2).tolist() == [5.0]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'CompilationUnits'; did you mean 'CompilationUnit'"):
        engine.CompilationUnits  # noqa: B018


def test_python_does_not_find_special_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError):
        engine.__wrapped__  # noqa: B018


def test_names_are_listed() -> None:
    assert {"script", "tensor", "float32", "add", "jit"} <= set(dir(engine))


def test_importing_the_engine_imports_nothing_of_it_yet() -> None:
    program = "import engine, sys; print([m for m in sys.modules if m.startswith('engine.')])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_nearest_name_is_looked_for_when_the_error_is_read() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'releu'; did you mean 'relu'"):
        engine.releu  # noqa: B018


def test_loading_imports_no_layers_until_one_is_asked_for() -> None:
    program = (
        "import sys, engine; engine.load; first = 'engine.torch.nn.modules.linear' in sys.modules\n"
        "engine.nn.Linear; print(first, 'engine.torch.nn.modules.linear' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False True"


def test_every_layer_is_in_the_file_that_the_table_says() -> None:
    layers = engine.nn.modules
    for name in layers.__all__:
        assert getattr(engine.nn, name) is getattr(layers, name)
        assert getattr(layers, name).__module__ == layers.HOMES[name]
    assert {"Linear", "functional", "DataParallel"} <= {*dir(engine.nn)}


@pytest.mark.parametrize("path", ["relu", "add", "conv2d", "nn.functional.relu", "nn.functional.linear", "Tensor.add_"])
def test_functions_have_the_names_that_people_call_them_by(path: str) -> None:
    function = attrgetter(path)(torch)
    assert function.__name__ == path.rpartition(".")[2]


def test_functions_are_pickled_by_name() -> None:
    relu, norm = torch.relu, torch.linalg.norm
    assert (relu.__name__, relu.__qualname__, relu.__module__) == ("relu", "relu", "engine.torch")
    assert (norm.__name__, norm.__qualname__) == ("linalg_norm", "norm")
    assert pickle.loads(pickle.dumps(relu)) is relu
    assert pickle.loads(pickle.dumps(norm)) is norm


@pytest.mark.parametrize("path", ["nn.functional", "linalg", "fft", "special"])
def test_namespaces_list_functions_that_are_there_and_nothing_of_their_own_sources(path: str) -> None:
    namespace = attrgetter(path)(engine)
    names = dir(namespace)
    assert len(names) > 15 and all(callable(getattr(namespace, name)) for name in names)
    assert not {"Any", "annotations", "functions", "Callable"} & {*names, *dir(engine)}
