"""Beside a verdict the page says what it does not rest on yet, in plain words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, Model, report_of, worse

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
QUICK = {"first_horizon_ends_timestamp_seconds": BEGAN_MS / 1000 + 86_400.0}
ASSUMED = {"labels_assumed_as": "<b>legit</b>"}


async def test_caveats_stand_beside_the_verdict_and_go_when_they_are_over(
    server: HttpServer, opened: Opened
) -> None:
    made = report_of({"young": worse(Model()), "settled": Model()})
    server.publish(replace(made, details={"young": {**QUICK, **ASSUMED}}))
    page = await opened(server.url)
    cell = page.locator("#rows tr", has_text="young").locator(".c-verdict")
    await expect(cell).to_contain_text("quick labels only, labels assumed")
    settled = page.locator("#rows tr", has_text="settled").locator(".c-verdict .caveat")
    await expect(settled).to_have_text("")
    await page.goto(f"{server.url}/#/model/young")
    await expect(page.locator("#model .badge")).to_have_text("Worse than no change")
    await expect(page.locator("#model .since")).to_contain_text("Since ")
    said = page.locator("#model .caveat")
    await expect(said).to_contain_text("Only quick labels are in so far: many predictions")
    await expect(said).to_contain_text("count as “<b>legit</b>”")

    server.publish(replace(report_of({"young": worse(Model()), "settled": Model()}, 1), details={}))
    await expect(said).to_be_hidden()
