"""Protocols for a processing engine: a reader per Kafka partition, then id buckets, then model buckets.

    pieces = reader.split(partition, arrivals, host_ms)     one for each id bucket, every time
    fed = id_bucket.feed(batch, pieces, end_ms)             all pieces of the batch for this bucket
    fed.parts                                               one for each model bucket, every time
    fed = model_bucket.feed(batch, parts, None)             those of all id buckets in this batch

A batch is a section of the log: for every partition a range of offsets, contiguous with the previous one, and
a time `end_ms`. Every record of that time or earlier that the log will ever contain is in this or an earlier
batch, as far as the engine can know (it read the partition beyond `end_ms`, or found it at its end for
`time.settle`). Records that come later nevertheless are processed at once, and counted as out of order.
Records beyond `end_ms` may be in the batch: the id bucket holds them. So all buckets reach the same time in a
batch, and the number of batches and their ends do not affect any result.

Every bucket is fed in every batch, in the order of batches, each batch once; a failed attempt is repeated on
the state before it. As `split` requires, a batch has pieces for every bucket or for none; a batch in which
nothing was read and time did not move need not be fed.

The state of a bucket is a log: the result of `base`, then the `delta` of each feed since. A new object that
takes these in, in order, continues bit for bit like the original. Parts and results of the repeated feeds are
not handed out again. The engine chooses when to replace the log by a new base; a good time is when it is as
long as two bases.

Results are identified by (kind, name), and each replaces the previous one of that name; an empty body removes
it. So writing a batch's results twice has the same effect as writing them once. `view.ResultsView` reads
them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Protocol, TypeAlias

import msgspec

from streamwatch.core.merge.inbox import Arrivals
from streamwatch.core.merge.merge import RANKS
from streamwatch.core.records.events import Name, Partition, Side, model_of
from streamwatch.core.specs import JoinSpec, MonitorsSpec

TOTALS: Final = "totals"
"""Kind of result: counters and gauges of one bucket since the start, named `ids/3` or `models/1`."""
MODEL: Final = "model"
"""Kind of result: snapshot of the estimators of a model (or of a fold of a model), by its name."""
PAIRS: Final = "comparisons"
"""Kind of result: snapshot of the comparisons of models, named after the bucket that holds them."""
ALARM: Final = "alarm"
"""Kind of result: an alarm, named by its bucket and an increasing number, as `models/1/000000000042`.

The latest ten thousand of each bucket are kept.
"""


@dataclass(frozen=True, slots=True)
class FeedResult:
    """Result of one batch in one bucket.

    Attributes
    ----------
    parts
        Pairs (number of the model bucket, its input), one for every model bucket; empty for a model bucket's
        own feed.
    results
        Kind, name and body of the results to publish.
    delta
        Input with which `take_in` repeats this feed.
    """

    parts: Sequence[tuple[int, bytes]]
    results: Sequence[tuple[str, str, bytes]]
    delta: bytes


class Bucket(Protocol):
    """Id bucket (join of some ids) or model bucket (estimators of some models)."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """Process one batch.

        Parameters
        ----------
        batch
            Number of the batch, larger than that of the previous one; used in checks and messages only.
        pieces
            Results of readers, or of id buckets, for this bucket, in any order.
        end_ms
            Time up to which the batch is complete, in milliseconds since the epoch, not smaller than that of
            the previous batch. None: the log ends here (the end of a replay), so everything held is released,
            including outcomes that wait for the order of predictions, without letting anything expire.
            Ignored by a model bucket, whose pieces contain it.

        Raises
        ------
        ValueError
            If a piece is not for this bucket, the number of the batch is not larger than that of the previous
            one, parts of id buckets are missing, or parts of a base are.
        """
        ...

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed, or restore a part of a base.

        Raises
        ------
        ValueError
            If `delta` is neither a feed's delta nor a part of a base, or is of another bucket or version.
        """
        ...

    def base(self) -> list[bytes]:
        """Encode the whole state as a log that replaces the log so far; each part has some megabytes."""
        ...


class Reader(Protocol):
    """Divides the records of one partition among the id buckets; runs where the partition is read."""

    def split(self, partition: Partition, arrivals: Arrivals, host_ms: int) -> list[tuple[int, bytes]]:
        """Divide the records of one range of offsets.

        Every bucket gets a piece, even without records, because the piece has the newest time of the
        partition. Time within a piece is the running maximum from its first record on; an id bucket continues
        from the maximum of earlier pieces.

        Parameters
        ----------
        partition
            Partition of the records.
        arrivals
            The records, in offset order; each range begins where the previous one ended.
        host_ms
            The host's clock, in milliseconds since the epoch, by which impossible timestamps are recognised.
            It must be the same for the whole batch, and for a repeated attempt.

        Returns
        -------
        list
            Pairs (number of the id bucket, piece), one for every id bucket.

        Raises
        ------
        ValueError
            If the topic is not one of those in the specification.
        """
        ...


# Specification of the partitioning into buckets; the same for every reader and bucket of a state.


