"""The past that survives restarts, on a model's page."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.test_past import HOUR_S, NOON_S, every, report_with_past

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


async def test_a_page_opened_after_a_restart_shows_the_days_before(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(
        report_with_past(every(120, NOON_S - 3 * 24 * HOUR_S, NOON_S))
    )  # the first report of a life
    page = await opened(f"{server.url}/#/model/m", unfolded=True, timezone_id="UTC")
    chart = page.locator("figure", has=page.get_by_role("heading", name="Last 30 days"))
    await expect(chart.get_by_role("img")).to_have_attribute(
        "aria-label",
        re.compile(
            r"^Last 30 days from \d+ \w+, 12:30:00 UTC to \d+ \w+, 11:58:30 UTC\. "
            r"Latest: accuracy \d+\.\d.%, previous label again 0\.0.%\.$"
        ),
    )
    drawn = "node => node.getContext('2d').getImageData(0, 0, node.width, node.height).data.some(v => v)"
    assert await chart.locator("canvas").first.evaluate(drawn)
