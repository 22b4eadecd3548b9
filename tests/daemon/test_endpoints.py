"""Deliveries to real HTTP endpoints: each trouble is overcome, and no secret is logged."""

from __future__ import annotations

import asyncio
import base64
import io
from typing import Any

import pytest

from streamwatch.daemon.deliveries import Deliveries
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.slack import Slack
from streamwatch.edge.receivers.webhook import Webhook
from streamwatch.telemetry import (
    InternalEvent,
    NotificationFailed,
    ReceiverGone,
    Telemetry,
)
from tests.cpu_budget import until
from tests.daemon.receivers import KEY, QUICK, Clock, Disk, counted, delivering, web
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import firing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (["hang", 200], "timeout"),
        ([500, 200], "http_500"),
        ([(429, {"Retry-After": "0"}), 200], "http_429"),
        ([(302, {"Location": "http://169.254.169.254/"}), 200], "http_302"),
        (["reset", 200], "connection"),
    ],
    ids=["hang", "500", "429", "302", "reset"],
)
async def test_each_trouble_of_a_real_endpoint_is_counted_and_overcome(
    trouble: list[Any], reason: str
) -> None:
    async with endpoint(*trouble) as receiver:
        patience = 3.0 if "hang" in trouble else 60.0
        async with delivering(web(receiver.url, seconds=patience)) as deliveries:
            Disk().commit(deliveries, firing())
            posts = await receiver.received(2)
            await until(lambda: counted(deliveries, "notifications_sent_total") == {("web",): 1.0})
            assert counted(deliveries, "notifications_failed_total") == {(reason, "web"): 1.0}
        assert {post.headers["webhook-id"] for post in posts} == {"firing_1"}


async def test_an_endpoint_that_asks_for_time_is_left_alone() -> None:
    events: list[InternalEvent] = []
    async with (
        endpoint((429, {"Retry-After": "1800"})) as receiver,
        delivering(web(receiver.url), events=events) as deliveries,
    ):
        Disk().commit(deliveries, firing())
        await until(lambda: any(isinstance(h, NotificationFailed) for h in events))
        Disk().commit(deliveries, firing("firing_2", "clicks"))
        (failed,) = (h for h in events if isinstance(h, NotificationFailed))
        assert failed.retry_in_seconds == pytest.approx(1_800, abs=1)
        await asyncio.wait_for(deliveries.stop(1.0), 60)
        assert len(receiver.posts) == 1


async def test_no_secret_is_ever_logged() -> None:
    log = io.StringIO()
    telemetry = Telemetry("debug", "json", log)
    encoded = base64.b64encode(KEY).decode()
    async with endpoint(500, (302, {"Location": "/SECRET"}), "reset", 404, 410) as server:
        url = f"{server.url}/SECRET/T0?key=SECRET".replace("//127", "//user:SECRET@127")
        receiver = HttpReceiver(EndpointSpec("web", url), Webhook([KEY]))
        nowhere = HttpReceiver(EndpointSpec("nowhere", "http://no-such-host.invalid/SECRET"), Slack())
        deliveries = Deliveries([receiver, nowhere], QUICK, telemetry.emit, Clock(), lambda: 0.5)
        running = asyncio.create_task(deliveries.run())
        Disk().commit(deliveries, *(firing(f"firing_{i}", f"m{i}") for i in range(3)))
        await until(lambda: telemetry.count(ReceiverGone) == 1 and telemetry.count(NotificationFailed) > 3)
        await deliveries.stop(0.1)
        await running
    written = log.getvalue()
    assert "receiver_gone" in written
    assert "127.0.0.1" in written
    assert "SECRET" not in written
    assert encoded not in written
