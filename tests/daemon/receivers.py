"""Receivers that answer by a script, an outbox on a disk, and deliveries between them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.webhook import Webhook
from streamwatch.telemetry import (
    InternalEvent,
)
from tests.edge.receivers.notifications import NOW_MS

QUICK = DeliverySpec(initial_seconds=0.001, maximum_seconds=0.01)
HOUR_MS = 3_600_000
KEY = b"sixteen bytes or more"


@dataclass
class Fake:
    """A receiver that answers by a script; the last answer stays. An Event in it is waited for."""

    name: str = "fake"
    script: list[Any] = field(default_factory=lambda: [Delivered()])
    repeat_interval_seconds: float | None = None
    severities: frozenset[str] = frozenset({"info", "warning", "error", "critical"})
    delivered: list[str] = field(default_factory=list)
    reminded: list[list[str]] = field(default_factory=list)
    host: str = "fake.example"
    opened: int = 0

    def wants(self, notification: Notification) -> bool:
        return notification.severity in self.severities

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.opened -= 1

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        del now_ms
        self.delivered.append(notification.id)
        return await self._answer(notification)

    async def remind(self, open_alarms: Sequence[Notification], now_ms: int) -> DeliveryResult:
        del now_ms
        self.reminded.append([notification.id for notification in open_alarms])
        return await self._answer(open_alarms[0])

    async def _answer(self, notification: Notification) -> DeliveryResult:
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return Delivered()
        return answer(notification) if callable(answer) else answer


@dataclass
class Disk:
    """The outbox as a store keeps it: what was committed."""

    outbox: dict[str, bytes] = field(default_factory=dict)

    def commit(
        self, deliveries: Deliveries, *notifications: Notification, open_alarms: Sequence[Notification] = ()
    ) -> None:
        """One commit of the daemon: notifications and changes become durable, then delivery begins."""
        changes: dict[str, bytes | None] = dict(deliveries.outbox.changes())
        changes |= {notification.id: deliveries.record(notification) for notification in notifications}
        for name, entry in changes.items():
            if entry is None:
                self.outbox.pop(name, None)
            else:
                self.outbox[name] = entry
        deliveries.add(notifications, open_alarms)


@dataclass
class Clock:
    ms: int = NOW_MS

    def __call__(self) -> int:
        return self.ms


@contextlib.asynccontextmanager
async def delivering(
    *receivers: Any,
    spec: DeliverySpec = QUICK,
    events: list[InternalEvent] | None = None,
    clock: Callable[[], int] | None = None,
    outbox: Mapping[str, bytes] | None = None,
    open_alarms: Sequence[Notification] = (),
    speaks: Callable[[], bool] | None = None,
) -> AsyncIterator[Deliveries]:
    """Deliveries that run, and are killed at the end."""
    emit = (lambda _: None) if events is None else events.append
    deliveries = Deliveries(receivers, spec, emit, clock or Clock(), lambda: 0.5, speaks)
    deliveries.restore(outbox or {}, open_alarms)
    running = asyncio.create_task(deliveries.run())
    try:
        yield deliveries
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def counted(deliveries: Deliveries, name: str) -> dict[tuple[str, ...], float]:
    family = next(f for f in deliveries.families() if f.name == name)
    return {key: float(value) for key, value in family.samples if value}  # type: ignore[arg-type]


def web(url: str, name: str = "web", seconds: float = 5.0) -> HttpReceiver:
    return HttpReceiver(EndpointSpec(name, url, timeout_seconds=seconds), Webhook([KEY]))
