"""What an operator writes about Kafka, and how long the source waits between attempts."""

from __future__ import annotations

from typing import cast

import pytest
from aiokafka.errors import KafkaConnectionError

from streamwatch.core.ports import PartitionState
from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka import (
    Ago,
    At,
    KafkaSpec,
    LogLost,
    parse_start,
)
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.fetching import Backoff
from streamwatch.edge.sources.kafka.positions import PartitionStatus
from streamwatch.edge.sources.kafka.wire import worded
from streamwatch.telemetry import InternalEvent, PositionLost


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("-2h", Ago(7_200_000)),
        ("-1.5d", Ago(129_600_000)),
        ("-30s", Ago(30_000)),
        ("1700000000000", At(1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", At(1_700_000_000_000)),
        ("2023-11-14T22:13:20", At(1_700_000_000_000)),
        ("2023-11-15T00:13:20+02:00", At(1_700_000_000_000)),
        ("1970-01-02", At(86_400_000)),
    ],
)
def test_a_start_is_a_word_a_duration_back_or_a_moment(text: str, start: object):
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "soon", "2h", "-2 fortnights", "12345678", "2023-13-01"])
def test_any_other_start_says_what_was_expected(text: str):
    with pytest.raises(ValueError, match="expected earliest, latest, a duration back such as -2h"):
        parse_start(text)


def test_waits_double_up_to_a_bound_and_spread():
    longest = Backoff(0.25, 10, lambda: 1.0)
    assert [longest.next_seconds() for _ in range(8)] == [0.25, 0.5, 1, 2, 4, 8, 10, 10]
    longest.reset()
    assert longest.next_seconds() == 0.25
    assert Backoff(0.25, 10, lambda: 0.0).next_seconds() == 0.125


def test_secrets_are_not_shown():
    assert "hush" not in repr(KafkaSpec(password="hush", keyfile_password="hush"))  # noqa: S106


def test_a_log_that_changed_is_counted_or_refused():
    heard: list[InternalEvent] = []
    losses = DataLossTracker("continue", heard.append)
    partition = Partition("labels", 1)
    losses.overtaken(partition, 5, 10)
    losses.truncated(partition, 95, 90)
    losses.recreated(partition, 95, 0)
    losses.vanished(partition, 95)
    causes = ("retention", "truncation", "recreated", "partition_vanished")
    assert losses.times == dict.fromkeys(causes, 1)
    assert losses.records == {"retention": 5}
    assert [type(h) for h in heard] == [PositionLost] * 4
    strict = DataLossTracker("fail", heard.append)
    with pytest.raises(
        LogLost,
        match=r"labels/1 was read up to offset 5, and its log now begins at 10 \(retention\): .*at offset 10",
    ):
        strict.overtaken(partition, 5, 10)
    with pytest.raises(LogLost, match="no longer there"):
        strict.vanished(partition, 5)
    assert not strict.times


class _Answers:
    """A connection whose last fetch had this high watermark."""

    def at_end_ms(self, *_: object) -> int | None:
        return None

    def __init__(self, highwater: int) -> None:
        self.highwater = highwater

    def last_fetch(self, _: Partition) -> tuple[int, int]:
        return self.highwater, 1


@pytest.mark.parametrize(
    ("highwater", "shown", "caught_up"),
    [(-1, -1, False), (0, 150, False), (149, 150, False), (150, 150, True), (151, 151, False)],
)
def test_a_high_watermark_behind_the_position_is_neither_lag_nor_caught_up(
    highwater: int,
    shown: int,
    caught_up: bool,  # noqa: FBT001
):
    """As a leader answered that had been killed and had yet to recover its own."""
    partition, answers = Partition("labels", 0), cast("Connection", _Answers(highwater))
    health = BrokerHealth(10_000, lambda _: None, lambda: 0.0)
    partition_status = PartitionStatus(health, 10_000, lambda: 0.0)
    found = partition_status.after([partition], {partition: 150}, answers)
    assert health.alive
    assert found == {partition: PartitionState(150, shown, caught_up)}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KafkaConnectionError("no route"), "KafkaConnectionError: no route"),
        (TimeoutError("no answer for 3 s"), "TimeoutError: no answer for 3 s"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_is_named_once(error: Exception, text: str):
    assert worded(error) == text
