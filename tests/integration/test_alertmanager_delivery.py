"""A real Alertmanager takes an alarm, keeps it while it is repeated, tells people, and lets it end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from streamwatch.core.alerting.notification import Notification
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.alertmanager import Alertmanager
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.texts import iso
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import (
    alarm,
    digest,
    firing,
    hint_over,
    hinted,
    part,
    resolved,
    updated,
)
from tests.integration.alertmanager_server import alertmanager

ODD = 'naïve "best" \\ model {}'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def recent() -> Notification:
    event_ms = now_ms() - 2_000
    return firing(parts=(part(alarm(ODD, event_ms=event_ms)),), issued_ms=event_ms)


def receiver(url: str, repeat_interval_seconds: float) -> HttpReceiver:
    form = Alertmanager(int(1_000 * repeat_interval_seconds), {"team": "risk"}, "https://watch.example.com")
    spec = EndpointSpec("am", f"{url}/api/v2/alerts", repeat_interval_seconds=repeat_interval_seconds)
    return HttpReceiver(spec, form, form.reminder)


@pytest.mark.real("prometheus-alertmanager")
async def test_an_alarm_fires_is_repeated_reaches_people_and_resolves(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    program = real_component("prometheus-alertmanager")
    async with endpoint() as people, alertmanager(program, people.url, tmp_path) as server:
        deliveries = Deliveries([receiver(server.url, 0.5)], DeliverySpec(), lambda _: None)
        running = asyncio.create_task(deliveries.run())
        notification = recent()
        deliveries.record(notification)
        deliveries.add([notification], [notification])
        (alert,) = await server.once(lambda found: len(found) == 1)
        assert alert["labels"] == {
            "alertname": "StreamwatchDrift",
            "model": ODD,
            "detector": "page_hinkley",
            "severity": "warning",
            "team": "risk",
        }
        assert alert["startsAt"] == iso(notification.started_at_ms)
        assert alert["annotations"]["ordinal"] == "2"
        assert alert["generatorURL"] == f"https://watch.example.com/#/model/{quote(ODD, safe='')}"
        first_end = alert["endsAt"]
        await server.once(lambda found: bool(found) and found[0]["endsAt"] > first_end)
        told = await people.received(1)
        assert told[0].json["status"] == "firing"
        assert told[0].json["alerts"][0]["annotations"]["summary"] == alert["annotations"]["summary"]

        more = updated(notification, part(alarm(ODD, "adwin", event_ms=now_ms())), issued_ms=now_ms())
        deliveries.record(more)
        deliveries.add([more], [more])
        found = await server.once(lambda found: len(found) == 2)
        assert len({a["annotations"]["incident"] for a in found}) == 1
        assert len({a["fingerprint"] for a in found}) == 2

        over = resolved(more, issued_ms=now_ms(), ended_at_ms=now_ms())
        deliveries.record(over)
        deliveries.add([over], [])
        await server.once(lambda found: found == [])
        ended: dict[str, str] = {}
        while ended.keys() != {"page_hinkley", "adwin"}:  # each in a group of its own, by the route at hand
            told = await people.received(len(told) + 1)
            alerts = [alert for post in told for alert in post.json["alerts"]]
            ended = {
                a["labels"]["detector"]: a["annotations"]["reason"]
                for a in alerts
                if a["status"] == "resolved"
            }
        assert set(ended.values()) == {"back_to_level"}

        again = recent()
        deliveries.add([digest(issued_ms=now_ms()), again], [again])
        names = {"StreamwatchDrift", "StreamwatchDriftDigest"}
        await server.once(lambda found: {a["labels"]["alertname"] for a in found} == names)
        await deliveries.stop(5)
        await running


@pytest.mark.real("prometheus-alertmanager")
async def test_an_early_hint_fires_is_repeated_reaches_people_and_resolves(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    program = real_component("prometheus-alertmanager")
    async with endpoint() as people, alertmanager(program, people.url, tmp_path) as server:
        deliveries = Deliveries([receiver(server.url, 0.5)], DeliverySpec(), lambda _: None)
        running = asyncio.create_task(deliveries.run())
        begun = hinted(ODD, given_ms=now_ms() - 2_000, issued_ms=now_ms())
        deliveries.record(begun)
        deliveries.add([begun], [begun])
        (alert,) = await server.once(lambda found: len(found) == 1)
        assert alert["labels"] == {
            "alertname": "StreamwatchEarlyHint",
            "model": ODD,
            "detector": "early_hint",
            "severity": "info",
            "team": "risk",
        }
        assert alert["startsAt"] == iso(begun.started_at_ms)
        first_end = alert["endsAt"]
        await server.once(lambda found: bool(found) and found[0]["endsAt"] > first_end)
        told = await people.received(1)
        assert told[0].json["alerts"][0]["annotations"]["summary"] == alert["annotations"]["summary"]
        over = hint_over(begun, ended_at_ms=now_ms(), issued_ms=now_ms())
        deliveries.record(over)
        deliveries.add([over], [])
        await server.once(lambda found: found == [])
        while told[-1].json["status"] != "resolved":
            told = await people.received(len(told) + 1)
        assert told[-1].json["alerts"][0]["labels"] == alert["labels"]
        await deliveries.stop(5)
        await running


@pytest.mark.real("prometheus-alertmanager")
async def test_an_alarm_nobody_repeats_ends_by_itself(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    program = real_component("prometheus-alertmanager")
    async with endpoint() as people, alertmanager(program, people.url, tmp_path) as server:
        dying = receiver(server.url, 0.25)
        await dying.open()
        await dying.deliver(recent(), now_ms())
        await dying.close()
        await people.received(1)
        await server.once(lambda found: found == [])
