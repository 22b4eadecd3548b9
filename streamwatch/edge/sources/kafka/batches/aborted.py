"""Transactions that were aborted: whose batches are passed over, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamwatch.core.fetched import KEY, KEY_BYTES
from streamwatch.edge.sources.kafka.batches.frames import TRANSACTIONAL, Batch
from streamwatch.edge.sources.kafka.batches.scan import new_rows, scan

_ABORT = b"\x00\x00"


class AbortedTransactions:
    """Those that a broker names with one answer.

    Parameters
    ----------
    named
        (producer id, first offset) of each; None if there are none.
    """

    def __init__(self, named: Iterable[tuple[int, int]] | None) -> None:
        self._coming = sorted(named or (), key=lambda transaction: -transaction[1])
        self._producers: set[int] = set()

    @property
    def coming(self) -> bool:
        """Tell whether transactions begin that were not met yet."""
        return bool(self._coming)

    def covers(self, batch: Batch) -> bool:
        """Tell whether this batch, met after all before it, belongs to an aborted transaction."""
        while self._coming and self._coming[-1][1] <= batch.base_offset:
            self._producers.add(self._coming.pop()[0])
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._producers

    def end_at(self, batch: Batch, data: Any) -> None:
        """A control batch ends the transaction of its producer if it holds the marker of an abort.

        Parameters
        ----------
        batch
            Its header.
        data
            Its records: bytes-like.
        """
        rows = new_rows(1)
        found, *_ = scan(data, 0, 1, 0, batch.last_delta, -1, 0, -1, rows)
        if found:
            at, length = int(rows[0, KEY]), int(rows[0, KEY_BYTES])
            if length >= 4 and bytes(data[at + 2 : at + 4]) == _ABORT:
                self._producers.discard(batch.producer_id)
