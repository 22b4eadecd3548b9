"""DriftAlarm of a real Prometheus beside what the daemon reports, in a real Alertmanager with our policy."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from streamwatch.core.alerting.notification import Notification
from streamwatch.edge.receivers.alertmanager import PATH, Alertmanager
from tests.deploy.prometheus_with_rules import prometheus_with_rules
from tests.deploy.rules import DEPLOY
from tests.edge.receivers.notifications import alarm, firing, part, resolved
from tests.integration.alertmanager_server import AlertmanagerServer, alertmanager

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9"


@dataclass
class Daemon:
    """What a scrape finds: alarms, and how many of each model and severity are open."""

    alarms: int = 0
    opened: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    async def scrape(self, _: web.Request) -> web.Response:
        lines = [f'streamwatch_alarms_total{{model="loan",detector="adwin"}} {self.alarms}']
        lines += [f'streamwatch_model_info{{model="{model}"}} 1' for model in ("loan", "churn")]
        for (model, severity), count in self.opened.items():
            lines.append(f'streamwatch_alarms_open{{model="{model}",severity="{severity}"}} {count}')
        return web.Response(text="\n".join(["# TYPE streamwatch_alarms_total counter", *lines, ""]))


@asynccontextmanager
async def scraped(daemon: Daemon) -> AsyncGenerator[str]:
    """Where it can be scraped."""
    app = web.Application()
    app.router.add_get("/metrics", daemon.scrape)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"{host}:{port}"
    finally:
        await runner.cleanup()


async def tell(server: AlertmanagerServer, notification: Notification) -> None:
    """As the daemon's receiver does."""
    request = Alertmanager().request_body(notification, time.time_ns() // 1_000_000)
    headers = {"Content-Type": "application/json"}
    posting = server.session.post(server.url + PATH, data=request.body, headers=headers)
    async with posting as answer:
        assert answer.status == 200, await answer.text()


def drifts(found: Sequence[Any]) -> dict[tuple[str, str], bool]:
    """(model, severity) of every DriftAlarm that is on → whether it is inhibited."""
    return {
        (alert["labels"]["model"], alert["labels"]["severity"]): bool(alert["status"]["inhibitedBy"])
        for alert in found
        if alert["labels"]["alertname"] == "DriftAlarm"
    }


@pytest.mark.real("prometheus", "prometheus-alertmanager")
async def test_a_drift_is_on_while_its_alarm_is_open_and_silent_where_the_daemon_reports_it(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    daemon = Daemon()
    policy = DEPLOY / "alertmanager" / "alertmanager.yml"
    async with (
        scraped(daemon) as target,
        alertmanager(real_component("prometheus-alertmanager"), NOBODY, tmp_path, policy) as server,
        prometheus_with_rules(
            real_component("prometheus"), target, tmp_path, server.url.removeprefix("http://")
        ) as prometheus,
    ):
        await prometheus.answer("streamwatch_alarms_total == 0")
        daemon.alarms = 1
        critical = part(alarm("loan"), severity="critical")
        reported = firing(model="loan", severity="critical", parts=(critical,))
        await tell(server, reported)
        daemon.opened = {("loan", "critical"): 1, ("loan", "info"): 1, ("churn", "error"): 1}
        reported_by_prometheus_alone = {("loan", "info"): False, ("churn", "error"): False}
        await server.once(
            lambda found: drifts(found) == {("loan", "critical"): True, **reported_by_prometheus_alone}
        )

        await tell(server, resolved(reported, ended_at_ms=time.time_ns() // 1_000_000))
        del daemon.opened["loan", "critical"]
        await server.once(lambda found: drifts(found) == reported_by_prometheus_alone)
        await prometheus.answer("increase(streamwatch_alarms_total[15m]) > 0")
