"""The daemon's life with a source made of lists: readiness, publishing, stopping, crashing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time

import pytest

from streamwatch.core.ports import Poll
from streamwatch.daemon import daemon as module
from tests.cpu_budget import DEADLINE_SECONDS, until
from tests.daemon.fake_daemon import (
    fake_daemon,
    label,
    poll,
    prediction,
    run_through,
)


async def test_what_was_read_is_evaluated_and_reported() -> None:
    h = fake_daemon(
        poll(*(prediction(i) for i in range(10))), poll(*(label(i, "a" if i < 8 else "b") for i in range(9)))
    )
    await run_through(h)
    assert h.reported("outcomes_total") == 9
    assert h.reported("errors_total") == 1
    assert h.reported("pending_predictions") == 1
    assert h.reported("join_identities_violated") == 0


async def test_the_server_answers_before_the_estimators_are_compiled_and_readiness_waits_for_partitions() -> (
    None
):
    compiled = asyncio.Event()
    loop = asyncio.get_running_loop()
    seen: list[list[str]] = []

    def warm_up() -> None:
        seen.append([str(h.server.running), *h.status.unready()])
        loop.call_soon_threadsafe(compiled.set)

    h = fake_daemon(poll(prediction(0)), warm_up=warm_up)
    h.source.hang = asyncio.Event()
    running = asyncio.create_task(h.daemon.run())
    await compiled.wait()
    assert seen == [["True", "the estimators are being compiled"]]
    await until(lambda: h.source.started_with is not None)
    assert h.status.unready() == ["Kafka has not answered yet"]
    assert h.live("ready") == 0.0
    h.source.hang.set()
    await until(lambda: not h.status.unready())
    assert h.live("ready") == 1.0
    h.source.up = False
    assert h.status.unready() == ["Kafka cannot be reached"]
    assert h.live("kafka_up") == 0.0
    assert h.live("caught_up") == 0.0
    h.daemon.stop()
    await running
    assert h.status.unready() == ["stopping"]


async def test_stopping_reports_all_that_was_evaluated_before_the_server_goes() -> None:
    h = fake_daemon(*(poll(*(prediction(100 * k + i) for i in range(100))) for k in range(50)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(h.source.polls) < 40)
    h.daemon.stop("test")
    await running
    read = 100 * (50 - len(h.source.polls))
    assert h.source.polls, "it was stopped in the middle"
    evaluated = sum(h.source.durable_positions.values())
    assert evaluated in (read, read - 100), "a poll of which nothing was evaluated yet is read again"
    assert h.reported("predictions_accepted_total") == evaluated
    assert h.source.stopped
    assert not h.server.running
    assert h.events()[-2:] == ["stopping", "stopped"]


async def test_a_poll_of_which_nothing_was_evaluated_when_stopped_is_left_to_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    h = fake_daemon(*(poll(*(prediction(100 * k + i) for i in range(100))) for k in range(5)))
    deliver = h.source.poll

    async def stop_at_the_third() -> Poll:
        delivered = await deliver()
        if len(h.source.polls) == 2:
            h.daemon.stop("test")
        return delivered

    monkeypatch.setattr(h.source, "poll", stop_at_the_third)
    await h.daemon.run()
    assert h.reported("predictions_accepted_total") == 200
    assert sum(h.source.durable_positions.values()) == 200


async def test_a_poll_that_hangs_does_not_keep_it_from_stopping() -> None:
    h = fake_daemon()
    h.source.hang = asyncio.Event()
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.started_with is not None)
    h.daemon.stop()
    async with asyncio.timeout(module.FINISH_SECONDS + 60.0):
        await running
    assert h.source.stopped


def test_while_the_estimators_are_compiled_the_log_and_readiness_say_for_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.01)
    compiled = threading.Event()

    async def reported_again() -> None:
        h = fake_daemon(warm_up=lambda: compiled.wait(60.0) and None)
        running = asyncio.create_task(h.daemon.run())
        await until(lambda: h.events().count("kernel_compiling") > 3)
        compiled.set()
        await until(lambda: "kernel_ready" in h.events())
        h.daemon.stop()
        await running

    asyncio.run(reported_again())


def test_a_stop_does_not_wait_for_the_compiler() -> None:
    compiled = threading.Event()

    async def stopped_while_compiling() -> None:
        h = fake_daemon(warm_up=lambda: compiled.wait(60.0) and None)
        running = asyncio.create_task(h.daemon.run())
        await until(lambda: "kernel_compiling" in h.events())
        h.daemon.stop()
        await running

    began = time.monotonic()
    asyncio.run(stopped_while_compiling())
    assert time.monotonic() - began < DEADLINE_SECONDS
    compiled.set()


async def test_an_error_of_the_compiler_ends_the_run() -> None:
    def fail() -> None:
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        await fake_daemon(warm_up=fail).daemon.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it(number: signal.Signals) -> None:
    h = fake_daemon(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await h.source.drained.wait()
    os.kill(os.getpid(), number)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await running
    assert json.loads(h.log.getvalue().splitlines()[-2])["signal"] == number.name


async def test_a_bug_ends_the_run_with_its_own_exception_and_everything_closed() -> None:
    h = fake_daemon(poll(prediction(0)), KeyError("a bug"))
    with pytest.raises(KeyError, match="a bug"):
        await h.daemon.run()
    assert h.source.stopped
    assert not h.server.running


async def test_a_server_that_cannot_listen_ends_the_run_before_anything_is_read() -> None:
    h = fake_daemon(poll(prediction(0)))

    async def refuse() -> None:
        raise OSError("taken")

    h.server.start = refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="taken"):
        await h.daemon.run()
    assert h.source.started_with is None


async def test_reports_are_at_most_one_a_second_under_load_and_at_once_when_idle() -> None:
    h = fake_daemon(*(poll(*(prediction(10 * k + i) for i in range(10))) for k in range(200)))
    began = time.monotonic()
    await run_through(h)
    seconds = time.monotonic() - began
    assert len(h.server.reports) <= 5 + seconds, "one a second, and those of the start, the end and the stop"
    assert h.reported("predictions_accepted_total") == 2_000
    await_idle = fake_daemon(poll(prediction(0)))
    running = asyncio.create_task(await_idle.daemon.run())
    await until(lambda: bool(await_idle.server.reports))
    await until(lambda: await_idle.reported("predictions_accepted_total") == 1)
    await_idle.source.polls.append(poll(prediction(1)))
    await until(lambda: await_idle.reported("predictions_accepted_total") == 2)
    await_idle.daemon.stop()
    await running


async def test_nothing_new_is_not_reported_again() -> None:
    h = fake_daemon(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(h.server.reports) == 1)
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert len(h.server.reports) == 1
    h.daemon.stop()
    await running


async def test_an_alarm_is_reported_and_reported() -> None:
    wrong = range(40, 120)
    predictions = poll(*(prediction(i) for i in range(120)))
    h = fake_daemon(predictions, poll(*(label(i, "b" if i in wrong else "a") for i in range(120))))
    await run_through(h)
    assert h.events().count("alarm_raised") >= 1
    (family,) = [f for f in h.server.reports[-1].families if f.name == "alarms_total"]
    assert sum(value for _, value in family.samples) == h.events().count("alarm_raised")
