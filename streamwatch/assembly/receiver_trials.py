"""Test notifications, sent to receivers by `streamwatch alerts test`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from streamwatch.assembly.receivers import build_receivers
from streamwatch.core.alerting.notification import IncidentAlarm, Notification, ToldHint, identify
from streamwatch.core.alerting.receiver import Delivered, Receiver
from streamwatch.core.events import Alarm
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.edge.receivers.http_result import meaning
from streamwatch.settings import Settings, SettingsError

_TEST_MODEL: Final = "streamwatch-test"


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a test notification at one receiver."""

    receiver: str
    host: str
    milliseconds: int
    problem: str | None
    """Why it was not delivered; None if it was."""


async def try_receivers(
    settings: Settings, only: str | None = None, *, hint: bool = False
) -> AsyncIterator[Trial]:
    """Send a test notification to each receiver, and that it is over, so that nothing stays open.

    It is of an alarm, or of an early `hint`.

    One that is reminded of open alarms hears nothing more, and ends it by itself some minutes later: ended at
    once, it would reach nobody behind an Alertmanager, which waits to see what belongs together.

    Raises
    ------
    SettingsError
        As `build_receivers`, or `only` is none of them.
    """
    receivers: Sequence[Receiver] = build_receivers(settings)
    names = [receiver.name for receiver in receivers]
    if only is not None and only not in names:
        raise SettingsError(
            f"--receiver: expected one of {', '.join(names) or '(none configured)'}, got {only!r}"
        )
    for receiver in receivers:
        if only in {None, receiver.name}:
            now_ms = time.time_ns() // 1_000_000
            yield await _try(receiver, test_hint(now_ms) if hint else test_notification(now_ms), now_ms)


def _over(firing: Notification, now_ms: int) -> Notification:
    """The notification that a test is over."""
    hint = firing.hint
    if hint is not None:
        hint = msgspec.structs.replace(hint, ended_at_ms=now_ms, reason="stands_no_longer")
    return msgspec.structs.replace(
        firing,
        id=identify("resolved", firing.id),
        kind="resolved",
        parts=tuple(
            msgspec.structs.replace(part, ended_at_ms=now_ms, reason="back_to_level") for part in firing.parts
        ),
        hint=hint,
    )


async def _try(receiver: Receiver, firing: Notification, now_ms: int) -> Trial:
    began = time.monotonic()
    await receiver.open()
    try:
        answer = await receiver.deliver(firing, now_ms)
        milliseconds = round(1000 * (time.monotonic() - began))
        if isinstance(answer, Delivered) and receiver.repeat_interval_seconds is None:
            answer = await receiver.deliver(_over(firing, now_ms), now_ms)
    finally:
        await receiver.close()
    problem = None if isinstance(answer, Delivered) else meaning(answer.reason)
    return Trial(receiver.name, receiver.host, milliseconds, problem)


def test_notification(now_ms: int) -> Notification:
    """An alarm nobody need act on, of a model that does not exist."""
    alarm = Alarm(_TEST_MODEL, "test", 1, 1_000, now_ms, 50.5, 50.0, 0.1, 0.3, 1_000.0)
    name = identify("firing", "test", now_ms)
    return Notification(
        id=name,
        kind="firing",
        severity="info",
        issued_ms=now_ms,
        incident=name,
        parts=(IncidentAlarm(alarm, "info", now_ms, alarm.before, now_ms),),
        news=(alarm.detector,),
        test=True,
    )


def test_hint(now_ms: int) -> Notification:
    """An early hint nobody need look at, of a model that does not exist."""
    active = ActiveHint(1, now_ms, "test", more=True, before=0.1, now=0.3)
    name = identify("firing", "test hint", now_ms)
    return Notification(
        id=name,
        kind="firing",
        severity="info",
        issued_ms=now_ms,
        incident=name,
        test=True,
        hint=ToldHint(_TEST_MODEL, active),
    )
