"""Two hundred models, every number of each changing every second: the page stays smooth."""

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
MODELS = 200
REPORTS = 6
CPU_MS_PER_REPORT = 200.0
"""What the page's main thread uses: script, style, layout and paint. Measured: about half of it."""
LONGEST_TASK_MS = 200.0
"""No frame is drawn before a task is over. Of the processor, too: a clock would count the work of others."""


async def test_two_hundred_changing_models_stay_smooth(
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
    await expect(page.locator("#rows tr")).to_have_count(MODELS)
    inspector = await page.context.new_cdp_session(page)
    await inspector.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await cpu_seconds(inspector)
    await browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline"])
    last: dict[str, Model] = {}
    for second in range(1, REPORTS + 1):
        last = models()
        server.publish(report_of(last, second))
        await asyncio.sleep(1.0)  # the pace at which reports come is what is tested
    shown = page.locator("#rows tr", has_text="model-123").locator(".c-outcomes")
    await expect(shown).to_have_text(f"{last['model-123'].outcomes:,}")
    tasks = tasks_ms(await browser.stop_tracing())
    cpu_ms = (await cpu_seconds(inspector) - before) * 1000 / REPORTS
    assert len(tasks) > REPORTS, "tasks were seen"
    told = f"{cpu_ms:.0f} ms of the processor a report, longest task {max(tasks):.0f} ms"
    log.info("%s", told)
    assert cpu_ms < CPU_MS_PER_REPORT, told
    assert max(tasks) < LONGEST_TASK_MS, told


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
