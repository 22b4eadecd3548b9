"""An event loop without a clock: time stands still while anything is ready, then jumps to the next timer.

One call of one task is one turn, so a crash between two turns is a crash at an await. What runs in a thread
runs whole, at the beginning or at the end of a seeded time, during which everything else goes on.
"""

from __future__ import annotations

import asyncio
from heapq import heappop
from random import Random

TURN_SECONDS = 0.0001


class CrashError(Exception):
    """The process is gone."""


class StuckError(Exception):
    """Nothing is ready, nothing will be."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs one life of a process.

    Parameters
    ----------
    chance
        How long threads take.
    began
        Seconds at the beginning.
    crash_at
        Turn before which the process dies; None: it does not.
    slowest
        Seconds that a thread takes at most.
    """

    def __init__(self, chance: Random, began: float, crash_at: int | None, slowest: float) -> None:
        super().__init__()
        self._chance = chance
        self._now = began
        self._crash_at = crash_at
        self._slowest = slowest
        self.dead = False
        self.turns = 0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns == self._crash_at:
            raise CrashError
        ready, timers = self._ready, self._scheduled
        while timers and timers[0].cancelled():
            heappop(timers)._scheduled = False
        if not ready:
            if not timers:
                raise StuckError
            self._now = max(self._now, timers[0].when())
        while timers and timers[0].when() <= self._now:
            timer = heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        handle = ready.popleft()
        if not handle.cancelled():
            handle._run()
        self._now += TURN_SECONDS

    def crash_within(self, turns: int) -> None:
        """Die soon; a life that is to end well does."""
        if self._crash_at is not None:
            self._crash_at = min(self._crash_at, self.turns + turns)

    def run_in_executor(self, executor, func, *args):
        """Nobody who waits for a thread can stop it: a cancelled wait leaves it running."""
        del executor
        future = self.create_future()
        if self.dead:
            future.cancel()
            return future
        chance = self._chance
        seconds = chance.choice((0.0, 0.002, 0.05, 0.3, self._slowest)) * chance.random()
        at_once = chance.random() < 0.5
        ended = _ended(func, args) if at_once else None

        def finish():
            if self.dead:
                future.cancel()
                return
            result, error = ended or _ended(func, args)
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.call_later(seconds, finish)
        return future

    def drop(self) -> None:
        """Take the tasks of an ended process apart; whatever they touch must take no notification."""
        self.dead = True
        self._crash_at = None
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        asyncio._set_running_loop(self)
        try:
            ended = self.create_task(_all(tasks))
            while not ended.done():
                self._run_once()
        finally:
            asyncio._set_running_loop(None)
        self.close()


async def _all(tasks):
    await asyncio.gather(*tasks, return_exceptions=True)


def _ended(func, args):
    try:
        return func(*args), None
    except Exception as error:  # noqa: BLE001 - handed on to who waits for it
        return None, error
