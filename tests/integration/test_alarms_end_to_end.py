"""From a model that errs to the people who are told, with every part real; killed in between, too."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cpu_budget import soon
from tests.deploy.prometheus_with_rules import prometheus_with_rules
from tests.deploy.rules import DEPLOY
from tests.edge.receivers.endpoint import Endpoint, endpoint
from tests.integration.alertmanager_server import alertmanager
from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, value
from tests.integration.topics import create_topic, fresh
from tests.integration.watched import (
    LEARNED,
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
from tests.integration.webhook_receiver import receiving, webhook

PROMPT_SECONDS = 5.0
"""From the outcome to the webhook."""
HOUR_MS = 3_600_000

log = logging.getLogger(__name__)


async def test_old_alarms_of_a_backlog_come_as_one_digest_and_new_ones_by_themselves(
    kafka: Broker, tmp_path: Path
) -> None:
    models = await Models.on(kafka)
    then_ms = time.time_ns() // 1_000_000 - 3 * HOUR_MS
    old = [f"old-{number}" for number in range(20)]
    for name in old:
        models.answer(name, LEARNED, right=True, record_ms=then_ms)
        models.answer(name, 60, right=False, record_ms=then_ms)
    await models.flush()
    async with receiving() as people:
        rules = [{"model": "young", "min_outcomes": LEARNED + 100}, {"model": "often", "cooldown": "1h"}]
        watch = Watch(tmp_path, models, {"receivers": [webhook(people)], "rules": rules, "cooldown": "0s"})
        with watch.life() as running:
            shown = await until(running.url(), read(models.total()))
            await people.until(lambda: bool(people.of("digest")))
            for name in ("young", "often", "live"):
                models.answer(name, LEARNED, right=True)
                models.answer(name, 60, right=False)
                models.answer(name, RECOVERED, right=True)
            await models.flush()
            await people.until(lambda: {told.model for told in people.of("resolved")} >= {"often", "live"})
            for name in ("often", "live"):
                models.answer(name, 60, right=False)
            await models.flush()
            after = await until(running.url(), lambda s: all_told(s) and read(models.total())(s))
            assert running.end(signal.SIGTERM)[0] == 0
    (digest,) = people.of("digest")
    found = digest.data["digest"]
    assert found["alarms"] == summed(shown, "alarms_digested_total") == summed(shown, "alarms_total")
    assert {tally["model"] for tally in found["tallies"]} <= set(old)
    firing = [told.model for told in people.of("firing")]
    assert set(firing) == {"often", "live"}, "neither old nor young"
    assert firing.count("live") > firing.count("often")
    assert summed(after, "alarms_suppressed_total", reason="min_outcomes") > 0
    assert summed(after, "alarms_suppressed_total", reason="cooldown") > 0


@pytest.mark.real("prometheus", "prometheus-alertmanager")
async def test_a_drift_reaches_people_by_every_way_and_so_does_its_end(
    kafka: Broker, tmp_path: Path, real_component: Callable[[str], str]
) -> None:
    """Two models drift. Alertmanager hears of `loan` from the daemon, of `churn` from Prometheus only."""
    manager = real_component("prometheus-alertmanager")
    policy = DEPLOY / "alertmanager" / "alertmanager.yml"
    models, elsewhere = await Models.on(kafka), await create_topic(kafka, fresh("elsewhere"))
    async with (
        receiving() as people,
        endpoint() as paged,
        alertmanager(manager, paged.url, tmp_path, policy) as server,
    ):
        receivers = [
            webhook(people),
            {
                "name": "am",
                "type": "alertmanager",
                "url": server.url,
                "repeat_interval": "15s",
                "timeout": "120s",
                "severities": "critical",
            },
        ]
        rules = [{"model": "loan", "severity": "critical"}]
        watch = Watch(tmp_path / "watch", models, {"receivers": receivers, "rules": rules})
        with watch.life() as running:
            address = running.url().removeprefix("http://")
            async with prometheus_with_rules(
                real_component("prometheus"), address, tmp_path, server.url.removeprefix("http://")
            ) as prometheus:
                await models.learn("loan", "churn")
                await until(running.url(), read(models.total()))
                await prometheus.answer("count(streamwatch_alarms_total == 0) >= 4")

                for name in ("loan", "churn"):
                    models.answer(name, 60, right=False)
                await models.flush()

                async def all_heard() -> bool:
                    return {told.model for told in people.of("firing")} == {"loan", "churn"}

                async def same_way() -> None:
                    await models.reach(elsewhere)
                    await page(running.url())

                await soon(PROMPT_SECONDS, all_heard, same_way)
                for told in people.of("firing"):
                    outcomes = [alarm["outcome"] for alarm in told.alarms]
                    took = told.at - models.labelled_at[told.model][max(outcomes) - 1]
                    log.info("from the outcome to the webhook: %.3f s (%s)", took, told.mark)
                    assert LEARNED < min(outcomes) <= max(outcomes) <= LEARNED + 60
                await prometheus.answer('ALERTS{alertname="DriftAlarm", model="churn", alertstate="firing"}')
                assert (await paged_of(paged, "StreamwatchDrift", "firing"))["labels"]["model"] == "loan"
                await paged_of(paged, "DriftAlarm", "firing", "churn")
                await server.once(lambda found: inhibited(found, "DriftAlarm", "loan"))  # it was told already
                pages = [alert for post in paged.posts for alert in post.json["alerts"]]
                known = next(n for n, alert in enumerate(pages) if named(alert, "StreamwatchDrift", "loan"))
                assert not [alert for alert in pages[known:] if named(alert, "DriftAlarm", "loan")]

                for name in ("loan", "churn"):
                    models.answer(name, RECOVERED, right=True)
                await models.flush()
                fired = {told.data["incident"] for told in people.of("firing")}
                await people.until(lambda: {told.data["incident"] for told in people.of("resolved")} == fired)
                assert {a["reason"] for told in people.of("resolved") for a in told.data["alarms"]} == {
                    "back_to_level"
                }
                over = await paged_of(paged, "StreamwatchDrift", "resolved")
                assert over["annotations"]["incident"] in fired
                await server.once(lambda found: not any(named(a, "StreamwatchDrift", "loan") for a in found))
            shown = await until(running.url(), all_told)
            text = await page(running.url())
            code, _ = running.end(signal.SIGTERM)
        assert code == 0, watch.logs
    assert len(people.told) == len({told.id for told in people.told}), "once each"
    assert len(people.of("firing")) == len(people.of("resolved")) == len(fired)
    assert {told.data["incident"] for told in people.told} == fired
    assert value(shown, "notifications_sent_total", receiver="people") == len(people.told)
    assert summed(shown, "notifications_failed_total") == summed(shown, "notifications_dropped_total") == 0
    nothing_secret_in(watch, text)


def inhibited(found: list[Any], name: str, model: str) -> bool:
    alerts = [alert for alert in found if named(alert, name, model)]
    return bool(alerts) and all(alert["status"]["inhibitedBy"] for alert in alerts)


def named(alert: Any, name: str, model: str | None) -> bool:
    return alert["labels"]["alertname"] == name and alert["labels"].get("model") == model


async def paged_of(paged: Endpoint, name: str, status: str, model: str = "") -> Any:
    """The first alert of this name, and model, that Alertmanager told people of, once it did."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        seen = 0
        while True:
            posts = await paged.received(seen + 1)
            for post in posts[seen:]:
                for alert in post.json["alerts"]:
                    whose = model or alert["labels"].get("model")
                    if named(alert, name, whose) and alert["status"] == status:
                        return alert
            seen = len(posts)
