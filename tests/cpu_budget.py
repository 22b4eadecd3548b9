"""Time on a machine that is busy with other things: what a process has of it, and what a promise allows.

A promise about time is kept or broken by our code, never by whoever else uses the processors. So a measured
time leaves out what threads spent ready to run and without a processor, and a deadline is a number of turns
of something that is as slow as the machine makes it. On an idle machine both are the clock's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

TURN_SECONDS = 0.1
DEADLINE_SECONDS = 60.0
"""What comes at all comes within hundredths of them, in the process that waits for it."""
GLANCE_SECONDS = 0.005
AT_EVERY_TURN = 100
"""So many turns of a loop bring what waits for nobody; what comes later is looked for now and then."""
PROC = Path("/proc")


class OwnTime:
    """Seconds from the making of it to the last look, as these processes and their children had them.

    Where the kernel does not say who waited for a processor (`schedstat`), they are the clock's.
    """

    def __init__(self, *processes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processes = processes
        self._clock = clock
        self._before = self._latest = waits(*processes)
        self._began = self._seen = clock()

    def look(self) -> OwnTime:
        """Threads are seen until they end: look often enough."""
        self._seen = self._clock()
        self._latest = self._latest | waits(*self._processes)
        return self

    @property
    def waited(self) -> float:
        """Seconds without a processor, all threads together."""
        return sum(seconds - self._before.get(thread, 0.0) for thread, seconds in self._latest.items())

    @property
    def seconds(self) -> float:
        return max(0.0, self._seen - self._began - self.waited)


def waits(*processes: int) -> dict[int, float]:
    """Thread → seconds it has been ready to run without a processor, of processes and their children."""
    found: dict[int, float] = {}
    for process in processes:
        for task in _tasks(process):
            with suppress(OSError):
                _, nanoseconds, _ = (task / "schedstat").read_text().split()
                found[int(task.name)] = int(nanoseconds) / 1e9
    return found


def _tasks(process: int) -> Iterator[Path]:
    with suppress(OSError):
        for task in (PROC / f"{process}" / "task").iterdir():
            yield task
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    yield from _tasks(int(child))


async def soon(
    seconds: float, condition: Callable[[], Awaitable[bool]], turn: Callable[[], Awaitable[object]]
) -> int:
    """Wait until it holds: so long, or as many turns as would fit in if they took no time; how many it took.

    A turn takes the way of what is waited for, so that both are held up by whatever else the machine does.
    """
    began, turns = time.monotonic(), 0
    while not await condition():
        late = time.monotonic() - began > seconds and turns > seconds / TURN_SECONDS
        assert not late, f"not within {seconds} s, nor within {turns} turns"
        await asyncio.gather(turn(), asyncio.sleep(TURN_SECONDS))
        turns += 1
    return turns


async def until(condition: Callable[[], object], *, seconds: float = DEADLINE_SECONDS) -> None:
    """Let the loop turn until it holds, which has no event: so long, or as many turns as would fit in.

    What is waited for goes on in the same loop, so that both are held up by whatever else the machine does.
    """
    began, turns = time.monotonic(), 0
    while not condition():
        late = time.monotonic() - began > seconds and turns > seconds / GLANCE_SECONDS
        assert not late, f"not within {seconds} s, nor within {turns} turns"
        await asyncio.sleep(0 if turns < AT_EVERY_TURN else GLANCE_SECONDS)
        turns += 1
