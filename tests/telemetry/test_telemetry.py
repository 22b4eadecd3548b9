"""One internal event is one line and one count; noisy ones are counted, and written now and then."""

from __future__ import annotations

import errno
import io
import json
from typing import Literal

import pytest

from streamwatch import telemetry
from streamwatch.telemetry import (
    SAMPLE_BURST,
    SAMPLE_PERIOD_SECONDS,
    AlarmRaised,
    InternalEvent,
    KafkaLost,
    RecordRejected,
    Stopping,
    Telemetry,
)

INTERNAL_EVENTS = [
    kind
    for kind in vars(telemetry).values()
    if isinstance(kind, type) and issubclass(kind, InternalEvent) and kind is not InternalEvent
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def counts(log: Telemetry) -> dict[str, float]:
    return {labels[0]: value for family in log.families() for labels, value in family.samples}  # type: ignore[misc]


def rejected(reason: str = "invalid_json", offset: int = 0) -> RecordRejected:
    return RecordRejected("predictions", 3, offset, reason)


def test_an_internal_event_is_one_json_line_with_its_fields_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    Telemetry(stream=stream).emit(rejected(offset=7))
    (line,) = lines(stream)
    assert line.pop("timestamp")
    assert line == {
        "event": "record_rejected",
        "level": "warning",
        "topic": "predictions",
        "partition": 3,
        "offset": 7,
        "reason": "invalid_json",
    }


def test_on_a_terminal_lines_are_for_people() -> None:
    stream = Terminal()
    Telemetry(stream=stream).emit(Stopping("SIGTERM"))
    assert "stopping" in stream.getvalue()
    assert "{" not in stream.getvalue()


@pytest.mark.parametrize(("form", "stream"), [("json", Terminal()), ("pretty", io.StringIO())])
def test_the_format_can_be_forced(form: telemetry.Format, stream: io.StringIO) -> None:
    Telemetry(form=form, stream=stream).emit(Stopping("SIGTERM"))
    assert stream.getvalue().startswith("{") == (form == "json")


def test_what_is_below_the_level_is_counted_and_not_written() -> None:
    stream = io.StringIO()
    log = Telemetry(level="warning", stream=stream)
    log.emit(Stopping("SIGTERM"))
    log.emit(KafkaLost("refused"))
    assert [line["event"] for line in lines(stream)] == ["kafka_lost"]
    assert counts(log) == {"stopping": 1.0, "kafka_lost": 1.0}


def test_rejected_records_are_all_counted_but_only_a_few_of_each_reason_are_written() -> None:
    stream, clock = io.StringIO(), Clock()
    log = Telemetry(stream=stream, clock=clock)
    for offset in range(1_000):
        log.emit(rejected("invalid_json", offset))
    log.emit(rejected("missing_id"))
    assert counts(log) == {"record_rejected": 1_001.0}
    written = [line["reason"] for line in lines(stream)]
    assert written == ["invalid_json"] * SAMPLE_BURST + ["missing_id"]


def test_after_a_while_the_next_line_says_how_many_were_held_back() -> None:
    stream, clock = io.StringIO(), Clock()
    log = Telemetry(stream=stream, clock=clock)
    for _ in range(SAMPLE_BURST + 20):
        log.emit(rejected())
    clock.now += SAMPLE_PERIOD_SECONDS
    log.emit(rejected())
    log.emit(rejected())
    last_two = lines(stream)[-2:]
    assert last_two[0]["suppressed"] == 20
    assert "suppressed" not in last_two[1]


def test_the_table_of_limits_is_bounded_however_many_models_alarm() -> None:
    log = Telemetry(stream=io.StringIO())
    for i in range(5_000):
        log.emit(AlarmRaised(f"model-{i}", "page_hinkley", 1, i, 0, 0.1, 0.2))
    assert len(log._windows) <= 1_000
    assert counts(log) == {"alarm_raised": 5_000.0}


@pytest.mark.parametrize("kind", INTERNAL_EVENTS)
def test_every_internal_event_is_documented_and_carries_no_content_of_records(
    kind: type[InternalEvent],
) -> None:
    assert kind.__doc__
    assert not {"value", "key", "payload", "headers", "id", "scores"} & {*kind.__struct_fields__}
    assert kind.sampled_by is None or kind.sampled_by in kind.__struct_fields__


class Full(io.StringIO):
    """A file on a disk that is full at times."""

    is_full = True

    def write(self, text: str, /) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


@pytest.mark.parametrize("form", ["json", "pretty"])
def test_a_line_that_cannot_be_written_is_counted_in_the_next(
    form: Literal["json", "pretty"],
) -> None:
    stream = Full()
    log = Telemetry(form=form, stream=stream)
    log.emit(Stopping("SIGTERM"))
    log.emit(rejected())
    stream.is_full = False
    log.emit(Stopping("SIGTERM"))
    log.emit(Stopping("SIGTERM"))
    first, second = stream.getvalue().splitlines()
    assert "unwritten" in first
    assert "2" in first.partition("unwritten")[2]
    assert "unwritten" not in second
    assert counts(log) == {"stopping": 3.0, "record_rejected": 1.0}
