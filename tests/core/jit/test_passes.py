"""Passes of Numba that are left out change no instruction, and a new version that has others is noticed."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.compiler import Compiler, DefaultPassBuilder, Flags

from streamwatch.core.jit import dispatcher, entry, hot, inner
from streamwatch.core.jit.dispatcher import PASSES, EntryCompiler

LEFT_OUT = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}


def passes_of_numba() -> list[type]:
    state = SimpleNamespace(func_ir=None, flags=Flags())
    state.flags.enable_ssa = True
    return [each for each, _ in DefaultPassBuilder.define_nopython_pipeline(state).passes]


def test_numba_has_no_passes_but_those_that_are_taken_or_left_out_and_in_that_order() -> None:
    taken = [each for each, _ in PASSES]
    theirs = passes_of_numba()
    assert {each.__name__ for each in theirs} - {each.__name__ for each in taken} == LEFT_OUT
    assert list(dict.fromkeys(each for each in theirs if each in taken)) == taken


class Sums(NamedTuple):
    counts: np.ndarray
    sums: np.ndarray


PLACE = np.dtype([("count", np.int64), ("mean", np.float64), ("last", np.float64, 4)])


def compiled_anew(folder: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[float]]:
    """Assembly, and results, of a function with what ours are made of, compiled here and now."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", folder)

    @hot
    def enter(place, value):
        place.count += 1
        place.mean += (value - place.mean) / place.count
        place.last[place.count % 4] = value

    @inner
    def spread(place, at_most):
        total = 0.0
        for k in range(min(place.count, 4)):
            off = abs(place.last[k] - place.mean)
            if off > at_most:
                continue
            total += off if place.count > 1 else np.sqrt(off)
        return total, place.count

    @entry
    def observe(values, places, sums):
        for k, value in enumerate(values):
            place = places[k % places.shape[0]]
            enter(place, value)
            off, count = spread(place, 3.0)
            sums.sums[k % 2] += off
            sums.counts[k % 2] = max(count, sums.counts[k % 2])
        return sums.sums.sum()

    values = np.sin(np.arange(100)) * 4
    places = np.zeros(3, PLACE)
    sums = Sums(np.zeros(2, np.int64), np.zeros(2))
    total = observe(values, places, sums)
    (code,) = observe.dispatcher.inspect_asm().values()
    return re.sub(r"B\d+v\d+", "", code), [total, *sums.counts, *sums.sums, *places["mean"]]


def test_the_code_is_the_same_to_the_instruction_as_with_all_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = compiled_anew(str(tmp_path / "ours"), monkeypatch)
    monkeypatch.setattr(EntryCompiler, "define_pipelines", Compiler.define_pipelines)
    theirs = compiled_anew(str(tmp_path / "theirs"), monkeypatch)
    assert ours == theirs


@pytest.mark.parametrize("before", [(700, 10, 10), (0, 10, 10), (50_000, 10, 10)])
def test_garbage_is_collected_as_before_once_a_function_is_compiled(
    before: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    meanwhile: list[int] = []
    defining: Callable[..., object] = EntryCompiler.define_pipelines
    monkeypatch.setattr(
        EntryCompiler,
        "define_pipelines",
        lambda self: (meanwhile.append(gc.get_threshold()[0]), defining(self))[1],
    )

    @entry
    def compiled_now(n):
        return n + 1

    as_it_was = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        assert compiled_now(1) == 2
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*as_it_was)
    assert meanwhile == [before[0] and max(before[0], dispatcher.COLLECTED_EVERY)]
