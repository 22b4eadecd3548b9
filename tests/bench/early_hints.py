"""Measures what early hints cost beside the compiled join and the estimators, in one run, without reading.

python -m tests.bench.early_hints
"""

from __future__ import annotations

import sys
import time

import numpy as np

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event, Label, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.columns import in_columns

IDS, DELAY, POLL, REPEATS = 40_000, 1_000, 4_096, 4


def records(*, scored: bool) -> list[RecordBatch]:
    """Predictions of one model with their labels a thousand predictions later, in polls."""
    rng = np.random.default_rng(0)
    events: list[Event] = []
    for i in range(IDS):
        score = float(rng.uniform(0.5, 1))
        scores = {"a": score, "b": 1 - score} if scored else None
        events.append(Prediction(str(i), "m", "ab"[rng.random() < 0.3], i, scores=scores))
        if i >= DELAY:
            events.append(Label(str(i - DELAY), "ab"[rng.random() < 0.3], i, "m"))
    names = Vocabulary(1_000)
    polls = [events[at : at + POLL] for at in range(0, len(events), POLL)]
    return [
        in_columns(poll, names, digests=False, digest=digest_bytes, as_object=lambda _: False)
        for poll in polls
    ]


def seconds(polls: list[RecordBatch], *, hints: bool) -> float:
    """CPU time of joining and evaluating all of it."""
    registers = (EarlyHintsSpec(),) if hints else ()
    estimators = EstimatorSet(MonitorsSpec(max_models=2))
    pipeline = Pipeline(JoinSpec(prediction_registers=registers), estimators, digest_bytes)
    began = time.process_time()
    for poll in polls:
        for _ in pipeline.steps(poll):
            pass
    return time.process_time() - began


def main() -> None:
    """Print the least of several runs each, with and without, and their ratio."""
    for scored in (False, True):
        polls = records(scored=scored)
        runs = [(seconds(polls, hints=False), seconds(polls, hints=True)) for _ in range(REPEATS)]
        without, with_hints = (1e6 * min(times) / IDS for times in zip(*runs, strict=True))
        what = "with scores" if scored else "without scores"
        sys.stdout.write(
            f"{what}: {without:.2f} µs a prediction and its label, {with_hints:.2f} with early hints, "
            f"ratio {with_hints / without:.3f}\n"
        )


if __name__ == "__main__":
    main()
