"""A model that is worse by the fleet's rule: whoever waits for the digest is sent it once, over a kill."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import aiohttp

from tests.integration.conftest import Broker
from tests.integration.watched import Models, Watch, read, until
from tests.integration.webhook_receiver import receiving, webhook

OUTCOMES, APART_MS = 8_000, 40
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def long_interval() -> str:
    """An interval of whose grid no time is within this hour, so that an hourly grid has a later one."""
    now_ms = time.time_ns() // 1_000_000
    return next(f"{days}d" for days in (31, 30, 29) if now_ms % (days * DAY_MS) > 2 * HOUR_MS)


async def test_a_worse_model_is_in_a_digest_that_a_kill_neither_loses_nor_repeats(
    kafka: Broker, tmp_path: Path
) -> None:
    models = await Models.on(kafka)
    async with receiving() as team, receiving() as oncall:
        team.answer = lambda _: None

        def watch(every: str) -> Watch:
            receivers = [webhook(team, name="team", events=["digest"]), webhook(oncall, name="oncall")]
            return Watch(tmp_path, models, {"receivers": receivers, "digest": {"every": every}})

        with watch(long_interval()).life() as running:
            started_ms = time.time_ns() // 1_000_000 - OUTCOMES * APART_MS
            for n in range(OUTCOMES):
                for model, right in (("bad", False), ("good", True)):
                    models.answer(model, 1, right=right, record_ms=started_ms + n * APART_MS)
            await models.flush()
            await until(running.url(), read(models.total()))
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{running.url()}/api/v1/worse") as got,
            ):
                said = await got.json()
            running.end(signal.SIGKILL)
        assert team.told == [], "its time is far away"
        assert {pair["model"] for pair in said["worse"]} == {"bad"}
        with watch("1h").life() as running:
            await team.until(lambda: bool(team.told))
            running.end(signal.SIGKILL)
        team.answer = lambda _: 200
        with watch("1h").life() as running:
            await team.until(lambda: len(team.told) > 1)
            assert running.end(signal.SIGTERM)[0] == 0
    first, second = team.told[:2]
    assert (first.type, first.id, first.data) == (second.type, second.id, second.data)
    assert first.type == "fleet.digest"
    digest = first.data["digest"]
    assert (digest["pairs"], digest["before"], digest["left"]) == (said["pairs"], None, [])
    assert [(each["model"], each["opponent"]) for each in digest["listed"]] == [
        (each["model"], each["opponent"]) for each in said["worse"]
    ]
    assert digest["rule"] == said["rule"]
    assert not [told for told in oncall.told if told.type == "fleet.digest"]
