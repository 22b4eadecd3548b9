"""Turns of a report: how long each holds the event loop, for many models of many classes.

    python -m tests.bench.turns [--models 1000] [--classes 1000] [--rounds 5]

A daemon's state is filled with models that had an outcome of every class, and its report is built as the
daemon builds it: piece by piece, going back to the event loop in between. Shown are the number of turns, and
of their CPU (this thread's) the mean and the maximum of each round. What disturbs a run only adds to it, so
the round with the lowest maximum counts. With --longest, the longest turns are named by their number.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.estimators.set import EstimatorSet, decode, encode
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.daemon import State
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry

GOAL_MS = 20.0


def opened(models: int, classes: int) -> State:
    """State in memory, with room for so many models and classes."""
    settings = Settings(
        kafka={"bootstrap_servers": "nowhere:9092"},  # type: ignore[arg-type]
        topics={"predictions": "p", "labels": "l"},  # type: ignore[arg-type]
        state={"kind": "memory"},  # type: ignore[arg-type]
        monitors={"max_models": models, "max_classes": classes},  # type: ignore[arg-type]
    )
    return state_opening(settings, build_topics(settings), Telemetry(level="error"))()


def fill(monitors: EstimatorSet, models: int, classes: int) -> None:
    """Evaluate an outcome of each class for one model, every third of them wrong; others are copies of it."""
    names = [f"class-{k:04}" for k in range(classes)]
    records = np.zeros(classes, OUTCOME)
    records["true_class"] = np.arange(classes)
    records["predicted_class"] = np.where(
        np.arange(classes) % 3 > 0, records["true_class"], (records["true_class"] + 1) % classes
    )
    records["label_at_prediction"] = records["scores"] = -1
    records["event_ms"] = 1_700_000_000_000 + np.arange(classes)
    monitors.fold(OutcomeBatch(records, ["model-0000"], names))
    one = decode(monitors.snapshot("model-0000"))
    for model in range(1, models):
        monitors.restore(encode(replace(one, model=f"model-{model:04}")))


class Collections:
    """CPU that the garbage collector takes, ms."""

    def __init__(self) -> None:
        self.took = self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        now = 1e3 * time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self.took += now - self._began


class Turns(NamedTuple):
    """CPU of a report, ms."""

    each: list[float]
    """Of each turn."""
    collecting: list[float]
    """What of it the garbage collector took."""
    dropping: float
    """Of the memory that is given back when the report is replaced by another."""


def turns_of(state: State, collections: Collections) -> Turns:
    """Build a report and let go of it."""
    turns: list[float] = []
    collecting: list[float] = []
    slices = state.processor.report_in_slices()
    report: Report | None = None
    while report is None:
        began, before = time.thread_time(), collections.took
        try:
            next(slices)
        except StopIteration as end:
            report = end.value
        turns.append(1e3 * (time.thread_time() - began))
        collecting.append(collections.took - before)
    began = time.thread_time()
    del report
    return Turns(turns, collecting, 1e3 * (time.thread_time() - began))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--longest", type=int, default=0)
    arguments = parser.parse_args()
    state = opened(arguments.models, arguments.classes)
    fill(state.checkpoint.monitors, arguments.models, arguments.classes)
    gc.collect()
    gc.freeze()
    collections = Collections()
    rounds = [turns_of(state, collections) for _ in range(arguments.rounds)]
    for turns, collecting, dropping in rounds:
        print(
            f"{len(turns)} turns: mean {np.mean(turns):.2f} ms, maximum {max(turns):.2f} ms; "
            f"{max(np.subtract(turns, collecting)):.2f} ms without the garbage collector, "
            f"which takes {max(collecting):.2f} ms at most; "
            f"letting go of the report: {dropping:.2f} ms"
        )
        longest = sorted(range(len(turns)), key=turns.__getitem__, reverse=True)[: arguments.longest]
        for number in longest:
            print(f"    turn {number}: {turns[number]:.2f} ms")
    best = min(max(each.each) for each in rounds)
    print(f"{arguments.models:,} models of {arguments.classes:,} classes: a turn takes {best:.1f} ms at most")
    if best > GOAL_MS:
        raise SystemExit(f"expected at most {GOAL_MS:.0f} ms")


if __name__ == "__main__":
    main()
