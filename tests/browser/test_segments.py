"""Segments on a model's page: what errs more than in its past comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of
from tests.layouts import TINY

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
HOSTILE = "<i>it</i>"


async def test_values_that_err_more_than_before_come_first(server: HttpServer, opened: Opened) -> None:
    watched = EstimatorSet(replace(TINY, registers=(SegmentsSpec(max_classes=4),)))
    for i in range(900):
        country = ("de", "fr", HOSTILE)[i % 3]
        wrong = country == "fr" and i > 700
        segments = {"country": country}
        watched.fold([Outcome("with", "x", "y" if wrong else "x", i, 0, segments=segments)])
    report = report_of({"with": Model(), "without": Model()})
    server.publish(replace(report, details={"with": watched.details()["with"]}))
    page = await opened(f"{server.url}/#/model/with", unfolded=True)
    panel = page.locator("#model section", has=page.get_by_role("heading", name="Segments by country"))
    await expect(panel.locator("tbody th").first).to_have_text("fr")
    assert sorted(await panel.locator("tbody th").all_inner_texts()) == sorted(["de", "fr", HOSTILE])
    first = await panel.locator("tbody tr").first.inner_text()
    assert first.split("\t")[1] == "300"
    assert "100" in first.split("\t")[-1]
    await page.goto(f"{server.url}/#/model/without")
    await expect(page.locator("#model h1")).to_have_text("without")
    await expect(page.get_by_role("heading", name="Segments")).to_have_count(0)
