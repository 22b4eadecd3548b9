"""The event loop turns once it was held for a while, a few times, and not with every batch."""

from __future__ import annotations

import asyncio

import pytest

from streamwatch.daemon.merged_records import HELD_SECONDS, REQUEST_STEPS, yield_to_loop


class SteppedLoop(asyncio.SelectorEventLoop):
    """Its clock stands still until it is put forward."""

    now = 1_000.0

    def time(self) -> float:
        """What was set."""
        return self.now


def test_others_have_turns_only_after_the_loop_was_held_for_long_enough() -> None:
    loop = SteppedLoop()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def held() -> list[int]:
        running = asyncio.create_task(other())
        seen: list[int] = []
        for passed in (0.0, 0.0, HELD_SECONDS / 2, HELD_SECONDS * 0.6, 0.0):
            loop.now += passed
            before = turns
            await yield_to_loop()
            seen.append(turns - before)
        running.cancel()
        return seen

    try:
        assert loop.run_until_complete(held()) == [REQUEST_STEPS, 0, 0, REQUEST_STEPS, 0]
    finally:
        loop.close()


@pytest.mark.parametrize("batches", [1, 10_000])
def test_a_loop_that_is_held_by_many_batches_turns_in_between(batches: int) -> None:
    async def work() -> bool:
        turned = asyncio.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        for _ in range(batches):
            await yield_to_loop()
        return turned.is_set()

    assert asyncio.run(work())
