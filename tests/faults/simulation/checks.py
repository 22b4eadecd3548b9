"""What must hold in every seed, at every report and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from streamwatch.core.checkpoint import PIPELINE, Checkpoint
from streamwatch.core.events import Alarm, Event, Partition
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import MonitorsSpec
from streamwatch.daemon.commits import Durable
from streamwatch.edge.stores.memory import MemoryStore
from tests.faults.simulation.disk import Disk, Image, require
from tests.faults.simulation.ledger import alarm_key
from tests.faults.simulation.recorder import Recorder
from tests.faults.simulation.workload import Plan

SPEC = MonitorsSpec()


def a_pipeline(plan: Plan) -> tuple[Pipeline, Recorder, Checkpoint]:
    recorder = Recorder(plan.alerts.detectors)
    pipeline = Pipeline(plan.join, plan.time, recorder, {})
    return pipeline, recorder, Checkpoint(pipeline, recorder, SPEC, plan.journal_outcomes)


def counters_of(families) -> dict[tuple[str, ...], float]:
    return {
        (family.name, *labels): value
        for family in families
        if family.kind == "counter"
        for labels, value in family.samples
    }


class Shown:
    """What operators saw, across all lives."""

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
        self._found = durable.counts.fingerprint_unverifiable
        self.announced += durable.alarms
        self.remembered()
        if durable.report is None:
            return
        self.reports += 1
        shown = counters_of(durable.report.families)
        pipeline, _, _ = a_pipeline(self._plan)
        pipeline.restore(image.saved.sections[PIPELINE])
        for name, value in counters_of(pipeline.join_families()).items():
            require(shown[name] == value, f"{name} is {shown[name]} in the report, {value} on the disk")
        retired = shown["models_retired_total",] > self._values.get(("models_retired_total",), 0)
        for name, before in self._values.items():
            if name[0] in ("outcomes_total", "errors_total") and retired:
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
        found = image.counts.fingerprint_unverifiable
        require(found >= self._found, f"{self._found} of the logs was shown, the disk knows {found}")


Origins = dict[int, tuple[Event, Partition, int, bool]]


def audit(plan: Plan, history: Sequence[Image], origins: Origins) -> None:
    """Every record was consumed once, in order; and one pass over them gives what the disk holds."""
    pipeline, recorder, checkpoint = a_pipeline(plan)
    image = history[-1]
    checkpoint.restore(image.saved)
    require(pipeline.identities() == [], pipeline.identities())
    alone, alone_recorder, clamped = replayed(plan, history, origins)
    alone.timeline.clamped = clamped
    require(alone.counters == pipeline.counters, f"counters are {pipeline.counters}, not {alone.counters}")
    for model in alone_recorder.models():
        require(model in recorder.outcomes, f"model {model} was lost")
        require(alone_recorder.snapshot(model) == recorder.snapshot(model), f"outcomes of {model} differ")
    require(set(alone_recorder.models()) == set(recorder.models()), "models differ")
    require(alone_recorder.totals() == recorder.totals(), "alarms differ")
    require(alone.snapshot() == pipeline.snapshot(), "states of the pipeline differ")
    everything_once(plan.logs.values(), history, origins)


def replayed(plan: Plan, history: Sequence[Image], origins: Origins) -> tuple[Pipeline, Recorder, int]:
    """The audit log through a core of its own, in few large batches."""
    pipeline, recorder, _ = a_pipeline(plan)
    store = MemoryStore()
    clamped = 0
    batch: list[Event] = []
    known: tuple[Partition, ...] = ()

    def advance():
        store.keep(pipeline.advance(batch, store.fetch(pipeline.needs(batch))))
        batch.clear()

    for image in history:
        for leg in image.legs:
            if leg.partitions != known:
                advance()
                for partition in leg.partitions:
                    pipeline.timeline.add(partition, side_of(partition))
                known = leg.partitions
            batch += leg.events
            clamped += sum(origins[id(event)][3] for event in leg.events if id(event) in origins)
    advance()
    return pipeline, recorder, clamped


def everything_once(logs, history: Sequence[Image], origins: Origins) -> None:
    read: dict[Partition, list[int]] = {}
    for image in history:
        for leg in image.legs:
            for event in leg.events:
                if id(event) in origins:
                    _, partition, offset, _ = origins[id(event)]
                    read.setdefault(partition, []).append(offset)
    for log in logs:
        found = read.get(log.partition, [])
        require(found == log.offsets, f"{log.partition} was read as {found}, it holds {log.offsets}")


def side_of(partition: Partition):
    return {"predictions": "prediction", "labels": "label", "both": "both"}[partition.topic]
