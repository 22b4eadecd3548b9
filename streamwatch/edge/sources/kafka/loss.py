"""The log under a reader changed: what was to be read next is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from streamwatch.core.events import Partition
from streamwatch.telemetry import Happening, PositionLost


class ReadingEnded(Exception):  # noqa: N818 - it names what is the case
    """Reading cannot go on and no retry will cure it; the message says what to change."""


class LogLost(ReadingEnded):
    """The log no longer holds the next offset, and `on_loss: fail` asks to stop then."""


class Losses:
    """Counts what was lost, or refuses to go on.

    Parameters
    ----------
    on_loss
        What the operator chose.
    emit
        Where happenings go.
    """

    def __init__(self, on_loss: Literal["continue", "fail"], emit: Callable[[Happening], None]) -> None:
        self._on_loss = on_loss
        self._emit = emit
        self.times: Counter[str] = Counter()
        """Times the log was found changed, by cause."""
        self.records: Counter[str] = Counter()
        """Offsets skipped, by cause, where their number is known."""

    def resumed(self, partition: Partition, wanted: int, first: int, end: int) -> int:
        """The offset nearest to the one wanted in a log that holds `first` up to `end`, counted as a loss.

        Before the log's first record, retention was faster than the reader. Beyond its end, the log was
        truncated or made anew; reading goes on at its end, so that nothing counts twice.
        """
        resumed = min(max(wanted, first), end)
        if resumed == wanted:
            return wanted
        cause = "retention" if resumed > wanted else "truncation"
        self._refuse(
            f"{partition.topic}/{partition.partition} was read up to offset {wanted}, and its log now holds"
            f" {first} to {end} ({cause}): set kafka.on_loss to continue, to go on at {resumed}"
        )
        self.times[cause] += 1
        self.records[cause] += max(resumed - wanted, 0)
        self._emit(PositionLost(partition.topic, partition.partition, wanted, resumed, cause))
        return resumed

    def vanished(self, partition: Partition, wanted: int) -> None:
        """A partition that was read is not there any more: its topic was made anew with fewer."""
        self._refuse(
            f"{partition.topic}/{partition.partition} was read up to offset {wanted} and is no longer there:"
            " set kafka.on_loss to continue, to go on without it"
        )
        self.times["partition_vanished"] += 1
        self._emit(PositionLost(partition.topic, partition.partition, wanted, -1, "partition_vanished"))

    def _refuse(self, message: str) -> None:
        if self._on_loss == "fail":
            raise LogLost(message)
