"""Two hundred models, every number of each changing every second: the page stays smooth."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest
from playwright.async_api import CDPSession, expect

from streamwatch.edge.http import HttpServer
from tests.browser.conftest import Opened
from tests.edge.http_faces import Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
MODELS = 200
REPORTS = 6
CPU_MS_PER_REPORT = 200.0
"""Of the page's main thread: script, style, layout and paint. Measured: about half of it."""
LONGEST_TASK_MS = 200.0
"""By the clock, on a machine that is not busy with other things."""

WATCH = """() => {
  window.tasks = [];
  window.gaps = [];
  new PerformanceObserver(list => tasks.push(...list.getEntries().map(entry => entry.duration)))
    .observe({ type: "longtask" });
  let last = performance.now();
  const frame = now => { gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


async def test_two_hundred_changing_models_stay_smooth(server: HttpServer, opened: Opened) -> None:
    rng = random.Random(1)  # noqa: S311

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
    await page.evaluate(WATCH)
    inspector = await page.context.new_cdp_session(page)
    await inspector.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await cpu_seconds(inspector)
    last: dict[str, Model] = {}
    for second in range(1, REPORTS + 1):
        last = models()
        server.publish(report_of(last, second))
        await asyncio.sleep(1.0)  # the pace at which reports come is what is tested
    shown = page.locator("#rows tr", has_text="model-123").locator(".c-outcomes")
    await expect(shown).to_have_text(f"{last['model-123'].outcomes:,}")
    seen: dict[str, Any] = await page.evaluate("({ tasks, gaps })")
    cpu_ms = (await cpu_seconds(inspector) - before) * 1000 / REPORTS
    longest = max(seen["tasks"], default=0.0)
    told = f"{cpu_ms:.0f} ms CPU a report, longest task {longest:.0f} ms, gap {max(seen['gaps']):.0f} ms"
    assert cpu_ms < CPU_MS_PER_REPORT, told
    if os.getloadavg()[0] < (os.cpu_count() or 1):
        assert longest < LONGEST_TASK_MS, told
        assert max(seen["gaps"]) < 2 * LONGEST_TASK_MS, told
    print(told)  # noqa: T201  # for who measures


async def cpu_seconds(inspector: CDPSession) -> float:
    """What the page's main thread has used so far."""
    metrics = (await inspector.send("Performance.getMetrics"))["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
