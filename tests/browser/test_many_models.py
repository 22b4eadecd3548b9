"""Five hundred models, every number changing every second: the page stays smooth and asks for little."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from typing import Any

import pytest
from playwright.async_api import Browser, CDPSession, expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
MODELS = 500
SHOWN = 50
REPORTS = 20
KB_PER_MINUTE = 100.0
"""Bytes over the line with headers, after the page has been loaded."""
CPU_MS_PER_REPORT = 100.0
"""What the page's main thread uses: script, style, layout and paint."""
LONGEST_TASK_MS = 200.0
"""No frame is drawn before a task is over. Of the processor, too: a clock would count the work of others."""


async def test_five_hundred_changing_models_stay_smooth_and_cost_little_traffic(
    server: HttpServer, browser: Browser, opened: Opened
) -> None:
    rng = random.Random(1)

    def models() -> dict[str, Model]:
        return {
            f"model-{n:03}": Model(
                outcomes=rng.randrange(1_000, 10**6),
                accuracy=rng.uniform(0.6, 0.95),
                persistent=rng.uniform(0.6, 0.9),
                pending=rng.randrange(10_000),
                alarms=rng.randrange(100),
                last_alarm=1_760_000_000.0 - rng.randrange(10_000),
            )
            for n in range(MODELS)
        }

    server.publish(report_of(models()))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(SHOWN)
    inspector = await page.context.new_cdp_session(page)
    received = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal received
        received += max(0, int(event["encodedDataLength"]))

    # Of an answer: its headers when they are there, its body piece by piece, as a stream has no end.
    inspector.on("Network.responseReceived", lambda event: count(event["response"]))
    inspector.on("Network.dataReceived", count)
    await inspector.send("Network.enable")
    await inspector.send("Performance.enable", {"timeDomain": "threadTicks"})
    before, began = await cpu_seconds(inspector), asyncio.get_running_loop().time()
    await browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline"])
    last: dict[str, Model] = {}
    for second in range(1, REPORTS + 1):
        last = models()
        server.publish(report_of(last, second))
        await asyncio.sleep(1.0)  # the pace at which reports come is what is tested
    tasks = tasks_ms(await browser.stop_tracing())
    minutes = (asyncio.get_running_loop().time() - began) / 60
    cpu_ms = (await cpu_seconds(inspector) - before) * 1000 / REPORTS
    assert len(tasks) > REPORTS, "tasks were seen"
    assert received > 1_000, "traffic was seen"
    reported = (
        f"{received / 1000 / minutes:.0f} kB a minute, {cpu_ms:.0f} ms of the processor a report, "
        f"longest task {max(tasks):.0f} ms"
    )
    log.info("%s", reported)
    assert received / 1000 / minutes < KB_PER_MINUTE, reported
    assert cpu_ms < CPU_MS_PER_REPORT, reported
    assert max(tasks) < LONGEST_TASK_MS, reported
    await page.get_by_role("searchbox").fill("model-123")
    shown = page.locator("#rows tr", has_text="model-123").locator(".c-accuracy .value")
    await expect(shown).to_have_text(f"{last['model-123'].accuracy:.1%}".replace("%", "\u202f%"))


def tasks_ms(trace: bytes) -> list[float]:
    """What each task of the page's main thread took of the processor."""
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    own = [e for e in events if names.get((e["pid"], e["tid"])) == "CrRendererMain"]
    return [e["tdur"] / 1_000 for e in own if e["name"] == "RunTask" and "tdur" in e]


async def cpu_seconds(inspector: CDPSession) -> float:
    """What the page's main thread has used so far."""
    metrics = (await inspector.send("Performance.getMetrics"))["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
