"""CPU of one event through buckets, beside the merge, join and estimators of one process, in one run.

    python -m tests.bench.buckets [instances]

Eight models, labels 3 ms behind, batches of two seconds, 4 id buckets, 3 model
buckets. Decoding, Kafka and what an engine or a store does are in neither. Bytes are those from readers to id
buckets and from there to model buckets; the base is of what is there when 30 s of predictions have no label.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.core.records.batch import ROW, RecordBatch
from streamwatch.core.records.events import Partition, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.layouts import DEFAULT

SIDES: dict[str, Side] = {"predictions": "prediction", "labels": "label"}
BEGIN_MS = 1_700_000_000_000
BATCH = 40_000
PER_MS = 20
COMMITTED = 5_000
SPEC = BucketsSpec(SIDES, JoinSpec(horizon_ms=60_000), replace(DEFAULT, max_models=24, max_classes=6), 4, 3)


@dataclass
class Costs:
    """CPU seconds by stage, and bytes sent."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    sent: dict[str, int] = field(default_factory=dict[str, int])
    told: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Bytes of each result of the last batch with labels, by kind."""

    def timed(self, stage, call, *args):
        began = time.process_time()
        result = call(*args)
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - began
        return result

    def note(self, what, size):
        self.sent[what] = self.sent.get(what, 0) + size


def vocabulary() -> Vocabulary:
    names = Vocabulary()
    for model in "abcdefgh":
        names.models.number(model)
    for name in "xy":
        names.classes.number(name)
    return names


def records(names: Vocabulary, topic: str, start: int) -> Arrivals:
    """One batch of one topic, as columns."""
    ids = np.arange(start, start + BATCH, dtype=np.uint64)
    rows = np.zeros(BATCH, ROW)
    rows["id_high"] = ids * np.uint64(0x9E3779B97F4A7C15)
    rows["id_low"] = rows["id_high"] ^ (ids << np.uint64(17))
    rows["timestamp_ms"] = rows["object"] = -1
    rows["side"] = topic == "labels"
    rows["model"] = ids % np.uint64(8)
    rows["class"] = np.random.default_rng(start).integers(0, 2, BATCH)
    rows["offset"] = ids
    stamps = BEGIN_MS + (start + np.arange(BATCH)) // PER_MS + 3 * (topic == "labels")
    return Arrivals(
        rows["offset"].copy(),
        stamps,
        np.ones(BATCH, np.bool_),
        RecordBatch(rows, None, (), names),
        appended=True,
    )


def through_buckets(batches: int, costs: Costs) -> list[bytes]:
    names, reader = vocabulary(), ColumnReader(SPEC, bytes_of_keys)
    ids = [ColumnIdBucket(number, SPEC) for number in range(SPEC.id_buckets)]
    models = [ColumnModelBucket(number, SPEC) for number in range(SPEC.model_buckets)]
    for batch in range(batches):
        topics = SIDES if batch < batches - 15 else ["predictions"]
        pieces = [
            dict(
                costs.timed(
                    "reader",
                    reader.split,
                    Partition(t, 0),
                    records(names, t, batch * BATCH),
                    BEGIN_MS,
                )
            )
            for t in topics
        ]
        end_ms = BEGIN_MS + (batch + 1) * BATCH // PER_MS - 1
        parts: list[list[bytes]] = [[] for _ in models]
        found: list[tuple[str, str, bytes]] = []
        for number, bucket in enumerate(ids):
            own = [piece[number] for piece in pieces]
            costs.note("pieces", sum(map(len, own)))
            fed = costs.timed("id buckets", bucket.feed, batch, own, end_ms)
            found += fed.results
            for to, part in fed.parts:
                parts[to].append(part)
                costs.note("parts", len(part))
        for number, bucket in enumerate(models):
            found += costs.timed("model buckets", bucket.feed, batch, parts[number], None).results
        if len(topics) == len(SIDES):
            costs.told = {kind: [len(body) for of, _, body in found if of == kind] for kind, _, _ in found}
    return [part for bucket in ids for part in bucket.base()]


def through_one(batches: int, costs: Costs, folder: Path | None = None) -> None:
    """One process; with a folder, whose commits of 5,000 events are on disk there."""
    names, monitors = vocabulary(), EstimatorSet(SPEC.monitors)
    stage = "one process" if folder is None else "one process with commits on disk"
    durable = None if folder is None else RocksStore.open(RocksSpec(folder))
    partitions = [Partition(topic, 0) for topic in SIDES]
    merge = Merge(MergeSpec(), SIDES, MergeProgress())
    merge.set_partitions(partitions)
    pipeline = Pipeline(SPEC.join, monitors, bytes_of_keys)
    commits = count(1)

    def take(arrivals: dict[Partition, Arrivals]) -> None:
        merge.add(arrivals, BEGIN_MS)
        batch = merge.drain(BEGIN_MS).records
        for start in range(0, len(batch), COMMITTED if durable else len(batch)):
            list(pipeline.steps(batch.part(start, start + COMMITTED) if durable else batch))
            if durable is not None:
                changes = pipeline.join.changes(next(commits))
                durable.commit(CommitBatch({"pipeline": pipeline.snapshot()}, columns=changes))

    for batch in range(batches):
        costs.timed(stage, take, {p: records(names, p.topic, batch * BATCH) for p in partitions})
    if durable is not None:
        durable.close()


def main() -> None:
    instances = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    batches = instances // BATCH
    for warm in (True, False):
        costs = Costs()
        number = 1 if warm else batches
        base = through_buckets(number if warm else number + 15, costs)
        through_one(number, costs)
        with TemporaryDirectory() as folder:
            through_one(number, costs, Path(folder) / "state")
    events = 2 * batches * BATCH
    waiting = 15 * BATCH
    for stage, seconds in costs.seconds.items():
        own = events if stage.startswith("one") else events + waiting
        print(f"{stage}: {seconds / own * 1e6:.2f} µs an event")
    for sent, size in costs.sent.items():
        print(f"{sent}: {size / (events + waiting):.0f} bytes an event")
    for kind, sizes in costs.told.items():
        print(f"results of a batch, {kind}: {len(sizes)} of {sum(sizes) / len(sizes):.0f} bytes")
    settled = events // 2
    size = sum(map(len, base)) / 1e6
    print(f"a base with {waiting} waiting and {settled} settled: {size:.0f} MB")


if __name__ == "__main__":
    main()
