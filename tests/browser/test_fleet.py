"""The overview lists models that are worse by the fleet's rule, with what the list promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import expect

from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
HOSTILE = "<b>fraud</b>/1"
SINCE = BEGAN_MS / 1000


def judged(verdict: str, e_value: float, **more: float) -> dict[str, Any]:
    return {"verdict": verdict, "lead": -0.1, "e_value": e_value, **more}


def fleet(of_no_change: dict[str, dict[str, Any]]) -> Report:
    """A report on models, each with its verdict against no change; against the majority nothing is known."""
    details = {
        model: {
            "headline": {"basis": "cohorts", "verdict": "open"},
            "cohorts": {
                "age_seconds": 60.0,
                "opponents": {"persistent_at_prediction": found, "majority": judged("open", 1.0)},
            },
        }
        for model, found in of_no_change.items()
    }
    return replace(report_of({model: Model() for model in of_no_change}), details=details)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_worse_models_are_listed_with_since_when_and_what_is_promised(
    server: HttpServer, opened: Opened, scheme: str
) -> None:
    began = {"since_timestamp_seconds": SINCE, "latest_timestamp_seconds": SINCE + 60}
    worse = {HOSTILE: judged("worse", 1e9, **began), "recovered": judged("better", 1e6, **began)}
    server.publish(fleet({**worse, "steady": judged("open", 2.0)}))
    page = await opened(server.url, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    section = page.get_by_role("region", name="Worse by the fleet's rule")
    await expect(section.locator("li a")).to_have_text([HOSTILE, "recovered"])  # as text, most evidence first
    await expect(section.locator("li").nth(0)).to_contain_text("worse than no change")
    await expect(section.locator("li").nth(0)).to_contain_text("at the latest")
    await expect(section.locator("li").nth(1)).to_contain_text("verdict now: better")
    promise = section.locator("#fleet-promise")
    await expect(promise).to_contain_text("at most are expected to have never been worse")
    await expect(promise).to_contain_text("not promised of all lists together")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await section.get_by_role("link", name=HOSTILE).click()
    await expect(page.locator("#model h1")).to_have_text(HOSTILE)


async def test_a_model_named_as_a_step_in_a_path_is_reached_from_the_list(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(fleet({"..": judged("worse", 1e9)}))
    page = await opened(server.url)
    await page.locator("#fleet-worse a").click()
    await expect(page.locator("#model h1")).to_have_text("..")


async def test_a_fleet_without_worse_models_says_of_how_many_pairs_none_is_listed(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(fleet({"a": judged("open", 1.0), "b": judged("worse", 79.0)}))  # of 4 pairs, 80 is needed
    page = await opened(server.url)
    await expect(page.locator("#fleet-promise")).to_contain_text(
        "None of 4 pairs of a model and a rival is listed."
    )
    await expect(page.locator("#fleet-worse")).to_be_hidden()


async def test_nothing_is_shown_of_a_fleet_where_no_model_is_judged_by_cohorts(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(1)
    await expect(page.locator("#fleet")).to_be_hidden()
