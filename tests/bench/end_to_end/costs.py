"""What stages of the daemon cost alone, from memory, and what is kept costs in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.warming import warm_up_join
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Alarm, Outcome, Partition, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.demo.simulate import ScheduleSpec, schedule
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.scanner.reader import compile_reader
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered
from streamwatch.edge.stores.memory import MemoryStore
from tests.bench.end_to_end.daemon import resident_bytes
from tests.edge.sources.kafka.batches.pieces import piece_of

PENDING = 500_000
STREAM = StreamSpec(models=3, delay=DelaySpec(median_s=30.0))
MODELS, CLASSES, OUTCOMES_PER_MODEL = 1_000, 10, 2_000


async def pending(*_: object) -> dict[str, float]:
    """Memory of predictions that wait, with text UUIDs as ids."""
    warm_up_join()
    pipeline = Pipeline(JoinSpec(), EstimatorSet(MonitorsSpec()), digest_bytes)
    store = MemoryStore()
    names = [f"model-{m}" for m in range(10)]
    before = resident_bytes()
    for start in range(0, PENDING, 500):
        events = [
            Prediction(str(uuid.uuid4()), names[n % 10], "yes", 1_700_000_000_000 + n, 1_700_000_000_000 + n)
            for n in range(start, start + 500)
        ]
        store.apply(pipeline.advance(events))
    return {"bytes": (resident_bytes() - before) / PENDING}


async def models(*_: object) -> dict[str, float]:
    """Memory of models under the default estimators, after each has seen more than its windows hold."""
    monitors = EstimatorSet(replace(MonitorsSpec(), max_models=MODELS + 1))
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


class Timed(EstimatorSet):
    """Estimators that know how much CPU evaluation took."""

    seconds = 0.0

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        began = time.process_time()
        alarms = super().fold(outcomes)
        self.seconds += time.process_time() - began
        return alarms


def arrivals(batch: RecordBatch) -> Arrivals:
    """As the daemon hands them to the merge."""
    decodable = np.ones(len(batch), np.bool_)
    return Arrivals(
        batch.rows["offset"], batch.rows["record_ms"], decodable, batch, size_bytes=250 * len(batch)
    )


async def stages(_: str, __: list[str], instances: int) -> dict[str, float]:
    """CPU of the stages of the daemon over the same kind of messages, from memory: no client, no reports."""
    places: dict[Side, Partition] = {"prediction": Partition("prediction", 0), "label": Partition("label", 0)}
    layout = ScheduleSpec(STREAM, rate=1_000.0, start_ms=1_700_000_000_000, run="r", instances=instances)
    records = [
        (
            due.side,
            KafkaRecord(due.side, 0, n, layout.start_ms + round(due.at_s * 1_000), due.key, due.value),
        )
        for n, due in enumerate(schedule(layout))
    ]
    vocabulary = Vocabulary()
    decoders = {
        side: JsonDecoder(DecoderSpec(side, side, TopicMapping(), None, vocabulary)) for side in places
    }
    compile_reader()
    monitors = Timed(MonitorsSpec())
    pipeline, progress = Pipeline(JoinSpec(), monitors, digest_bytes), MergeProgress()
    merge = Merge(MergeSpec(settle_ms=0), {side: side for side in places}, progress)
    merge.set_partitions(list(places.values()))
    host_ms = layout.start_ms + 86_400_000
    monitors.fold([Outcome("warm-up", "a", "b", 0, 0)])
    warm_up(MonitorsSpec())
    warm_up_join()
    monitors.seconds = 0.0
    decoding = merging = joining = 0.0
    for start in range(0, len(records), 500):
        batch = records[start : start + 500]
        sides = {side: [record for where, record in batch if where == side] for side in places}
        fetched = {s: gathered(places[s], [piece_of(piece)]) for s, piece in sides.items() if piece}
        began = time.process_time()
        decoded = {side: decoders[side].decode_batch(piece) for side, piece in fetched.items()}
        ended = time.process_time()
        decoding, began = decoding + ended - began, ended
        merge.add({places[s]: arrivals(found) for s, found in decoded.items()}, start)
        merge.found(dict.fromkeys(places.values(), start))
        released = merge.release(start, host_ms)
        progress.note(released)
        ended = time.process_time()
        merging, began = merging + ended - began, ended
        for _ in pipeline.steps(released.records):
            pass
        joining += time.process_time() - began
    found = {
        "decode": decoding,
        "merge": merging,
        "join": joining - monitors.seconds,
        "evaluate": monitors.seconds,
    }
    return {stage: 1e6 * seconds / len(records) for stage, seconds in found.items()}
