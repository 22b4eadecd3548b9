"""State of one receiver's queue: when the next attempt may be made, and how many failed in a row."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from streamwatch.core.alerting.receiver import DeliveryResult, Failed, Receiver


@dataclass(frozen=True, slots=True)
class DeliverySpec:
    """Limits of delivery: how long to try, and how often."""

    give_up_after_ms: int = 86_400_000
    """Host time since the notification was decided."""
    max_pending: int = 1_000
    """Notifications that wait for one receiver; beyond it the oldest is dropped."""
    initial_seconds: float = 1.0
    maximum_seconds: float = 60.0
    """Waits double from `initial_seconds` to this; each is drawn between 0 and that (full jitter)."""
    max_asked_seconds: float = 3_600.0
    """Longest wait an answer may ask for."""


@dataclass(slots=True)
class ReceiverQueue:
    """Queue of one receiver: the receiver, and when the next attempt is due."""

    receiver: Receiver
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0
    """In a row."""
    resume: float = 0.0
    """Loop time before which it is left alone."""
    remind: float = 0.0
    """Loop time of the next reminder of open alarms."""
    reminded: bool = False
    """Whether it was reminded last: then what is new has its turn, though reminders may fail for ever."""
    gone: bool = False

    def pause(self, answer: DeliveryResult, spec: DeliverySpec, draw: float) -> None:
        """Leave it alone after a failure: exponential back-off with full jitter, longer if it asks for it."""
        ceiling = min(spec.maximum_seconds, spec.initial_seconds * 2.0 ** min(self.failures, 32))
        asked = (answer.after_seconds or 0.0) if isinstance(answer, Failed) else 0.0
        self.failures += 1
        wait = max(draw * ceiling, min(asked, spec.max_asked_seconds))
        self.resume = asyncio.get_running_loop().time() + wait

    async def wait(self, seconds: float | None) -> None:
        """Until something new is to be told, or so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        self.woken.clear()
