"""First and last predictions on a model's page: what revising gained, in all and by waiting time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of
from tests.layouts import TINY

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


async def test_what_revising_gained_is_reported_in_all_and_by_waiting_time(
    server: HttpServer, opened: Opened
) -> None:
    watched = EstimatorSet(replace(TINY, registers=(RevisionsSpec(240_000, 1.0),)))
    watched.fold([Outcome("with", "x", "x", i, 1_000) for i in range(60)])
    watched.fold([Outcome("with", "x", "y", i, 240_000, last_class="x") for i in range(40)])
    report = report_of({"with": Model(), "without": Model()})
    server.publish(replace(report, details={"with": watched.details()["with"]}))
    page = await opened(f"{server.url}/#/model/with", unfolded=True)
    panel = page.locator(
        "#model .panel", has=page.get_by_role("heading", name="Revised predictions", exact=True)
    )
    await expect(panel).to_contain_text("60.0\u202f%")
    await expect(panel).to_contain_text("+0.400")
    await expect(panel).to_contain_text("40 made right, 0 made wrong")
    await expect(panel).to_contain_text("40 of 100")
    by_time = page.locator("#model .panel", has=page.get_by_role("heading", name="by waiting time"))
    await expect(by_time.locator("tbody tr")).to_have_count(2)
    assert (await by_time.locator("tbody tr").last.inner_text()).split("\t")[1:] == [
        "0.0\u202f%",
        "100.0\u202f%",
        "+1.000",
        "100.0\u202f%",
    ]
    await page.goto(f"{server.url}/#/model/without")
    await expect(page.locator("#model h1")).to_have_text("without")
    await expect(page.get_by_role("heading", name="Revised predictions")).to_have_count(0)
