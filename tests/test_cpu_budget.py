"""What the measures of a busy machine leave out, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import cpu_budget
from tests.cpu_budget import OwnTime, soon, until, waits


class Threads:
    """What the kernel would say of threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def say(self, process: int, thread: int, waited_seconds: float, *children: int) -> None:
        task = self._folder / str(process) / "task" / str(thread)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"123456789 {round(waited_seconds * 1e9)} 42\n")
        (task / "children").write_text("".join(f"{child} " for child in children))

    def end(self, process: int, thread: int) -> None:
        task = self._folder / str(process) / "task" / str(thread)
        for file in task.iterdir():
            file.unlink()
        task.rmdir()


@pytest.fixture
def threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Threads:
    monkeypatch.setattr(cpu_budget, "PROC", tmp_path)
    return Threads(tmp_path)


def test_only_the_time_without_a_processor_is_left_out(threads: Threads) -> None:
    now = 100.0
    threads.say(7, 7, 5.0)
    own = OwnTime(7, clock=lambda: now)
    now += 10.0
    threads.say(7, 7, 8.0)
    assert own.look().seconds == pytest.approx(7.0)
    now += 2.0
    assert own.look().seconds == pytest.approx(9.0), "who sleeps, or works, is charged for it"


def test_threads_that_come_and_go_and_children_are_counted(threads: Threads) -> None:
    now = 0.0
    threads.say(7, 7, 1.0)
    own = OwnTime(7, clock=lambda: now)
    now += 20.0
    threads.say(7, 8, 2.0, 9)
    threads.say(9, 9, 4.0)
    assert waits(7) == {7: 1.0, 8: 2.0, 9: 4.0}
    assert own.look().seconds == pytest.approx(14.0)
    threads.end(7, 8)
    assert own.look().waited == pytest.approx(6.0)


def test_where_nobody_counts_the_clock_does(threads: Threads) -> None:
    del threads
    now = 0.0
    own = OwnTime(7, clock=lambda: now)
    now += 3.0
    assert own.look().seconds == 3.0


@pytest.mark.slow
async def test_what_is_late_by_the_clock_and_by_turns_is_late() -> None:
    looks = 0

    async def third() -> bool:
        nonlocal looks
        looks += 1
        return looks == 3

    async def never() -> bool:
        return False

    async def turn() -> None: ...

    assert await soon(0.2, third, turn) == 2
    with pytest.raises(AssertionError, match="nor within 2 turns"):
        await soon(0.1, never, turn)


async def test_what_never_holds_ends_the_wait_and_what_holds_late_is_waited_for() -> None:
    looks = 0

    def late() -> bool:
        nonlocal looks
        looks += 1
        return looks > 2 * cpu_budget.AT_EVERY_TURN

    await until(late, seconds=60.0)
    with pytest.raises(AssertionError, match=r"not within 0\.01 s"):
        await until(lambda: False, seconds=0.01)
