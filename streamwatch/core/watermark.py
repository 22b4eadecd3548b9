"""Record time: how far each side of the join has been read, and who is too far ahead.

The only clock deadlines know. Time enters with `Progress` events, in order, so a replay has the same times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamwatch.core.events import Partition, Progress, Side
from streamwatch.core.specs import TimeSpec


@dataclass(slots=True)
class Reading:
    """How far one partition has been read."""

    side: Side
    progress_ms: int = -1
    """Highest clamped timestamp reported by `Progress`."""
    caught_up: bool = False
    stamped_ms: int = -1
    """Highest clamped timestamp handed out by `stamp`."""


@dataclass(frozen=True, slots=True)
class TimelineState:
    """Everything a timeline knows, to be stored."""

    readings: list[tuple[str, int, Reading]]
    prediction_ms: int
    label_ms: int
    newest_ms: int
    clamped: int


class Timeline:
    """Two watermarks, each the minimum over its side's partitions that are not caught up; they never regress.

    If all partitions of a side are caught up, its watermark is the highest timestamp seen on any topic. A
    partition that has delivered nothing and is not caught up holds its side's watermark. -1 means no time is
    known yet.

    Raises
    ------
    KeyError
        From `stamp` and `progress`, for a partition never added.
    """

    __slots__ = (
        "_holds",
        "_max_disorder_ms",
        "_max_future_ms",
        "_readings",
        "_time",
        "clamped",
        "label_ms",
        "newest_ms",
        "prediction_ms",
    )

    def __init__(self, time: TimeSpec, sides: Mapping[Partition, Side]) -> None:
        self._time = time
        self._max_disorder_ms = time.max_disorder_ms
        self._max_future_ms = time.max_future_ms
        self._readings: dict[tuple[str, int], Reading] = {
            Partition(*partition): Reading(side) for partition, side in sides.items()
        }
        self.prediction_ms = -1
        self.label_ms = -1
        self.newest_ms = -1
        self.clamped = 0
        """Record timestamps that had to be clamped."""
        self._holds: dict[Literal["prediction", "label"], int | None] = {}
        self._measure()

    @property
    def caught_up(self) -> bool:
        """Every partition's position had reached the high watermark of a recent fetch."""
        return all(reading.caught_up for reading in self._readings.values())

    @property
    def partitions(self) -> Iterable[tuple[str, int]]:
        """Every partition known."""
        return self._readings.keys()

    def add(self, partition: Partition, side: Side) -> None:
        """A partition was added to a topic: it holds its side's watermark until it is caught up."""
        if partition not in self._readings:
            self._readings[Partition(*partition)] = Reading(side)
            self._measure()

    def forget(self, partition: Partition) -> None:
        """A partition is gone from its topic: it holds nothing; watermarks move with the next progress."""
        del self._readings[partition]
        self._measure()

    def keep_only(self, topics: Collection[str]) -> None:
        """Forget the partitions of all other topics: they are not read any more, and must hold nothing."""
        for partition in [p for p in self._readings if p[0] not in topics]:
            del self._readings[partition]
        self._measure()

    def stamp(self, partition: Partition, timestamp_ms: int, now_ms: int) -> int:
        """Clamp a record's timestamp to [partition's maximum − max_disorder, now + max_future].

        Under a host clock that runs behind, the upper bound is the partition's maximum: time stands still
        then, but is not turned back, for what is stamped as older than it is expires too early.
        """
        reading = self._readings[partition]
        newest_ms = reading.stamped_ms
        if timestamp_ms > newest_ms:
            if timestamp_ms <= now_ms + self._max_future_ms:
                reading.stamped_ms = timestamp_ms
                return timestamp_ms
        elif timestamp_ms >= newest_ms - self._max_disorder_ms and timestamp_ms >= 0:
            return timestamp_ms
        self.clamped += 1
        latest_ms = max(now_ms + self._max_future_ms, newest_ms)
        at_ms = max(min(timestamp_ms, latest_ms), newest_ms - self._max_disorder_ms, 0)
        reading.stamped_ms = max(at_ms, newest_ms)
        return at_ms

    def stamp_all(self, partition: Partition, timestamps_ms: Sequence[int], now_ms: int) -> Sequence[int]:
        """What `stamp` gives for each of them in turn (there is at least one)."""
        reading = self._readings[partition]
        oldest_ms, newest_ms = min(timestamps_ms), max(reading.stamped_ms, *timestamps_ms)
        if newest_ms <= now_ms + self._max_future_ms and oldest_ms >= max(
            newest_ms - self._max_disorder_ms, 0
        ):
            reading.stamped_ms = newest_ms
            return timestamps_ms
        return [self.stamp(partition, timestamp_ms, now_ms) for timestamp_ms in timestamps_ms]

    def progress(self, event: Progress) -> None:
        """Take in how far one partition has been read, and advance the watermarks."""
        reading = self._readings[event.topic, event.partition]
        before_ms, was_caught_up = reading.progress_ms, reading.caught_up
        at_ms = max(event.timestamp_ms, before_ms)
        reading.progress_ms = at_ms
        reading.caught_up = event.caught_up
        reading.stamped_ms = max(reading.stamped_ms, at_ms)
        self.newest_ms = max(self.newest_ms, at_ms)
        if was_caught_up != event.caught_up or (not was_caught_up and before_ms in self._holds.values()):
            self._measure()
        self._advance()

    def _measure(self) -> None:
        for side in ("prediction", "label"):
            self._holds[side] = min(
                (
                    reading.progress_ms
                    for reading in self._readings.values()
                    if not reading.caught_up and reading.side in (side, "both")
                ),
                default=None,
            )

    def _advance(self) -> None:
        holds = self._holds
        hold = holds["prediction"]
        self.prediction_ms = max(self.prediction_ms, self.newest_ms if hold is None else hold)
        hold = holds["label"]
        self.label_ms = max(self.label_ms, self.newest_ms if hold is None else hold)

    def ahead(self) -> frozenset[Partition]:
        """Partitions to hold back: more than `max_skew` ahead of the slowest one that is not caught up.

        Ask again after every poll: what one poll delivers is how far a partition can run beyond that.
        """
        slowest_ms = min((r.progress_ms for r in self._readings.values() if not r.caught_up), default=None)
        if slowest_ms is None:
            return frozenset()
        limit_ms = slowest_ms + self._time.max_skew_ms
        return frozenset(Partition(*p) for p, r in self._readings.items() if r.progress_ms > limit_ms)

    def preview(self, events: Iterable[Progress]) -> tuple[int, int]:
        """Watermarks (prediction, label) as they will be after these events."""
        later = Timeline(self._time, {})
        later.restore(self.state())
        for event in events:
            later.progress(event)
        return later.prediction_ms, later.label_ms

    def unread(self) -> list[Progress]:
        """Events that say nothing is caught up, to go before the first batch of a start or a new connection.

        What had been caught up may have a backlog by now, and must hold its side's watermark until that is
        known.
        """
        return [Progress(topic, partition, -1, False) for topic, partition in self._readings]

    def state(self) -> TimelineState:
        """What `restore` continues from; only what `Progress` has confirmed."""
        readings = [
            (topic, partition, Reading(r.side, r.progress_ms, r.caught_up, r.progress_ms))
            for (topic, partition), r in self._readings.items()
        ]
        return TimelineState(readings, self.prediction_ms, self.label_ms, self.newest_ms, self.clamped)

    def restore(self, state: TimelineState) -> None:
        """Continue from a `state`; partitions added since then stay, and hold their side's watermark."""
        for topic, partition, reading in state.readings:
            self._readings[Partition(topic, partition)] = reading
        self.prediction_ms = state.prediction_ms
        self.label_ms = state.label_ms
        self.newest_ms = state.newest_ms
        self.clamped = state.clamped
        self._measure()
