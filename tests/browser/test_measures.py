"""The page shows the measures of the catalogue, whichever these are."""

from __future__ import annotations

from dataclasses import replace

import aiohttp
import pytest
from playwright.async_api import expect

from streamwatch.core.estimators import catalogue
from streamwatch.core.metrics.series import Family
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import FADING, Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


async def test_a_measure_that_is_added_to_the_catalogue_is_on_the_page_with_its_value_and_its_meaning(
    server: HttpServer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = replace(catalogue.MEASURES[0], name="agreement_squared", help="Share of hits, squared")
    monkeypatch.setattr(catalogue, "MEASURES", (*catalogue.MEASURES, added))
    report = report_of({"m": Model()})
    of_it = Family(added.name, "gauge", "h", ("forgetting", "model"), [((FADING, "m"), 0.123)])
    server.publish(replace(report, families=(*report.families, of_it)))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    estimates = page.get_by_role("region", name="Estimates")
    row = estimates.get_by_role("row").filter(has=page.get_by_role("rowheader", name="agreement squared"))
    await expect(row).to_contain_text("0.123")
    await expect(row).to_contain_text("Share of hits, squared")


async def test_every_measure_bound_and_baseline_is_listed_and_every_measure_of_a_class(
    server: HttpServer, opened: Opened
) -> None:
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.get("/api/v1/catalogue") as answer,
    ):
        listed = await answer.json()
    server.publish(report_of({"m": Model()}))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    estimates = page.get_by_role("region", name="Estimates")
    of_model = sum(len(listed[kind]) for kind in ("measures", "bounds", "baselines"))
    await expect(estimates.get_by_role("rowheader")).to_have_count(of_model + 1)  # and effective outcomes
    classes = page.get_by_role("region", name="Classes").get_by_role("columnheader")
    await expect(classes).to_have_count(1 + len(listed["per_class"]))
