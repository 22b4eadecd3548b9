"""The list of models: what needs a look comes first and is seen; choices are in the address."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.records.events import Judgement
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, Model, alarm, report_of, worse
from tests.edge.web.test_trouble import with_open_alarm

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
MANY = 10_000


async def names(page: Page) -> list[str]:
    return await page.locator("#rows th a").all_inner_texts()


async def test_a_better_model_with_an_open_incident_stands_above_the_healthy_and_says_so(
    server: HttpServer, opened: Opened
) -> None:
    healthy = {f"a{n}": Model() for n in range(3)}
    models = {
        **healthy,
        "dropped": Model(),
        "silent": Model(accuracy=0.8),
        "poor": worse(Model()),
        "z": Model(accuracy=0.8),
    }
    made = replace(report_of(models), details={"silent": {"nothing_joins": {"predictions": 9}}})
    server.publish(with_open_alarm(made, "dropped"))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(len(models))
    assert await names(page) == ["poor", "dropped", "silent", "z", *healthy]
    row = page.locator("#rows tr", has_text="dropped")
    await expect(row.locator(".incident")).to_have_text(re.compile("^Incident since "))
    await expect(page.locator("#rows tr", has_text="silent")).to_contain_text("no label has matched any of 9")
    await expect(page.locator("#summary")).to_contain_text("1 with an open incident · 1 with a warning")
    await row.get_by_role("link").click()
    incidents = page.get_by_role("list", name="Open incidents")
    await expect(incidents).to_contain_text(
        re.compile(r"warning.*open since .*: error 2\.0.% → 31\.0.% \(adwin\)")
    )
    server.publish(report_of(models, 1))  # over
    await expect(incidents).to_be_hidden()


async def test_a_change_of_verdict_is_in_the_list(server: HttpServer, opened: Opened) -> None:
    judgement = Judgement("persistent", 0, 90, BEGAN_MS)
    opening = alarm("m", 2, "verdict", judgement=judgement, before=1.0, after=0.0)
    server.publish(report_of({"m": Model(accuracy=0.8), "n": Model()}, 0, [opening]))
    page = await opened(server.url)
    await expect(page.locator("#rows tr").first).to_contain_text("was better until")
    await expect(page.locator("#rows tr").nth(1)).not_to_contain_text("was")


def predictions_only(model: str, predictions: int, second: float = 0) -> Report:
    """The report while no label has met a prediction of the model; beside one that is evaluated."""
    made = report_of({"healthy": Model()}, second)
    families = [
        replace(family, samples=[*family.samples, ((model,), predictions)])
        if family.name == "pending_predictions"
        else family
        for family in made.families
    ]
    families += [
        Family(name, "counter", "h", ("model",), [((model,), value), (("healthy",), 1_207.0)])
        for name, value in (("model_predictions_total", predictions), ("model_predictions_joined_total", 0.0))
    ]
    ends = {"first_horizon_ends_timestamp_seconds": BEGAN_MS / 1000 + 86_400}
    return replace(made, families=families, details={model: ends})


async def test_a_model_whose_predictions_wait_has_its_row_and_its_page_with_the_reason(
    server: HttpServer, health: FakeHealth, opened: Opened
) -> None:
    health.facts |= {"labels_accepted_total": 40.0, "labels_joined_total": 31.0}
    made = predictions_only("mute", 120)
    server.publish(made)
    page = await opened(server.url)
    row = page.locator("#rows tr").first
    await expect(row).to_contain_text("no label has matched any of 120 predictions yet")
    await expect(row.locator(".badge").first).to_have_text("No label yet")
    await expect(row.locator(".sparkline")).to_be_hidden()
    assert await row.locator(".sparkline path[d]").count() == 0, "no line, and no tick at 0"
    await expect(row.locator(".c-accuracy .value")).to_have_text("–")
    await page.get_by_role("link", name="mute").click()
    shown = page.locator("#model")
    await expect(shown).to_contain_text(
        "No label has matched any prediction of this model yet; 120 predictions are waiting"
    )
    await expect(shown).to_contain_text("waits for labels at least until")
    await expect(shown).to_contain_text(
        "Of 40 labels read so far, 31 have matched a prediction of some model"
    )
    await page.get_by_role("button", name="Open all sections").click()
    await expect(shown.get_by_role("region", name="Labels")).to_contain_text("120")
    assert await page.get_by_role("img").count() == 0
    server.publish(
        replace(
            made,
            published_ms=made.published_ms + 1_000,
            details={"mute": {"nothing_joins": {"predictions": 120}}},
        )
    )
    await expect(shown).to_contain_text("Their ids may be written differently")
    server.publish(report_of({"healthy": Model(), "mute": Model()}, 2))
    await expect(page.get_by_role("img").first).to_be_visible()


async def test_sorting_filter_and_page_are_in_the_address_and_come_back(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of({f"m{n}": Model(outcomes=100 + (n * 7) % 10) for n in range(10)}))
    page = await opened(server.url, details=True)
    await page.get_by_role("button", name="Outcomes").click()
    await page.get_by_role("button", name="Outcomes").click()
    await page.get_by_role("searchbox").fill("m")
    await expect(page).to_have_url(re.compile(r"#/\?sort=outcomes&order=ascending&filter=m$"))
    await expect(page.locator("#rows th a").first).to_have_text("m0")
    shown = await names(page)
    assert shown[:2] == ["m0", "m3"]
    await page.reload()
    await expect(page.locator("#rows tr")).to_have_count(10)
    assert await names(page) == shown
    assert await page.get_by_role("searchbox").input_value() == "m"
    await page.get_by_role("link", name="m3").click()
    await page.get_by_role("link", name="All models").click()
    await expect(page).to_have_url(re.compile("sort=outcomes"))
    assert await names(page) == shown
    await page.get_by_role("link", name="streamwatch").click()
    await expect(page.get_by_role("searchbox")).to_have_value("")
    await page.goto(f"{server.url}/#/?sort=nothing&page=x")
    await expect(page.locator("#rows tr")).to_have_count(10)


async def test_ten_thousand_models_are_pages_of_few_rows(server: HttpServer, opened: Opened) -> None:
    models = {f"model-{n}": Model() for n in range(MANY)}
    models["model-7777"] = worse(Model())
    server.publish(report_of(models))
    page = await opened(f"{server.url}/#/?sort=model")
    await expect(page.locator("#pager-text")).to_have_text("1 to 50 of 10,000")
    assert (await names(page))[9:11] == ["model-9", "model-10"]
    await page.get_by_role("button", name="Next").click()
    await expect(page.locator("#rows th a").first).to_have_text("model-50")
    assert await page.locator("#rows tr").count() == 50
    await page.goto(f"{server.url}/#/?sort=model&page=999")
    await expect(page.locator("#pager-text")).to_have_text("9,951 to 10,000 of 10,000")
    await expect(page.get_by_role("button", name="Next")).to_be_disabled()
    await page.get_by_role("button", name="Better than no change?").click()
    await expect(page.locator("#rows th a").first).to_have_text("model-7777")
    await page.get_by_role("searchbox").fill("model-999")
    await expect(page.locator("#rows tr")).to_have_count(11)
