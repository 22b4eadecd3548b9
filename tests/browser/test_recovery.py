"""Recovery after drifts on a model's page: the drift under way, and how the last one ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    ("outcomes", "end"),
    [(1_060, "back after 1,060 outcomes"), (0, "within its bound"), (None, "not back")],
)
async def test_a_drift_under_way_and_the_end_of_the_last_are_reported(
    server: HttpServer, opened: Opened, outcomes: int | None, end: str
) -> None:
    now = {
        "since_outcome": 7_201,
        "alarm_timestamp_seconds": 1_700_000_000.0,
        "error_before_ratio": 0.1,
        "error_now_ratio": 0.25,
    }
    last = {"depth": 0.125, "outcomes": outcomes}
    recovery = {"forgetting": "fading:0.999", "under_way": now, "last": last}
    report = report_of({"m": Model(), "steady": Model()})
    server.publish(replace(report, details={"m": {"recovery": recovery}}))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    panel = page.locator("#model .panel", has=page.get_by_role("heading", name="Drift", exact=True))
    await expect(panel).to_contain_text("since outcome 7,201")
    await expect(panel).to_contain_text("error now 25.0\u202f%, before 10.0\u202f%")
    await expect(panel).to_contain_text(f"error rose by 12.5\u202f%, {end}")
    await page.goto(f"{server.url}/#/model/steady")
    await expect(page.locator("#model h1")).to_have_text("steady")
    await expect(page.get_by_text("last drift")).to_have_count(0)
