"""Killed while people are being told: the same ids again, and none is missing."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from pathlib import Path
from random import Random

from streamwatch.assembly.alerts import build_alarm_book
from streamwatch.assembly.state import open_store
from streamwatch.daemon.alerting import ALARMS
from streamwatch.settings import Settings
from tests.faults.process_runs import runs_of
from tests.integration.conftest import Broker
from tests.integration.running import value
from tests.integration.watched import (
    RECOVERED,
    Models,
    Watch,
    all_told,
    nothing_secret_in,
    page,
    read,
    summed,
    until,
)
from tests.integration.webhook_receiver import Receiver, receiving, webhook

KILLS = 10

log = logging.getLogger(__name__)


async def test_killed_while_people_are_being_told_they_are_told_again_under_the_same_id(
    kafka: Broker, tmp_path: Path
) -> None:
    models = await Models.on(kafka)
    async with receiving() as people:
        people.answer = lambda _: None
        watch = Watch(tmp_path, models, {"receivers": [webhook(people)]})
        with watch.life() as running:
            await models.learn("loan")
            await until(running.url(), read(models.total()))
            models.answer("loan", 60, right=False)
            await models.flush()
            await people.until(lambda: bool(people.told))
            running.end(signal.SIGKILL)
        (first,) = people.told
        people.answer = lambda _: 200
        with watch.life() as running:
            await people.until(lambda: len(people.told) > 1)
            await until(running.url(), all_told)
            running.end(signal.SIGKILL)
        again = [told for told in people.told[1:] if told.id == first.id]
        assert len(again) == 1
        assert again[0].data == first.data
        assert_told_apart(people)
    nothing_secret_in(watch)


async def test_killed_again_and_again_nobody_misses_an_alarm(kafka: Broker, tmp_path: Path) -> None:
    chance = Random(7)
    models = await Models.on(kafka)
    names = [f"model-{number}" for number in range(6)]
    async with receiving() as people:
        receiver = webhook(people, timeout="2s")
        watch = Watch(tmp_path, models, {"receivers": [receiver], "cooldown": "0s"})
        people.answer = lambda _: chance.choice((200, 200, 200, 500, None))
        await models.learn(*names)
        async with runs_of(watch.document, tmp_path) as runs:
            began = time.monotonic()
            for _ in range(KILLS):
                told = len(people.told)
                await runs.begin()
                for name in chance.sample(names, 3):
                    models.answer(name, 60, right=False)
                    models.answer(name, chance.choice((100, RECOVERED)), right=True)
                await models.flush()
                await people.until(lambda seen=told: len(people.told) > seen)
                await asyncio.sleep(chance.choice((0.0, 0.02, 0.1, 0.5)))
                await runs.end(signal.SIGKILL)
            log.info("%d kills in %.1f s", KILLS, time.monotonic() - began)
            people.answer = lambda _: 200
            await runs.begin()
            url = f"http://{watch.document['http']['listen']}"
            at_rest = await until(url, lambda s: all_told(s) and read(models.total())(s))
            text = await page(url)
            await runs.end(signal.SIGTERM)

            assert_told_apart(people)
            announced = summed(at_rest, "alarms_total") - summed(at_rest, "alarms_suppressed_total")
            by_id = {told.id: told for told in people.told}
            assert sum(told.begun for told in by_id.values()) == announced > KILLS
            incidents_open = len(people.ids("firing")) - len(people.ids("resolved"))
            assert incidents_open == len(open_incidents_on_disk(watch))
            assert summed(at_rest, "alarms_digested_total") == 0
            assert open_incidents_on_disk(watch) <= people.ids("firing") | people.ids("updated")

            told = len(people.told)
            await runs.begin()
            await until(url, lambda s: value(s, "caught_up") == 1 and value(s, "last_commit_seconds") >= 0)
            await runs.end(signal.SIGTERM)
            assert len(people.told) == told, "a restart repeats nothing"
            watch.logs += [runs.log(life) for life in range(runs.number + 1)]
    repeated = len(people.told) - len({told.id for told in people.told})
    log.info("%d notifications, %d told again", len(people.told) - repeated, repeated)
    nothing_secret_in(watch, text)


def open_incidents_on_disk(watch: Watch) -> set[str]:
    """Ids of the last notifications of open incidents that the state holds; it owes nobody anything."""
    settings = Settings(**watch.document)
    kept = open_store(settings)
    try:
        saved, book = kept.load(), build_alarm_book(settings, kept.identity)
        book.restore(saved.sections[ALARMS])
    finally:
        kept.close()
    assert saved.outbox == {}
    return {notification.id for notification in book.open_incidents()}


def assert_told_apart(people: Receiver) -> None:
    """An id is one incident, an incident has one first id, and no end comes before its beginning."""
    firing = {(told.mark, told.id) for told in people.of("firing")}
    assert len({mark for mark, _ in firing}) == len({name for _, name in firing}) == len(firing)
    begun = set[str]()
    for told in people.told:
        if told.type == "drift.resolved":
            assert told.data["incident"] in begun
        begun.add(told.data["incident"])
