"""What stages of the daemon cost alone, from memory, and what is kept costs in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

from streamwatch.core.events import Alarm, Event, Outcome, Partition, Prediction, Progress
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec, MonitorsSpec, TimeSpec
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.lab.schedule import ScheduleSpec, schedule
from streamwatch.lab.streams import DelaySpec, StreamSpec
from tests.bench.end_to_end.daemon import resident_bytes

PENDING = 500_000
STREAM = StreamSpec(models=3, delay=DelaySpec(median_s=30.0))
MODELS, CLASSES, OUTCOMES_PER_MODEL = 1_000, 10, 2_000


async def pending(*_: object) -> dict[str, float]:
    """Memory of predictions that wait, with text UUIDs as ids."""
    place = Partition("p", 0)
    pipeline = Pipeline(JoinSpec(), TimeSpec(), Monitors(MonitorsSpec()), {place: "prediction"})
    store = MemoryStore()
    names = [f"model-{m}" for m in range(10)]
    before = resident_bytes()
    for start in range(0, PENDING, 500):
        events = [
            Prediction(str(uuid.uuid4()), names[n % 10], "yes", 1_700_000_000_000 + n, 1_700_000_000_000 + n)
            for n in range(start, start + 500)
        ]
        events.append(Progress(*place, 1_700_000_000_000 + start, False))
        store.keep(pipeline.advance(events, store.fetch(pipeline.needs(events))))
    return {"bytes": (resident_bytes() - before) / PENDING}


async def models(*_: object) -> dict[str, float]:
    """Memory of models under the default estimators, after each has seen more than its windows hold."""
    monitors = Monitors(replace(MonitorsSpec(), max_models=MODELS + 1))
    batch = [
        Outcome("warm-up", str(n % CLASSES), str((n * 7) % CLASSES), 0, 0) for n in range(OUTCOMES_PER_MODEL)
    ]
    monitors.fold(batch)
    before = resident_bytes()
    for model in range(MODELS):
        monitors.fold(
            [
                Outcome(f"m{model}", str(n % CLASSES), str((n * 7 + model) % CLASSES), n, 0)
                for n in range(OUTCOMES_PER_MODEL)
            ]
        )
    return {"bytes": (resident_bytes() - before) / MODELS}


class Timed(Monitors):
    """Estimators that know how much CPU evaluation took."""

    seconds = 0.0

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        began = time.process_time()
        alarms = super().fold(outcomes)
        self.seconds += time.process_time() - began
        return alarms


async def stages(_: str, __: list[str], instances: int) -> dict[str, float]:
    """CPU of the stages of the daemon over the same kind of messages, from memory: no client, no reports."""
    places = {"prediction": Partition("prediction", 0), "label": Partition("label", 0)}
    layout = ScheduleSpec(STREAM, rate=1_000.0, start_ms=1_700_000_000_000, run="r", instances=instances)
    records = [
        SimpleNamespace(
            topic=due.side,
            partition=0,
            offset=n,
            timestamp=layout.start_ms + round(due.at_s * 1_000),
            key=due.key,
            value=due.value,
            headers=(),
        )
        for n, due in enumerate(schedule(layout))
    ]
    decoders = {side: JsonDecoder(side, side, TopicMapping()) for side in places}
    monitors = Timed(MonitorsSpec())
    pipeline = Pipeline(JoinSpec(), TimeSpec(), monitors, {p: side for side, p in places.items()})
    monitors.fold([Outcome("warm-up", "a", "b", 0, 0)])
    monitors.seconds = 0.0
    store, decoding, joining = MemoryStore(), 0.0, 0.0
    for start in range(0, len(records), 500):
        batch = records[start : start + 500]
        sides = {side: [record for record in batch if record.topic == side] for side in places}
        events: list[Event] = []
        began = time.process_time()
        for side, piece in sides.items():
            if piece:
                times = [record.timestamp for record in piece]
                stamps = pipeline.timeline.stamp_all(places[side], times, times[-1])
                events += decoders[side].decode_all(piece, stamps)
        decoded = time.process_time()
        events += [Progress(*p, batch[-1].timestamp, False) for p in places.values()]
        store.keep(pipeline.advance(events, store.fetch(pipeline.needs(events))))
        decoding += decoded - began
        joining += time.process_time() - decoded
    found = {"stamp and decode": decoding, "join": joining - monitors.seconds, "evaluate": monitors.seconds}
    return {stage: 1e6 * seconds / len(records) for stage, seconds in found.items()}
