"""Logs of several partitions with all that can happen to a prediction, and one process that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from random import Random

import numpy as np

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.merge.released import expanded
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import (
    Alarm,
    Decoded,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Outcome,
    Partition,
    Prediction,
    Side,
    WrongFold,
    fold_name,
)
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.keys import digest_bytes

SIDES: dict[str, Side] = {"labels": "label", "mixed": "both", "predictions": "prediction"}
BEGIN_MS = 1_700_000_000_000
HOST_MS = BEGIN_MS + 10**9
MODELS = "mmmnop"


@dataclass
class Log:
    """Records of each partition: timestamp, and what it decodes to."""

    records: dict[Partition, list[tuple[int, Decoded]]] = field(default_factory=dict)

    def arrivals(self, partition: Partition, start: int, stop: int) -> Arrivals:
        """A range of offsets, as it is delivered; events are copied, as the merge sets their clocks."""
        some = self.records[partition][start:stop]
        offsets = np.arange(start, start + len(some))
        return Arrivals(
            offsets,
            np.array([stamp for stamp, _ in some], np.int64),
            np.array([type(decoded) is not Invalid for _, decoded in some], np.bool_),
            batch_of([copied(decoded) for _, decoded in some], offsets),
        )

    def times(self, partition: Partition) -> list[int]:
        """Running maximum of a partition's timestamps; records that cannot be decoded move nothing."""
        stamps = [stamp if type(decoded) is not Invalid else -1 for stamp, decoded in self.records[partition]]
        return np.maximum.accumulate(np.array([-1, *stamps]))[1:].tolist()

    @property
    def newest_ms(self) -> int:
        return max((self.times(p)[-1] for p, records in self.records.items() if records), default=-1)


def copied(decoded: Decoded) -> Decoded:
    if isinstance(decoded, EventGroup):
        return EventGroup(tuple(copy(event) for event in decoded.events), -1, decoded.tied)
    return copy(decoded)


def a_log(chance: Random, length: int, *, folds: bool = False) -> Log:
    """Few ids, whose times creep forward with jitter and now and then leap over horizons."""
    partitions = [Partition(t, p) for t in SIDES for p in range(chance.choice([1, 2, 3]))]
    log = Log({partition: [] for partition in partitions})
    now = BEGIN_MS
    fresh = chance.choice([1, 3, 10])
    pace = chance.choice([50, 300, 1500])
    for made in range(1, length + 1):
        now += chance.choice([0, 0, 1, pace, pace, 2 * pace if chance.random() < 0.95 else 30 * pace])
        partition = chance.choice(partitions)
        several = partition.topic == "mixed" and chance.random() < 0.2
        if several:
            count = chance.choice([0, 1, 2, 4])
            events = [an_event(chance, now, made // fresh, partition, folds=folds) for _ in range(count)]
            events.sort(key=lambda event: type(event) is Label)
            decoded: Decoded = EventGroup(tuple(events), -1, chance.choice([0, 0, 1]))
        else:
            decoded = an_event(chance, now, made // fresh, partition, folds=folds)
        stamp = now + chance.choice([0, 0, 0, -40, -900])
        log.records[partition].append((stamp, decoded))
    return log


def an_event(chance: Random, now: int, newest_id: int, partition: Partition, *, folds: bool) -> Decoded:
    topic = partition.topic
    side = {"labels": "label", "predictions": "prediction"}.get(topic) or chance.choice(
        ["label", "prediction"]
    )
    model = chance.choice(MODELS)
    known = str(newest_id - chance.choice([0, 0, 1, 2, 5]))
    own = chance.choice([None, None, now, now - 700, now + 300])
    luck = chance.random()
    if luck < 0.03:
        return Invalid(
            topic, partition.partition, newest_id, "invalid_json", -1, chance.choice([None, model])
        )
    if luck < 0.07:
        withdraws = side == "prediction"
        return NullRecord(topic, chance.choice([known, None]), chance.choice([None, model]), -1, withdraws)
    if folds and luck < 0.09:
        return WrongFold(-1)
    if side == "label":
        named = None if chance.random() < 0.4 else model
        return Label(known, chance.choice("xyyy"), -1, named, own)
    name = fold_name(model, chance.randrange(3)) if folds and model != "p" else model
    scores = chance.choice([None, None, {"x": 0.3, "y": 0.7}])
    values = {"site": chance.choice("ab")} if chance.random() < 0.2 else None
    made = Prediction(known, name, chance.choice("xyyy"), -1, own, scores, values)
    if now % 4 == 0:  # without a draw
        made.label_probability, made.label_requested = (0.5, 1.0)[now % 8 > 0], (None, False, True)[now % 3]
    return made


class RecordingEstimators(EstimatorSet):
    """Estimators that remember their outcomes."""

    def __init__(self, spec: MonitorsSpec) -> None:
        super().__init__(spec)
        self.folded: list[Outcome] = []

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        self.folded += outcomes
        return super().fold(outcomes)


def by_model(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes of each model, in order."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.model, []).append(outcome)
    return found


@dataclass
class OneProcess:
    """The daemon's merge, join and estimators on a whole log."""

    pipeline: Pipeline
    monitors: RecordingEstimators
    progress: MergeProgress
    alarms: list[object]


def one_process(
    log: Log, join: JoinSpec, spec: MonitorsSpec, *, ended: bool, start_ms: int | None = None
) -> OneProcess:
    merge = Merge(MergeSpec(), SIDES, MergeProgress())
    merge.set_partitions(list(log.records))
    merge.add({p: log.arrivals(p, 0, len(records)) for p, records in log.records.items()}, HOST_MS)
    released = expanded(merge.drain(HOST_MS))
    progress = MergeProgress()
    progress.note(released)
    monitors = RecordingEstimators(spec)
    pipeline = Pipeline(join, monitors, digest_bytes)
    pipeline.join.start_ms = start_ms
    events = released.records.events()
    alarms: list[object] = []
    step = pipeline.advance(events)
    assert step.taken == len(events)
    alarms += step.alarms
    if ended:
        alarms += pipeline.release_held().alarms
    assert not progress.corrected
    return OneProcess(pipeline, monitors, progress, alarms)


def samples(families: Sequence[object]) -> dict[str, dict[object, object]]:
    """Samples of each series, in no order."""
    return {family.name: dict(family.samples) for family in families}
