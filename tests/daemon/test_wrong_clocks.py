"""Clocks that are wrong, with the default settings of time: nothing expires early, no label is orphaned.

Every prediction here gets its label within the horizon, so a daemon that is not fooled joins all of them,
whoever's clock is wrong: the host's, a producer's, or that of a single record.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from streamwatch.assembly.state import HostClocks, state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.daemon.fake_daemon import Record, only

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
START_MS = 1_700_000_000_000
YEAR_9999_MS = 253_402_300_000_000
PARTITIONS = [Partition(topic, number) for topic in ("predictions", "labels") for number in (0, 1)]
DOCUMENT: dict[str, Any] = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": "predictions", "labels": "labels"},
    "state": {"kind": "memory"},
}


@dataclass(frozen=True)
class Written:
    """A record, when it was written, and how far the clock of its producer was off."""

    written_ms: int
    partition: Partition
    value: dict[str, str]
    off_ms: int = 0


@dataclass
class Truth:
    """Time as it is, of which the host's clocks know some."""

    now_ms: int
    host_off_ms: Callable[[int], int] = lambda _: 0
    asleep_ms: int = 0
    """How long the host was suspended so far."""

    def clocks(self) -> HostClocks:
        return HostClocks(lambda: self.now_ms + self.host_off_ms(self.now_ms), self.monotonic)

    def monotonic(self) -> float:
        return (self.now_ms - START_MS - self.asleep_ms) / 1_000


def stream(
    start_ms: int, count: int, every_ms: int, delays_ms: Sequence[int], first: int = 0
) -> list[Written]:
    """Predictions at regular times, each with its label after one of the delays; ids from `first` on."""
    written = []
    for i in range(first, first + count):
        at_ms = start_ms + (i - first) * every_ms
        prediction = {"id": str(i), "model": "m", "prediction": "ab"[i % 3 == 0]}
        written.append(Written(at_ms, Partition("predictions", i % 2), prediction))
        label = {"id": str(i), "label": "a"}
        written.append(Written(at_ms + delays_ms[i % len(delays_ms)], Partition("labels", i // 2 % 2), label))
    return sorted(written, key=lambda each: each.written_ms)


@dataclass
class Watched:
    """A daemon's processor that reads what was written, poll by poll."""

    truth: Truth
    horizon: str = "2h"
    log: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        telemetry = Telemetry(stream=self.log)
        settings = Settings(**DOCUMENT, join={"horizon": self.horizon})
        opening = state_opening(settings, build_topics(settings), telemetry, clocks=self.truth.clocks())
        self.processor = opening().processor
        self._ends = dict.fromkeys(PARTITIONS, 0)

    def read(self, written: Sequence[Written], step_ms: int = 500) -> None:
        """Read as it is written, and long enough after the end for everything to be evaluated."""
        asyncio.run(self._read(iter(written), len(written), step_ms))

    def suspend(self, ms: int) -> None:
        """Let time pass of which the host does not know."""
        self.truth.now_ms += ms
        self.truth.asleep_ms += ms

    async def _read(self, written: Iterator[Written], left: int, step_ms: int) -> None:
        ahead: list[Written] = []
        until_ms = 0
        while left or self.truth.now_ms < until_ms:
            records: dict[Partition, list[Record]] = {}
            while left and (ahead or (ahead := [next(written)])) and ahead[0].written_ms <= self.truth.now_ms:
                each, left = ahead.pop(), left - 1
                value = json.dumps(each.value).encode()
                stamp_ms = each.written_ms + each.off_ms
                record = Record(*each.partition, self._ends[each.partition], stamp_ms, value)
                records.setdefault(each.partition, []).append(record)
                self._ends[each.partition] += 1
                until_ms = self.truth.now_ms + 6 * MINUTE
            await self._poll(records)
            self.truth.now_ms += step_ms

    async def _poll(self, records: dict[Partition, list[Record]]) -> None:
        found_ms = int(self.truth.monotonic() * 1_000)
        states = {
            p: PartitionState(end, end, caught_up=True, at_end_ms=found_ms) for p, end in self._ends.items()
        }
        await self.processor.receive(Poll(records, states))
        while self.processor.has_ready:
            self.processor.evaluate()

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]

    def counters(self) -> dict[str, float]:
        """Sums of what was counted, by name."""
        return {
            family.name: sum(float(value) for _, value in family.samples)  # type: ignore[arg-type]
            for family in self.processor.pipeline.families()
            if family.name.startswith(("predictions_", "labels_"))
        }

    def assert_all_joined(self, predictions: int) -> None:
        counters = self.counters()
        assert only(self.processor.families(), "merge_held_records") == 0
        assert counters["predictions_resolved_total"] == predictions
        wrong = ("predictions_expired_total", "labels_orphaned_total", "labels_late_total")
        assert [counters[name] for name in wrong] == [0, 0, 0]


def watched(truth: Truth | None = None, horizon: str = "2h") -> Watched:
    return Watched(truth or Truth(START_MS), horizon)


DENSE = stream(START_MS, 1_200, 250, (100, 3 * SECOND, 20 * SECOND, 60 * SECOND))


def with_one_off(off_ms: int, index: int = 1_200) -> list[Written]:
    return [replace(each, off_ms=off_ms) if i == index else each for i, each in enumerate(DENSE)]


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 3, 200])
def test_a_host_30_days_behind_and_then_right_fools_nobody(start: int) -> None:
    """However few records there are at first."""
    right_ms = START_MS + 2 * MINUTE
    daemon = watched(Truth(START_MS, lambda now_ms: -30 * DAY if now_ms < right_ms else 0))
    slow = stream(START_MS - start * 10 * SECOND, start, 10 * SECOND, (1_000,), first=10_000)
    daemon.truth.now_ms = START_MS - start * 10 * SECOND
    daemon.read(sorted(slow + DENSE, key=lambda each: each.written_ms))
    daemon.assert_all_joined(1_200 + start)
    assert daemon.processor.progress.corrected == {}
    assert daemon.processor.progress.out_of_order == {}
    clock_events = [name for name in daemon.events() if name.startswith("host_clock")]
    assert clock_events == ["host_clock_behind", "host_clock_right"]


