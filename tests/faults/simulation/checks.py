"""What must hold in every seed, at every report and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import TypeVar

import msgspec

from streamwatch.core.join.durable import restoring
from streamwatch.core.join.durable.packed import DedupRows, WaitingRows
from streamwatch.core.merge import MergeProgress
from streamwatch.core.pipeline.checkpoint import PIPELINE, Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline, decoded
from streamwatch.core.ports import RecoveredState
from streamwatch.core.records.events import Alarm, Event, Invalid, Label, Partition, Prediction
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon.commits import Durable
from streamwatch.edge.keys import digest_bytes
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.test_join_model import counted, naive_counted
from tests.faults.simulation.disk import Disk, Image, require
from tests.faults.simulation.ledger import alarm_key
from tests.faults.simulation.recorder import Recorder
from tests.faults.simulation.workload import Plan

Rows = TypeVar("Rows", WaitingRows, DedupRows)
SPEC = MonitorsSpec()
LARGE_BATCH = 37
OF_A_MODEL = frozenset(
    {
        "outcomes_total",
        "errors_total",
        "model_predictions_total",
        "model_predictions_joined_total",
        "model_records_invalid_total",
    }
)
"""Counters that go with their model when it retires, and start anew if it comes back."""


def a_pipeline(plan: Plan) -> tuple[Pipeline, Recorder, Checkpoint]:
    recorder = Recorder(plan.alerts.detectors)
    pipeline = Pipeline(plan.join, recorder, digest_bytes)
    return pipeline, recorder, Checkpoint(pipeline, recorder, SPEC, plan.journal_outcomes)


def restored(plan: Plan, saved: RecoveredState) -> Pipeline:
    """What a start finds."""
    pipeline, _, checkpoint = a_pipeline(plan)
    checkpoint.restore(saved)
    return pipeline


def state_of(pipeline: Pipeline):
    """What a pipeline's snapshot says, but for when it looked for idle models: there were none to find."""
    state = decoded(pipeline.snapshot())
    models = state.join.join_models
    models = msgspec.structs.replace(models, looked_s=0, next_look_s=0)
    join = replace(state.join, join_models=models, passed_ms=state.join.passed_ms // 1_000)
    return replace(state, join=join)


def counters_of(families) -> dict[tuple[str, ...], float]:
    return {
        (family.name, *labels): value
        for family in families
        if family.kind == "counter"
        for labels, value in family.samples
    }


def _once(unpack: Callable[[bytes], Rows]) -> Callable[[bytes], Rows]:
    """Of one value the same columns, which nobody can change."""

    @lru_cache(maxsize=1_024)
    def unpacked(value: bytes) -> Rows:
        rows = unpack(value)
        for column in rows:
            column.flags.writeable = False
        return rows

    return unpacked


_ONCE = {name: _once(getattr(restoring, name)) for name in ("unpack_waiting", "unpack_dedup")}


@contextmanager
def values_unpacked_once() -> Iterator[None]:
    """Unpack a stored value once for all commits that hold it; starts unpack for themselves."""
    before = {name: getattr(restoring, name) for name in _ONCE}
    vars(restoring).update(_ONCE)
    try:
        yield
    finally:
        vars(restoring).update(before)


@lru_cache(maxsize=1_024)
def counters_on_the_disk(
    join: JoinSpec, section: bytes, columns: tuple[tuple[bytes, bytes], ...]
) -> Mapping[tuple[str, ...], float]:
    """The join's counters in what a commit left; of equal bytes, as in runs that begin alike, found once."""
    pipeline = Pipeline(join, Recorder(), digest_bytes)
    with values_unpacked_once():
        pipeline.restore(section, columns)
    return counters_of(pipeline.join_families())


class Shown:
    """What operators saw, across all runs."""

    def __init__(self, plan: Plan, disk: Disk) -> None:
        self._plan = plan
        self._disk = disk
        self._values: dict[tuple[str, ...], float] = {}
        self._positions: dict[Partition, int] = {}
        self._found = 0
        self.announced: list[Alarm] = []
        self.reports = 0

    def __call__(self, durable: Durable) -> None:
        disk = self._disk
        image = disk.images[disk.durable]
        require(image.positions == durable.positions, "a report of what is not the newest durable commit")
        require(image.counts == durable.counts, "counts of the logs that are not those on the disk")
        self._positions = dict(durable.positions)
        self._found = durable.counts.position_unverified
        self.announced += durable.alarms
        self.remembered()
        if durable.report is None:
            return
        self.reports += 1
        shown = counters_of(durable.report.families)
        saved = image.saved
        found = counters_on_the_disk(self._plan.join, saved.sections[PIPELINE], tuple(saved.columns))
        for name, value in found.items():
            require(shown[name] == value, f"{name} is {shown[name]} in the report, {value} on the disk")
        retired = shown["models_retired_total",] > self._values.get(("models_retired_total",), 0)
        for name, before in self._values.items():
            if name[0] in OF_A_MODEL and retired:
                continue
            require(shown.get(name, -1) >= before, f"{name} went back from {before} to {shown.get(name)}")
        self._values = shown

    def remembered(self) -> None:
        """Everything shown so far is known to the disk."""
        image, history = self._disk.images[-1], self._disk.history()
        kept = Counter(alarm_key(alarm) for before in history for alarm in before.alarms)
        told = Counter(alarm_key(alarm) for alarm in self.announced)
        require(not told - kept, f"announced and forgotten: {told - kept}")
        for partition, position in self._positions.items():
            found = image.positions.get(partition, 0)
            require(found >= position, f"{partition} was shown up to {position}, the disk knows {found}")
        found = image.counts.position_unverified
        require(found >= self._found, f"{self._found} of the logs was shown, the disk knows {found}")


Origins = dict[int, tuple[Event, Partition, int]]


def audit(plan: Plan, history: Sequence[Image], origins: Origins) -> bool:
    """Every record was evaluated once, in order; and one pass over them gives what the disk holds.

    If no record was out of order or had its timestamp corrected, that pass is over the sequence as it follows
    from the logs alone, which is what a run that nothing disturbs and a replay give; whether it was so.
    """
    pipeline, recorder, checkpoint = a_pipeline(plan)
    image = history[-1]
    checkpoint.restore(image.saved)
    require(pipeline.identities() == [], pipeline.identities())
    everything_once(plan.logs.values(), history, origins)
    events = [event for image in history for event in image.events]
    clock = [event.record_ms for event in events]
    require(clock == sorted(clock), "the clock went back")
    alarms = [alarm for image in history for alarm in image.alarms]
    compare(plan, pipeline, recorder, alarms, events)
    promised = as_promised(image.progress)
    if promised:
        sequence, progress = sequence_of(plan)
        # What cannot be decoded has no time that it could miss: it is counted whenever it comes.
        evaluated = [origins[id(event)][1:] for event in events if not isinstance(event, Invalid)]
        expected = [
            (partition, offset)
            for (partition, offset), _ in sequence
            if not isinstance(plan.logs[partition].event_at(offset), Invalid)
        ]
        require(evaluated == expected, difference(evaluated, expected))
        alone = [
            placed(plan.logs[partition].event_at(offset), partition, record_ms)
            for (partition, offset), record_ms in sequence
        ]
        if alone != events:  # what cannot be decoded came at another time
            compare(plan, pipeline, recorder, alarms, alone)
        require(image.progress.clock_ms == progress.clock_ms, "clocks differ")
        newest, expected_ms = timed(image.progress), timed(progress)
        require(newest == expected_ms, f"newest times are {newest}, not {expected_ms}")
    return promised


def difference(evaluated: Sequence[object], expected: Sequence[object]) -> str:
    """The first place at which two sequences part."""
    pairs = enumerate(zip(evaluated, expected, strict=True))
    at = next((i for i, (ours, theirs) in pairs if ours != theirs), -1)
    return f"record {at} of the sequence is {evaluated[at : at + 3]}, not {expected[at : at + 3]}"


def placed(event: Event, partition: Partition, record_ms: int) -> Event:
    """The event as the merge hands it on: with the clock at its place, and its topic."""
    if isinstance(event, Prediction | Label):
        return msgspec.structs.replace(event, record_ms=record_ms, topic=partition.topic)
    return msgspec.structs.replace(event, record_ms=record_ms)


def timed(progress: MergeProgress) -> dict[Partition, int]:
    """Newest times of the partitions that have one: -1 and no entry both mean none yet."""
    return {partition: ms for partition, ms in progress.running_ms.items() if ms >= 0}


def as_promised(progress: MergeProgress) -> bool:
    """Whether nothing was counted that allows numbers to differ."""
    return not (progress.out_of_order or progress.corrected or progress.left_behind)


def sequence_of(plan: Plan) -> tuple[list[tuple[tuple[Partition, int], int]], MergeProgress]:
    """All records of all logs in the one order, with the clock at each: the oracle, by one sort."""
    progress, keys = MergeProgress(), []
    for partition, log in plan.logs.items():
        running_ms = -1
        rank = ("predictions", "both", "labels").index(partition.topic)
        for record in log.records:
            if not isinstance(record.event, Invalid):
                running_ms = max(running_ms, record.timestamp)
            keys.append((running_ms, rank, partition.partition, record.offset, partition))
        if log.records:
            progress.running_ms[partition] = running_ms
    sequence = []
    for time_ms, _, _, offset, partition in sorted(keys):
        progress.clock_ms = max(progress.clock_ms, time_ms)
        sequence.append(((partition, offset), progress.clock_ms))
    return sequence, progress


def compare(
    plan: Plan, pipeline: Pipeline, recorder: Recorder, alarms: Sequence[Alarm], events: Sequence[Event]
) -> None:
    """Evaluate events in few large batches; all of it must be what the disk holds, bit for bit."""
    alone, alone_recorder, _ = a_pipeline(plan)
    found: list[Alarm] = []
    for start in range(0, len(events), LARGE_BATCH):
        found += alone.advance(events[start : start + LARGE_BATCH]).alarms
    require(
        alone.join.counters == pipeline.join.counters,
        f"counters are {pipeline.join.counters}, not {alone.join.counters}",
    )
    for model in alone_recorder.models():
        require(model in recorder.outcomes, f"model {model} was lost")
        require(alone_recorder.snapshot(model) == recorder.snapshot(model), f"outcomes of {model} differ")
    require(set(alone_recorder.models()) == set(recorder.models()), "models differ")
    require(alone_recorder.totals() == recorder.totals(), "alarms differ")
    require(found == list(alarms), f"alarms were {alarms}, not {found}")
    require(state_of(alone) == state_of(pipeline), "states of the pipeline differ")
    naive = NaiveJoin(plan.join)
    for event in events:
        naive.feed(event)
    ours = counted(SimpleNamespace(counters=pipeline.join.counters, pipeline=pipeline))
    theirs = naive_counted(naive)
    differ = {name for name in ours.keys() | theirs.keys() if ours.get(name, 0) != theirs.get(name, 0)}
    require(not differ, f"a naive join counts {sorted(map(str, differ))} otherwise")


def everything_once(logs, history: Sequence[Image], origins: Origins) -> None:
    read: dict[Partition, list[int]] = {}
    for image in history:
        for event in image.events:
            _, partition, offset = origins[id(event)]
            read.setdefault(partition, []).append(offset)
    for log in logs:
        found = read.get(log.partition, [])
        require(found == log.offsets, f"{log.partition} was read as {found}, it holds {log.offsets}")


def side_of(partition: Partition):
    return {"predictions": "prediction", "labels": "label", "both": "both"}[partition.topic]
