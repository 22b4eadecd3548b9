"""What may be called from Python, and what only from compiled functions."""

from __future__ import annotations

from pathlib import Path

import pytest

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
