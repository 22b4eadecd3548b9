"""What the join costs for each message, and what an entry takes in memory.

    python -m tests.bench.join [--waiting 300000] [--models 3] [--rounds 5]

So many predictions wait; then messages come as on a calm stream: each id is predicted by every model, and the
label of an earlier id comes with it. All read the same messages in turn and evaluate nothing; CPU of the
process, the lowest of the rounds. Only ratios travel between machines.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import replace

from streamwatch.core.join.warming import warm_up_join
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Event, Label, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.columns import in_columns

BATCH = 500
MESSAGES = 100_000
START_MS = 1_700_000_000_000
SPEC = JoinSpec(max_pending=10**8, max_labels=10**8, max_dedup_entries=10**8)
ORDERED = replace(SPEC, order="prediction_time")
BOTH = replace(SPEC, conflicts="both")
REVISED = 10
"""One of so many predictions is revised, where some are."""


class Nobody:
    """Evaluates nothing."""

    def __init__(self) -> None:
        self.records_over_limit: dict[str, int] = {}

    def fold(self, _outcomes):
        return []

    def retire(self, model):
        pass

    def models(self):
        return []

    def families(self):
        return []


def stream(models: int, waiting: int, *, revised: bool = False) -> Iterator[Event]:
    """Predictions of ids by every model, and the label of the id that came `waiting` predictions before.

    With `revised`, some ids are predicted again when half of the time until their label is over.
    """
    behind = waiting // models
    number = 0
    while True:
        at = START_MS + number
        for model in range(models):
            yield Prediction(f"instance-{number:012}", f"model-{model}", "a", at, at)
        if revised and number % REVISED == 0 and number >= behind // 2:
            for model in range(models):
                key = f"instance-{number - behind // 2:012}"
                yield Prediction(key, f"model-{model}", "b", at, at)
        if number >= behind:
            yield Label(f"instance-{number - behind:012}", "a" if number % 3 else "b", at, None, at)
        number += 1


def batches(events: Iterator[Event], count: int) -> list[list[Event]]:
    return [[next(events) for _ in range(BATCH)] for _ in range(count // BATCH)]


class Joined:
    """A pipeline, and the CPU seconds of its rounds."""

    def __init__(self, pipeline, arguments, *, revised: bool = False) -> None:
        self.pipeline = pipeline
        self.vocabulary = Vocabulary()
        self.events = stream(arguments.models, arguments.waiting, revised=revised)
        for _ in range(arguments.waiting // MESSAGES + 1):
            self.join(batches(self.events, MESSAGES))
        self.seconds: list[float] = []
        self.loop_seconds: list[float] = []

    def join(self, parts: list[list[Event]]) -> float:
        began = time.process_time()
        for part in parts:
            self.pipeline.advance(part)
        return time.process_time() - began

    def round(self) -> None:
        self.seconds.append(self.join(batches(self.events, MESSAGES)))

    def round_in_columns(self) -> None:
        """Records are there in columns, as the merge releases them."""
        records = [
            in_columns(part, self.vocabulary, digests=False) for part in batches(self.events, MESSAGES)
        ]
        began = time.process_time()
        for part in records:
            for _ in self.pipeline.steps(part):
                pass
        self.loop_seconds.append(time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=300_000)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warm_up_join()
    gc.disable()
    columns = Joined(Pipeline(SPEC, Nobody(), digest_bytes), arguments)
    ordered = Joined(Pipeline(ORDERED, Nobody(), digest_bytes), arguments)
    both = Joined(Pipeline(BOTH, Nobody(), digest_bytes), arguments)
    revising = Joined(Pipeline(BOTH, Nobody(), digest_bytes), arguments, revised=True)
    for _ in range(arguments.rounds):
        columns.round()
        columns.round_in_columns()
        ordered.round_in_columns()
        both.round_in_columns()
        revising.round_in_columns()
    per = 1e6 / MESSAGES
    whole, loop = (min(seconds) * per for seconds in (columns.seconds, columns.loop_seconds))
    print(f"from events               {whole:6.3f} µs a message")
    print(f"from columns              {loop:6.3f} µs")
    held, window_s = min(ordered.loop_seconds) * per, ORDERED.reorder_window_ms // 1_000
    print(f"in prediction order       {held:6.3f} µs, {held - loop:.3f} more ({window_s} s of outcomes held)")
    kept, some = min(both.loop_seconds) * per, min(revising.loop_seconds) * per
    print(f"first and last prediction {kept:6.3f} µs, {kept / loop:.2f} of that from columns")
    print(f"  one of {REVISED} revised        {some:6.3f} µs, {some / loop:.2f} of it")
    join = columns.pipeline.join
    entries = int(join.arrays.totals["top"][0])
    print(f"{entries:,} entries of {join.nbytes / entries:.0f} bytes each, table included")


if __name__ == "__main__":
    main()
