"""What may be called from Python, and what only from compiled functions."""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import types
from numba.core.errors import NumbaError

from streamwatch.core.jit import detached, entry, hot, inner


@inner
def one_more(n):
    return n + 1


@hot
def doubled(n):
    return 2 * n


@entry
def called_from_python(n):
    return doubled(one_more(n))


@detached
def called_from_a_thread(n):
    return one_more(n)


def test_python_calls_entries_and_they_call_inner_functions() -> None:
    assert called_from_python(4) == 10
    assert called_from_a_thread(4) == 5


@pytest.mark.parametrize("function", [one_more, doubled])
def test_an_inner_function_refuses_a_call_from_python_and_names_itself(function) -> None:
    called_from_python(4)  # also once it is compiled
    name = f"{function.__module__}.{function.__qualname__}"
    with pytest.raises(TypeError, match=f"{name} is called by compiled functions only; .*`entry`"):
        function(4)


def test_only_entries_have_a_wrapper_for_python_and_none_has_one_for_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @entry
    def compiled_now(n):
        return doubled(one_more(n))

    assert compiled_now(4) == 10
    for function, wrapped in ((compiled_now, True), (one_more, False), (doubled, False)):
        (compiled,) = function.dispatcher.overloads.values()
        defined = {f.name for f in compiled.library._final_module.functions if not f.is_declaration}
        assert (compiled.fndesc.llvm_cpython_wrapper_name in defined) == wrapped
        assert compiled.fndesc.llvm_cfunc_wrapper_name not in defined


def test_only_entries_have_machine_code_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @inner
    def three_more(n):
        return one_more(n) + 2

    @entry
    def compiled_now(n):
        return doubled(three_more(n))

    assert compiled_now(4) == 14
    for function, emitted in ((compiled_now, True), (three_more, False), (doubled, False)):
        (compiled,) = function.dispatcher.overloads.values()
        assert bool(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)) == emitted


def test_a_function_is_compiled_once_for_all_numbers_written_in_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @inner
    def weighed(value, weight, is_doubled):
        return value * weight * (2 if is_doubled else 1)

    @entry
    def compiled_now(n):
        return weighed(n, 10, True) + weighed(n, 100, is_doubled=False) + weighed(7, n, n > 0)

    assert compiled_now(3) == 60 + 300 + 42
    assert weighed.signatures == [(types.int64, types.int64, types.boolean)]


@inner
def _sum_at(arrays, numbers, row):
    return _number_at(arrays, row) + numbers[row, 1]


@inner
def _number_at(arrays, row):
    return arrays[0][row] + arrays[1][row].a


def test_functions_compiled_by_numba_alone_pass_inner_ones_what_they_mean() -> None:
    @numba.njit
    def as_numba_compiles(arrays, numbers, row):
        return _sum_at(arrays, numbers, row) - 1

    @entry
    def after_it(arrays, numbers, row):
        return _sum_at(arrays, numbers, row) - 2

    records = np.zeros(3, [("b", np.float32, (3,)), ("a", np.int64)])
    records["a"] = 10, 20, 30
    arrays = np.arange(6)[::2], records
    numbers = np.arange(100, 109).reshape(3, 3)
    assert as_numba_compiles(arrays, numbers, 1) == 2 + 20 + 104 - 1
    assert after_it(arrays, numbers, 2) == 4 + 30 + 107 - 2


def test_a_compiled_function_that_makes_an_array_is_not_compiled() -> None:
    @entry
    def make(n):
        return np.zeros(n, np.int64)[0]

    with pytest.raises(NumbaError, match="Only accept returning of array passed into the function"):
        make(4)


def test_an_array_among_what_is_returned_is_refused_and_the_function_named() -> None:
    @entry
    def give_back(array):
        return array.shape[0], array

    with pytest.raises(TypeError, match=r"give_back.* returns .*array\(int64.*write into arrays"):
        give_back(np.zeros(4, np.int64))


def test_no_call_keeps_an_array_or_lets_it_go() -> None:
    @entry
    def add_up(array):
        part = array[1:]
        total = 0
        for k in range(part.shape[0]):
            total += part[k]
        return total

    array = np.arange(5)
    before = sys.getrefcount(array)
    for _ in range(1_000):
        assert add_up(array) == 10
    assert sys.getrefcount(array) == before