@dataclass(frozen=True, slots=True)
class BucketsSpec:
    """Specification from which readers and buckets are built.

    It is an argument of `ColumnReader(spec, digests)`, `ColumnIdBucket(number, spec)` and
    `ColumnModelBucket(number, spec)`.

    Raises
    ------
    ValueError
        If `join.conflicts` is `last`: parts have no field for the label known when a prediction is revised.
    """

    sides: Mapping[str, Side]
    """Kind of events of each topic, in the order of the settings."""
    join: JoinSpec = field(default_factory=JoinSpec)
    """Rules of the join.

    `max_pending`, `max_labels`, `max_dedup_entries` and `max_reordered` apply to all buckets together,
    `max_models` to each.
    """
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    """Estimators of every model."""
    id_buckets: int = 4
    """Number of id buckets, at least 1; fixed for the life of a state."""
    model_buckets: int = 3
    """Number of model buckets, at least 1; fixed for the life of a state."""
    max_future_ms: int = 300_000
    """Largest plausible advance of a timestamp over the host's clock, in milliseconds (`time.max_future`)."""
    start_ms: int | None = None
    """Record time at which reading begins, in milliseconds; None at the beginning of the topics.

    Labels whose prediction may be older are not counted as orphaned.
    """

    def __post_init__(self) -> None:
        if self.join.conflicts == "last":
            raise ValueError("conflicts of buckets must be 'first' or 'both', got 'last'")


# Assignment of ids to buckets by their digests, and of models by their names.


def bucket_of_partition(partition: Partition, id_buckets: int) -> int:
    """Id bucket that counts the records of a partition, and gets its events without an id."""
    return (zlib.crc32(partition.topic.encode()) + partition.partition) % id_buckets


class ModelRoutes:
    """Model buckets of each model: the one it belongs to, and others that need its outcomes.

    Folds are in the bucket of their model. Models that are compared are all in one bucket, as a comparison
    needs both. A model that is the reference of a drift weighting (`drift_signal: reference`) is in every
    bucket.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    """

    __slots__ = ("_found", "_spec")

    def __init__(self, spec: BucketsSpec) -> None:
        self._spec = spec
        self._found: dict[str, tuple[int, ...]] = {}

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Buckets of a model or fold; the one it belongs to is first."""
        try:
            return self._found[name]
        except KeyError:
            if len(self._found) > 2 * self._spec.join.max_models:
                self._found.clear()  # names of retired models
            return self._found.setdefault(name, self._route(model_of(name)))

    def _route(self, model: str) -> tuple[int, ...]:
        buckets = self._spec.model_buckets
        owner = zlib.crc32(model.encode()) % buckets
        for each in self._spec.join.comparisons:
            if model == each.champion or any(fnmatchcase(model, pattern) for pattern in each.challengers):
                owner = self.comparison_bucket
        referenced = {
            each.reference for each in self._spec.monitors.drift_weighted if each.drift_signal == "reference"
        }
        if model not in referenced:
            return (owner,)
        return (owner, *(bucket for bucket in range(buckets) if bucket != owner))

    @property
    def comparison_bucket(self) -> int:
        """Bucket of all models that are compared."""
        return 0


# Positions in the sequence of all events, as tuples that sort alike in all buckets.
#
# A position begins with a time and a kind. At each time, expirations come first, then the clock reaches the
# time, then its records follow.
#
# - (deadline, DUE, position of the prediction …): the prediction expires.
# - (time, TICK): time passes, because the first record of this time is next.
# - (time, RECORD, rank, offset, event, …): an event; `rank` is that of topic and partition.


SequencePosition: TypeAlias = tuple[int, ...]

DUE: Final = 0
TICK: Final = 1
RECORD: Final = 2

_PARTITION_BITS: Final = 32


def ranks_of(sides: Mapping[str, Side]) -> dict[str, int]:
    """Rank topics: those of predictions, then mixed ones, then those of labels; ties as in the settings."""
    return {topic: rank for rank, topic in enumerate(sorted(sides, key=lambda topic: RANKS[sides[topic]]))}


def rank_of(ranks: Mapping[str, int], partition: Partition) -> int:
    """Rank of a partition among those of all topics.

    Raises
    ------
    ValueError
        If its topic has no rank.
    """
    if partition.topic not in ranks:
        raise ValueError(f"expected a topic of {', '.join(ranks)}, got {partition.topic!r}")
    return ranks[partition.topic] << _PARTITION_BITS | partition.partition


# Activity of models, and invalid records of them, as id buckets report it to model buckets.


class Activity(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Activity of a model in one id bucket during a part of a batch in which it was not idle there.

    A model is idle if no prediction was accepted for `2 * horizon`. A model that was idle during the batch
    has one record for each period between.
    """

    model: Name
    first: SequencePosition
    """Position of the first prediction accepted since the model was idle or new; empty if `was_active`."""
    was_active: bool
    """Whether it was active before the batch, and was not idle since."""
    accepted: int
    joined: int
    left: int
    """Predictions that expired, or were evicted or withdrawn."""
    last_ms: int
    """Latest record time so far of a prediction that was accepted, or that revised a pending one."""
    last_event_ms: int
    """Latest event time of such a prediction, at most its record time; -1 without one."""


class InvalidOfModel(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Invalid record whose model could be read."""

    position: SequencePosition
    model: Name
