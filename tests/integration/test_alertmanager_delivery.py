"""A real Alertmanager takes an alarm, keeps it while it is repeated, tells people, and lets it end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.core.notices import Notice
from streamwatch.daemon.delivery import Deliveries
from streamwatch.daemon.lane import DeliverySpec
from streamwatch.edge.notifiers import Alertmanager, EndpointSpec, HttpOutlet
from streamwatch.edge.notifiers.wording import iso
from tests.edge.notifiers.endpoint import endpoint
from tests.edge.notifiers.notices import alarm, digest, firing, resolved
from tests.integration.alertmanager_server import alertmanager

ODD = 'naïve "best" \\ model {}'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def recent() -> Notice:
    at_ms = now_ms() - 2_000
    return firing(alarm=alarm(ODD, at_ms=at_ms), started_at_ms=at_ms, issued_ms=at_ms)


def outlet(url: str, repeat_seconds: float) -> HttpOutlet:
    form = Alertmanager(int(1_000 * repeat_seconds), {"team": "risk"}, "https://watch.example.com")
    spec = EndpointSpec("am", f"{url}/api/v2/alerts", repeat_seconds=repeat_seconds)
    return HttpOutlet(spec, form, form.reminder)


@pytest.mark.real("prometheus-alertmanager")
async def test_an_alarm_fires_is_repeated_reaches_people_and_resolves(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    program = real_component("prometheus-alertmanager")
    async with endpoint() as people, alertmanager(program, people.url, tmp_path) as server:
        deliveries = Deliveries([outlet(server.url, 0.5)], DeliverySpec(), lambda _: None)
        running = asyncio.create_task(deliveries.run())
        notice = recent()
        deliveries.record(notice)
        deliveries.add([notice], [notice])
        (alert,) = await server.once(lambda found: len(found) == 1)
        assert alert["labels"] == {
            "alertname": "StreamwatchDrift",
            "model": ODD,
            "detector": "page_hinkley",
            "severity": "warning",
            "team": "risk",
        }
        assert alert["startsAt"] == iso(notice.started_at_ms)
        assert alert["annotations"]["ordinal"] == "2"
        assert alert["generatorURL"] == "https://watch.example.com"
        first_end = alert["endsAt"]
        await server.once(lambda found: bool(found) and found[0]["endsAt"] > first_end)
        told = await people.received(1)
        assert told[0].json["status"] == "firing"
        assert told[0].json["alerts"][0]["annotations"]["summary"] == alert["annotations"]["summary"]

        over = resolved(notice, issued_ms=now_ms(), ended_at_ms=now_ms())
        deliveries.record(over)
        deliveries.add([over], [])
        await server.once(lambda found: found == [])
        told = await people.received(2)
        assert told[1].json["status"] == "resolved"
        assert told[1].json["alerts"][0]["annotations"]["reason"] == "back_to_level"

        again = recent()
        deliveries.add([digest(issued_ms=now_ms()), again], [again])
        names = {"StreamwatchDrift", "StreamwatchDriftDigest"}
        await server.once(lambda found: {a["labels"]["alertname"] for a in found} == names)
        await deliveries.stop(5)
        await running


@pytest.mark.real("prometheus-alertmanager")
async def test_an_alarm_nobody_repeats_ends_by_itself(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    program = real_component("prometheus-alertmanager")
    async with endpoint() as people, alertmanager(program, people.url, tmp_path) as server:
        dying = outlet(server.url, 0.25)
        await dying.open()
        await dying.deliver(recent(), now_ms())
        await dying.close()
        await people.received(1)
        await server.once(lambda found: found == [])
