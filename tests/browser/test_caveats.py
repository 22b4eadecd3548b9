"""Beside a verdict the page says what it does not rest on yet, in plain words."""

from __future__ import annotations

import re
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
    shown = page.locator("#model .caveat")
    await expect(shown).to_contain_text("Only quick labels are in so far: many predictions")
    await expect(shown).to_contain_text("count as “<b>legit</b>”")

    server.publish(replace(report_of({"young": worse(Model()), "settled": Model()}, 1), details={}))
    await expect(shown).to_be_hidden()


async def test_an_early_verdict_says_that_the_delays_it_counts_on_have_moved(
    server: HttpServer, opened: Opened
) -> None:
    opponents = {
        name: {"verdict": "worse", "lead": -0.1} for name in ("persistent_at_prediction", "majority")
    }
    early = {
        "headline": {"basis": "cohorts", "verdict": "worse", "opponent": "majority", "status": "early"},
        "cohorts": {"age_seconds": 60.0, "opponents": opponents},
    }
    moved = {"delays_moved": {"hits": {"before_seconds": 10_800.0, "after_seconds": 14_400.0}}}
    made = report_of({"moved": Model(), "steady": Model()})
    server.publish(replace(made, details={"moved": {**early, "late_labels": moved}, "steady": early}))
    page = await opened(server.url)
    caveat = page.locator("#rows tr", has_text="moved").locator(".c-verdict .caveat")
    await expect(caveat).to_have_text("early, delays moved")
    await expect(caveat).to_have_attribute("title", re.compile("How late labels of hits are has changed"))
    steady = page.locator("#rows tr", has_text="steady").locator(".c-verdict .caveat")
    await expect(steady).to_have_text("early")


async def test_a_model_whose_classes_count_alike_says_that_its_verdict_is_in_the_order_of_labels(
    server: HttpServer, opened: Opened
) -> None:
    details = {
        "balanced": {"utility": "balanced"},
        "costs": {"utility": "costs"},  # as without verdicts by cohorts
    }
    server.publish(replace(report_of({"balanced": worse(Model()), "costs": worse(Model())}), details=details))
    page = await opened(f"{server.url}/#/model/balanced")
    await expect(page.locator("#model .caveat")).to_contain_text("this one follows the order of labels")
    await page.goto(f"{server.url}/#/model/costs")
    badge = page.locator("#model .badge")
    await expect(badge).to_have_text("Worse than no change")
    await expect(page.locator("#model .caveat")).to_be_hidden()
    shown = re.compile("^Shown to cost more with its mistakes, currently")
    await page.goto(f"{server.url}/#/")
    row = page.locator("#rows tr", has_text="costs").locator(".c-verdict .badge").first
    await expect(row).to_have_attribute("title", shown)