@pytest.mark.slow
@pytest.mark.parametrize("every", [MINUTE, 10 * MINUTE])
def test_a_machine_resumed_after_30_days_whose_clock_comes_right_later_fools_nobody(every: int) -> None:
    """Its clock goes on from where it was suspended, and the first records it reads are a month's backlog."""
    before = stream(START_MS, 100, every, (1_000, 20 * MINUTE))
    slept_ms = START_MS + 100 * every + 2 * HOUR
    count = 30 * DAY // every
    missed = stream(slept_ms, count, every, (1_000, 20 * MINUTE, HOUR), first=100)
    resumed_ms = slept_ms + 30 * DAY
    right_ms = resumed_ms + 90 * SECOND
    daemon = watched(Truth(START_MS, lambda now_ms: -30 * DAY if resumed_ms <= now_ms < right_ms else 0))
    daemon.read(before, step_ms=30 * SECOND)
    daemon.suspend(resumed_ms - daemon.truth.now_ms)
    daemon.read(missed, step_ms=30 * SECOND)
    daemon.assert_all_joined(100 + count)
    assert daemon.processor.progress.corrected == {}


@pytest.mark.slow
def test_a_weekends_gap_expires_nothing_early() -> None:
    late = stream(START_MS + 2 * DAY, 400, 250, (1_000, 30 * SECOND), first=5_000)
    daemon = watched()
    daemon.read(DENSE)
    daemon.truth.now_ms = START_MS + 2 * DAY - MINUTE
    daemon.read(late)
    daemon.assert_all_joined(1_600)
    assert daemon.processor.progress.corrected == {}
    assert daemon.processor.progress.out_of_order == {}


@pytest.mark.slow
@pytest.mark.parametrize("off_ms", [HOUR, YEAR_9999_MS - START_MS])
@pytest.mark.parametrize("index", [0, 1_200, len(DENSE) - 1])
def test_one_record_ahead_is_counted_and_moves_no_time(off_ms: int, index: int) -> None:
    daemon = watched()
    daemon.read(with_one_off(off_ms, index))
    daemon.assert_all_joined(1_200)
    assert daemon.processor.progress.corrected == {"future": 1}
    assert "host_clock_behind" not in daemon.events()


@pytest.mark.parametrize(("off_ms", "reason"), [(HOUR, "jump"), (YEAR_9999_MS - START_MS, "future")])
def test_one_record_ahead_in_a_backlog_is_counted_and_moves_no_time(off_ms: int, reason: str) -> None:
    daemon = watched(Truth(START_MS + 30 * DAY))
    daemon.read(with_one_off(off_ms))
    daemon.assert_all_joined(1_200)
    assert daemon.processor.progress.corrected == {reason: 1}


@pytest.mark.slow
@pytest.mark.parametrize("alone", [True, False])
def test_a_producer_a_day_ahead_is_counted_record_by_record(alone: bool) -> None:  # noqa: FBT001  # a case
    """Whether it has a partition of its own, or shares one with others whose clocks are right."""

    def is_its(each: Written) -> bool:
        number = int(each.value["id"])
        return each.partition == ("predictions", 1) if alone else "model" in each.value and number % 7 == 0

    written = [replace(each, off_ms=DAY) if is_its(each) else each for each in DENSE]
    daemon = watched()
    daemon.read(written)
    daemon.assert_all_joined(1_200)
    assert daemon.processor.progress.corrected == {"future": sum(map(is_its, written))}
    assert "host_clock_behind" not in daemon.events()


@pytest.mark.slow
@pytest.mark.parametrize("alone", [True, False])
def test_a_producer_a_day_behind_loses_nothing(alone: bool) -> None:  # noqa: FBT001  # a case
    """What it writes into a partition of its own comes too late for the order, and is counted so.

    The horizon, here the default one, has to be longer than its clock is behind: in the order of the log its
    predictions are that much older than their labels.
    """

    def is_its(each: Written) -> bool:
        number = int(each.value["id"])
        return each.partition == ("predictions", 1) if alone else "model" in each.value and number % 7 == 0

    written = [replace(each, off_ms=-DAY) if is_its(each) else each for each in DENSE]
    daemon = watched(horizon="14d")
    daemon.read(written)
    daemon.assert_all_joined(1_200)
    late = daemon.processor.progress.out_of_order
    assert daemon.processor.progress.corrected == {}
    if alone:
        assert late.keys() == {"predictions"}
        assert 500 < late["predictions"] < 600, "all but those read before each partition had a record"
    else:
        assert late == {}
