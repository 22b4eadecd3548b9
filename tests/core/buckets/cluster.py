"""Stands where an engine stands: cuts a log into batches, feeds buckets, rebuilds them at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from streamwatch.core.buckets.contract import Bucket, BucketsSpec
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.buckets.view import ResultsView
from streamwatch.core.records.events import Outcome
from streamwatch.edge.keys import digest_bytes
from tests.core.buckets.logs import HOST_MS, Log, RecordingEstimators

Make = Callable[[int, BucketsSpec], Bucket]
"""What makes a bucket of a number."""


class RecordingModelBucket(ColumnModelBucket):
    """Model bucket that remembers the outcomes of its own models by batch."""

    def __init__(self, folded: dict[tuple[int, int], list[Outcome]], number: int, spec: BucketsSpec) -> None:
        super().__init__(number, spec)
        self.folded, self.number = folded, number
        self.sequence.monitors = self.recording = RecordingEstimators(spec.monitors)

    def feed(self, batch, pieces, end_ms):
        self.recording.folded = []
        fed = super().feed(batch, pieces, end_ms)
        own = [outcome for outcome in self.recording.folded if self.sequence.owns(outcome.model)]
        assert self.folded.setdefault((self.number, batch), own) == own  # also when it is processed again
        return fed


class Kept:
    """A bucket and its log, which is written anew now and then."""

    def __init__(self, make, chance: Random, rebuilds: float) -> None:
        self.make, self.chance, self.rebuilds = make, chance, rebuilds
        self.bucket: Bucket = make()
        self.log: list[bytes] = []

    def feed(self, batch, pieces, end_ms):
        if self.chance.random() < self.rebuilds:
            self.bucket = self.make()
            for delta in self.log:
                self.bucket.take_in(delta)
        fed = self.bucket.feed(batch, pieces, end_ms)
        self.log.append(fed.delta)
        if self.chance.random() < self.rebuilds:
            self.log = self.bucket.base()
        return fed


class Cluster:
    """Id buckets and model buckets of one run, and what their results say."""

    def __init__(
        self,
        spec: BucketsSpec,
        chance: Random,
        rebuilds: float = 0.3,
        *,
        ids: Make = ColumnIdBucket,
        models: Make | None = None,
    ) -> None:
        self.spec, self.chance = spec, chance
        self.reader = ColumnReader(spec, digest_bytes)
        self.ids = [Kept(partial(ids, n, spec), chance, rebuilds) for n in range(spec.id_buckets)]
        self.folded: dict[tuple[int, int], list[Outcome]] = {}
        models = models or partial(RecordingModelBucket, self.folded)
        self.models = [Kept(partial(models, n, spec), chance, rebuilds) for n in range(spec.model_buckets)]
        self.view = ResultsView(spec)
        self.results: list[tuple[str, str, bytes]] = []
        self.batch = 0

    def feed(self, pieces: Sequence[Sequence[tuple[int, bytes]]], end_ms: int | None) -> None:
        self.batch += 1
        of_ids: list[list[bytes]] = [[] for _ in self.ids]
        for several in pieces:
            assert [bucket for bucket, _ in several] == list(range(len(self.ids)))
            for bucket, piece in several:
                of_ids[bucket].append(piece)
        of_models: list[list[bytes]] = [[] for _ in self.models]
        results = []
        for kept, own in zip(self.ids, of_ids, strict=True):
            self.chance.shuffle(own)
            fed = kept.feed(self.batch, own, end_ms)
            results += fed.results
            for bucket, part in fed.parts:
                of_models[bucket].append(part)
        for kept, own in zip(self.models, of_models, strict=True):
            self.chance.shuffle(own)
            results += kept.feed(self.batch, own, None).results
        for kind, name, body in results:
            self.view.take(kind, name, body)
        self.results = results
        assert self.view.identities() == []

    def run(self, log: Log, cuts: int, *, ended: bool) -> None:
        """Feed the whole log; each batch reads beyond its time here and there."""
        read = dict.fromkeys(log.records, 0)
        times = {partition: log.times(partition) for partition in log.records}
        first = min((t for several in times.values() for t in several if t >= 0), default=0)
        ends = sorted(self.chance.randint(first, max(first, log.newest_ms)) for _ in range(cuts))
        for end_ms in [*ends, None]:
            pieces = []
            for partition, several in times.items():
                upto = len(several) if end_ms is None else sum(t <= end_ms for t in several)
                upto = max(read[partition], min(len(several), upto + self.chance.choice([0, 0, 1, 5])))
                if upto > read[partition] or self.chance.random() < 0.3:
                    arrivals = log.arrivals(partition, read[partition], upto)
                    pieces.append(self.reader.split(partition, arrivals, HOST_MS))
                read[partition] = upto
            drained = None if ended else log.newest_ms
            self.feed(pieces, drained if end_ms is None else end_ms)
