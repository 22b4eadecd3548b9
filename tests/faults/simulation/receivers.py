"""Receivers of notifications that take, fail, hang, refuse and leave, as their tempers say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from zlib import crc32

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed, Gone, Refused
from tests.faults.simulation.alerts import REFUSES_ONE_IN, Temper
from tests.faults.simulation.ledger import Ledger, severities_of

TIMEOUT_SECONDS = 3.0


class SimReceiver:
    """Implements `Receiver`; a process has its own, the ledger outlives it.

    Parameters
    ----------
    temper
        How it behaves.
    ledger
        Told of every step.
    chance
        How each attempt goes.
    well
        Whether faults are over.
    took
        Called when the other side has taken something.
    """

    host = "elsewhere"

    def __init__(
        self,
        temper: Temper,
        ledger: Ledger,
        chance: Random,
        well: Callable[[], bool],
        took: Callable[[], None],
    ) -> None:
        self.name, self.repeat_interval_seconds = temper.name, temper.repeat_interval_seconds
        self._temper = temper
        self._ledger = ledger
        self._chance = chance
        self._well = well
        self._took = took

    def wants(self, notification: Notification) -> bool:
        return not self._temper.severities.isdisjoint(severities_of(notification))

    async def open(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        self._ledger.tried(self.name, notification, now_ms)
        never = self._temper.refuses and crc32(notification.id.encode()) % REFUSES_ONE_IN == 0

        def take() -> None:
            self._ledger.took(self.name, notification)
            self._took()

        answer = await self._answer(take, never=never)
        self._ledger.answered(self.name, notification, answer)
        return answer

    async def remind(self, open_incidents: Sequence[Notification], now_ms: int) -> DeliveryResult:
        del now_ms
        self._ledger.reminded(self.name, open_incidents)
        answer = await self._answer(lambda: None, never=False)
        if isinstance(answer, Gone):
            self._ledger.gone.add(self.name)
        return answer

    async def _answer(self, take: Callable[[], None], *, never: bool) -> DeliveryResult:
        chance, temper = self._chance, self._temper
        await asyncio.sleep(chance.choice((0.0, 0.5)) * chance.random() * temper.slowest_seconds)
        if not self._well():
            if asyncio.get_running_loop().time() >= temper.gone_from:
                return Gone("http_410")
            if never:
                return Refused("http_400")
            if chance.random() < temper.fails:
                return await self._fail(take)
        take()
        await asyncio.sleep(chance.choice((0.0, 0.5)) * chance.random() * temper.slowest_seconds)
        return Delivered()

    async def _fail(self, take: Callable[[], None]) -> DeliveryResult:
        """Without an answer nobody knows whether it was taken."""
        how = self._chance.random()
        if how < 0.3:
            return Failed("http_500")
        if how < 0.5:
            return Failed("http_429", self._chance.choice((0.0, 2.0, 3_600.0)))
        if how < 0.8:
            take()
        await asyncio.sleep(TIMEOUT_SECONDS * self._chance.random())
        return Failed("timeout")
