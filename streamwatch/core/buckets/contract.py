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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch.core.events import Partition
from streamwatch.core.merge.arrivals import Arrivals

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
            Number of the batch, larger than that of the previous one; used in error messages only.
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
            If a piece is not for this bucket, or an earlier batch is missing.
        """
        ...

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed, or restore a part of a base.

        Raises
        ------
        ValueError
            If `delta` is neither, or of another bucket or version.
        """
        ...

    def base(self) -> list[bytes]:
        """Encode the whole state as a log that replaces the log so far; each part has some megabytes."""
        ...


class Reader(Protocol):
    """Divides the records of one partition among the id buckets; runs where the partition is read."""

    def split(self, partition: Partition, arrivals: Arrivals, host_ms: int) -> list[tuple[int, bytes]]:
        """Divide the records of one range of offsets.

        Every bucket gets a piece, even without records, as the piece tells how far time has come in the
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
