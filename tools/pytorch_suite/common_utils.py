"""In place of `torch.testing._internal.common_utils`: what the tests of TorchScript use of it.

Comparisons are `torch.testing.assert_close`; marks of other platforms and build options leave tests as they are.
"""
# ruff: noqa: PT009 - the tests are unittest's

import enum
import functools
import os
import random
import tempfile
import unittest
import warnings
from contextlib import contextmanager, nullcontext
from numbers import Number
from pathlib import Path

import expecttest
import numpy as np
import torch
from torch.testing import make_tensor as make_tensor


class ProfilingMode(enum.Enum):
    LEGACY = 1
    SIMPLE = 2
    PROFILING = 3


GRAPH_EXECUTOR = ProfilingMode.PROFILING
IS_WINDOWS = IS_MACOS = IS_SANDCASTLE = IS_FBCODE = TEST_WITH_ROCM = TEST_CUDA = TEST_BAILOUTS = TEST_NUMBA = False
TEST_MKL = True


# -- marks


def as_it_is(test):
    return test


def leaving_as_it_is(*arguments, **options):
    """A decorator, with arguments or without."""
    plain = len(arguments) == 1 and callable(arguments[0]) and not options
    return arguments[0] if plain else as_it_is


skipIfCompiledWithoutNumpy = skipIfCrossRef = slowTest = skipIfNoXNNPACK = as_it_is
skipIfTorchDynamo = skipIfLegacyJitExecutor = skipIfRocm = leaving_as_it_is
skipCUDAMemoryLeakCheckIf = skipCUDANonDefaultStreamIf = leaving_as_it_is


class NoTest: ...


def suppress_warnings(function):
    @functools.wraps(function)
    def quiet(*arguments, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments, **options)

    return quiet


def find_library_location(name):
    return Path("/nonexistent") / name


# -- contexts


@contextmanager
def freeze_rng_state():
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


@contextmanager
def set_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def TemporaryFileName(*arguments, **options):
    with tempfile.NamedTemporaryFile(*arguments, delete=False, **options) as file:
        pass
    try:
        yield file.name
    finally:
        os.unlink(file.name)


@contextmanager
def enable_profiling_mode_for_profiling_tests():
    profiling = torch._C._jit_set_profiling_executor(True)
    optimizing = torch._C._get_graph_executor_optimize(True)
    try:
        yield
    finally:
        torch._C._jit_set_profiling_executor(profiling)
        torch._C._get_graph_executor_optimize(optimizing)


enable_profiling_mode = enable_profiling_mode_for_profiling_tests


@contextmanager
def num_profiled_runs(count):
    before = torch._C._jit_set_num_profiled_runs(count)
    try:
        yield
    finally:
        torch._C._jit_set_num_profiled_runs(before)


def _profiled_first(call):
    """Calls with `profile_and_replay` run twice, the first time to be profiled.

    The tests pass it to compiled functions, which know no such argument in torch either: torch's own helpers put this
    around their calls.
    """

    @functools.wraps(call)
    def called(self, *arguments, **options):
        if "profile_and_replay" not in options:
            return call(self, *arguments, **options)
        del options["profile_and_replay"]
        with enable_profiling_mode_for_profiling_tests():
            call(self, *arguments, **options)
            return call(self, *arguments, **options)

    return called


for _compiled in (torch.jit.ScriptFunction, torch.jit.ScriptModule):
    _compiled.__call__ = _profiled_first(_compiled.__call__)


# -- values


def is_iterable(value):
    return hasattr(value, "__iter__")


def is_iterable_of_tensors(value, include_empty=False):
    if isinstance(value, torch.Tensor) or not hasattr(value, "__len__"):
        return False
    return include_empty if not len(value) else all(isinstance(each, torch.Tensor) for each in value)


