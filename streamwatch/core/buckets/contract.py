"""Calls of an engine: a reader for each Kafka partition, then buckets of ids, then buckets of models.

    pieces = reader.split(partition, arrivals, host_ms)     one for each id bucket, every time
    fed = id_bucket.feed(batch, pieces, end_ms)             all pieces of the batch for this bucket
    fed.parts                                               one for each model bucket, every time
    fed = model_bucket.feed(batch, parts, None)             those of all id buckets in this batch

A batch is a cut of the log: of every partition a range of offsets, the next after the last, and a time
`end_ms`. Every record of that time or an earlier one that the log will ever have is in this or an earlier
one, as far as the engine can know (a partition read beyond `end_ms`, or found at its end for `time.settle`);
what comes later all the same is taken at once, and counted as out of order. Records beyond `end_ms` may be in
the batch: the id bucket holds them. So all buckets come to one time in a batch, and neither the number of
batches nor their ends change a number.

Every bucket is fed in every batch, in the order of batches, each batch once: an attempt that failed is
repeated on the state before it. A batch has pieces for every bucket or for none, as `split` says; a batch in
which nothing was read and time did not move need not be fed.

The state of a bucket is a log: what `base` gave, then the `delta` of each feed since. A new object that takes
these in, in order, is the bucket; it goes on bit for bit. What it would have handed out meanwhile was handed
out before. When to write a base anew is the engine's to choose: a log as long as two bases is a good time.

Results are named by (kind, name), and each replaces what stood under its name; a body of no bytes takes it
away. So a batch whose results were written twice leaves what it leaves once. `view.ResultsView` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch.core.events import Partition
from streamwatch.core.merge.arrivals import Arrivals

TOTALS: Final = "totals"
"""Kind of a result: counters and gauges of one bucket since the beginning, named `ids/3` or `models/1`."""
MODEL: Final = "model"
"""Kind of a result: snapshot of the estimators of a model (or fold of a model), by its name."""
PAIRS: Final = "comparisons"
"""Kind of a result: snapshot of the comparisons of models, named as the bucket that has them."""
ALARM: Final = "alarm"
"""Kind of a result: an alarm, named by its bucket and a number that goes up, as `models/1/000000000042`. The
latest ten thousand of each bucket stay."""


@dataclass(frozen=True, slots=True)
class Fed:
    """Result of one batch in one bucket.

    Attributes
    ----------
    parts
        Numbers of model buckets, each once and all of them, and what each is to be fed; of a model bucket
        none.
    results
        Kind, name and body of what the bucket tells the world.
    delta
        What `take_in` needs to repeat this feed.
    """

    parts: Sequence[tuple[int, bytes]]
    results: Sequence[tuple[str, str, bytes]]
    delta: bytes


class Keeper(Protocol):
    """An id bucket (the join of some ids) or a model bucket (the estimators of some models)."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> Fed:
        """Take in one batch.

        Parameters
        ----------
        batch
            Number of the batch, larger than that of the one before; names nothing but errors.
        pieces
            What readers, or id buckets, gave for this bucket, in any order.
        end_ms
            Time up to which the batch has everything, in milliseconds since the epoch, not smaller than that
            of the batch before. None: the log ends here (the end of a replay): all that is held is released,
            also what waits for the order of predictions, and nothing falls due for it. Of a model bucket it
            is not looked at, as its pieces say it.

        Raises
        ------
        ValueError
            If a piece is not for this bucket, or a batch before this one was left out.
        """
        ...

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed, or begin with a part of a base.

        Raises
        ------
        ValueError
            If it is neither, of this bucket and this version.
        """
        ...

    def base(self) -> list[bytes]:
        """Give the whole state as a log, which replaces all of the log before; each part some megabytes."""
        ...


class Reader(Protocol):
    """Divider of one partition's records among the id buckets, where that partition is read."""

    def split(self, partition: Partition, arrivals: Arrivals, host_ms: int) -> list[tuple[int, bytes]]:
        """Divide the records of one range of offsets.

        Every bucket gets a piece, be it of no record: it says how far time has come in the partition. Time
        within a piece is the running maximum from its first record on; an id bucket goes on from the maximum
        of the pieces before.

        Parameters
        ----------
        partition
            Where the records are from.
        arrivals
            The records, in offset order; each range begins where the one before ended.
        host_ms
            The host's clock, in milliseconds since the epoch, by which impossible timestamps are told. One
            value for a batch, chosen with its ranges: an attempt that is repeated has to be given the same.

        Returns
        -------
        Numbers of id buckets, each once and all of them, and their pieces.

        Raises
        ------
        ValueError
            If the topic is none of those that the reader was made for.
        """
        ...