def noncontiguous_like(tensor):
    if not tensor.is_contiguous() or not tensor.dim():
        return tensor
    result = torch.repeat_interleave(tensor.detach(), 2, dim=-1)[..., 1::2]
    return result.requires_grad_(tensor.requires_grad)


def first_sample(test, samples):
    return next(iter(samples))


def gradcheck(function, inputs, **options):
    return torch.autograd.gradcheck(function, inputs, **options)


def gradgradcheck(function, inputs, grad_outputs=None, **options):
    return torch.autograd.gradgradcheck(function, inputs, grad_outputs, **options)


def to_gpu(value, type_map=None):
    return value


def run_tests(*arguments): ...


_SEQUENCES = (list, tuple, range, torch.Size, torch._C.ScriptList)


class TestCase(expecttest.TestCase):
    """Equality of tensors, and of what holds them, within the limits of their dtypes."""

    precision = 0
    rel_tol = 0

    def setUp(self):
        torch.manual_seed(1234)
        random.seed(1234)
        np.random.seed(1234)

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, exact_dtype=True, **options):
        limits = {"atol": atol, "rtol": rtol, "exact_dtype": exact_dtype}
        x, y = (torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in (x, y))
        if isinstance(x, torch.Tensor) and isinstance(y, Number):
            x, y = x.reshape(()), torch.tensor(y, dtype=x.dtype)
        elif isinstance(y, torch.Tensor) and isinstance(x, Number):
            x, y = torch.tensor(x, dtype=y.dtype), y.reshape(())
        elif isinstance(x, torch.Tensor) and isinstance(y, _SEQUENCES):
            y = torch.tensor(y)
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            self._assert_tensors(x, y, msg, **limits)
        elif isinstance(x, dict) and isinstance(y, dict):
            super().assertEqual(set(x), set(y), msg)
            for key in x:
                self.assertEqual(x[key], y[key], msg, **limits)
        elif isinstance(x, _SEQUENCES) and isinstance(y, _SEQUENCES):
            super().assertEqual(len(x), len(y), msg)
            for left, right in zip(x, y, strict=True):
                self.assertEqual(left, right, msg, **limits)
        elif not self._near(x, y, atol, rtol):
            super().assertEqual(x, y, msg if isinstance(msg, str) else None)

    def _assert_tensors(self, x, y, msg, atol, rtol, exact_dtype):
        if x.layout != torch.strided or y.layout != torch.strided:
            x, y = x.to_dense(), y.to_dense()
        if x.is_quantized:
            x, y = x.dequantize(), y.dequantize()
        if exact_dtype:
            super().assertEqual(x.dtype, y.dtype, msg)
        super().assertEqual(x.shape, y.shape, msg)
        limits = {} if atol is None and rtol is None else {"atol": atol or 0, "rtol": rtol or 0}
        torch.testing.assert_close(x.detach(), y.detach().to(x.dtype), equal_nan=True, check_device=False, **limits)

    def _near(self, x, y, atol, rtol):
        numbers = (int, float, complex)
        if not (isinstance(x, numbers) and isinstance(y, numbers)) or (isinstance(x, int) and isinstance(y, int)):
            return False
        return (x != x and y != y) or x == y or abs(x - y) <= max(atol or 1e-7, (rtol or 1e-7) * abs(y))

    def assertNotEqual(self, x, y, msg=None, **options):
        try:
            self.assertEqual(x, y, **options)
        except AssertionError:
            return
        raise AssertionError(msg or f"{x!r} == {y!r}")

    def assertLeaksNoCudaTensors(self, name=None):
        return nullcontext()

    @contextmanager
    def assertWarnsOnceRegex(self, category, regex=""):
        with self.assertWarnsRegex(category, regex):
            yield

    def assertNotWarn(self, function, msg=""):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            function()
        self.assertTrue(not seen, msg)

    def assertExpected(self, text, subname=None):
        raise unittest.SkipTest("files of expected texts are not read")

    assertExpectedStripMangled = runWithPytorchAPIUsageStderr = assertExpected
