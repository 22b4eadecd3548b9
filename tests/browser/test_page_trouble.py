"""A page whose address, server or model is not as expected says so, and shows no old number as a new one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Route, expect

from streamwatch.core.metrics.series import Family
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, Model, alarm, report_of, serving
from tests.ports import free_port

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
BANNER = "#banner"


class OtherVersion(FakeHealth):
    """Health of a daemon of another version than the page is from."""

    def families(self) -> list[Family]:
        of_version, *others = super().families()
        return [replace(of_version, samples=[(("9.9.9",), 1)]), *others]


@pytest.mark.parametrize("name", ["100%", "%E0%A4%A"])
async def test_an_address_that_is_no_escaped_text_is_the_name_as_it_stands(
    server: HttpServer, opened: Opened, name: str, complaints: list[str]
) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened(f"{server.url}/#/model/{name}")
    await expect(page.locator("h1").last).to_have_text(name)
    await expect(page.locator("#model")).to_contain_text(f"No model named “{name}” has been evaluated")
    await expect(page.locator("#connection")).to_contain_text("live")
    await page.close()
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


async def test_numbers_that_do_not_come_are_said_to_be_old_and_asked_for_without_another_report(
    server: HttpServer, opened: Opened, complaints: list[str]
) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened("about:blank")
    failing = True

    async def answer(route: Route) -> None:
        await (route.fulfill(status=500, body="{}") if failing else route.continue_())

    await page.route("**/api/v1/list?*", answer)
    await page.goto(server.url)
    await expect(page.locator("#connection")).to_contain_text("live")
    await expect(page.locator(BANNER)).to_contain_text("the daemon does not answer with numbers")
    failing = False
    await expect(page.locator("#rows tr")).to_have_count(1)
    await expect(page.locator(BANNER)).to_be_hidden()
    assert all("500" in complaint for complaint in complaints)
    complaints.clear()


async def test_a_page_of_an_earlier_version_asks_to_be_reloaded(
    opened: Opened, complaints: list[str]
) -> None:
    listen = f"127.0.0.1:{free_port()}"
    async with serving(listen=listen) as first:
        first.publish(report_of({"m": Model()}))
        page = await opened(first.url)
        await expect(page.locator("#version")).to_have_text("streamwatch 0.1.0")
    await expect(page.locator(BANNER)).to_contain_text("The connection was lost")
    async with serving(OtherVersion(), listen=listen) as second:
        second.publish(report_of({"m": Model()}, 5))
        await expect(page.locator(BANNER)).to_have_text(
            "This page is of streamwatch 0.1.0, and the daemon is now 9.9.9: reload the page."
        )
        await page.reload()
        await expect(page.locator("#version")).to_have_text("streamwatch 9.9.9")
        await expect(page.locator(BANNER)).to_be_hidden()
        await page.close()
    assert all("ERR_" in complaint for complaint in complaints)
    complaints.clear()


async def test_a_model_that_retires_while_its_page_is_open_is_said_to_be_gone(
    server: HttpServer, opened: Opened, complaints: list[str]
) -> None:
    server.publish(report_of({"m": Model(), "old": Model()}))
    page = await opened(f"{server.url}/#/model/old")
    await expect(page.locator("#model .sentence").first).to_contain_text("right in 90.0")
    server.publish(report_of({"m": Model()}, 5))
    await expect(page.locator("#model > .empty")).to_contain_text("“old” is not watched any more")
    await expect(page.locator("#model > .empty")).to_contain_text("What follows was so at")
    server.publish(report_of({"m": Model(), "old": Model(accuracy=0.8)}, 10))
    await expect(page.locator("#model .sentence").first).to_contain_text("right in 80.0")
    await expect(page.locator("#model > .empty")).to_be_hidden()
    await page.close()
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


async def test_a_group_that_has_no_model_any_more_is_named(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened(f"{server.url}/#/?prefix=fraud-")
    await expect(page.locator("#no-models")).to_have_text("No model of the group “fraud-” is watched now.")
    await page.get_by_role("searchbox").fill("eu")
    await expect(page.locator("#no-models")).to_have_text(
        "No model of the group “fraud-” whose name contains “eu” is watched now."
    )


async def test_a_models_page_has_its_alarms_however_many_others_came_later(
    server: HttpServer, opened: Opened
) -> None:
    others = [alarm("noisy", number) for number in range(1, 120)]
    server.publish(report_of({"noisy": Model(), "m": Model(alarms=1)}, 0, [alarm("m"), *others]))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    listed = page.locator("#model .alarms li")
    await expect(listed).to_have_count(1)
    server.publish(
        report_of({"noisy": Model(), "m": Model(alarms=2)}, 5, [alarm("m"), *others, alarm("m", 2)])
    )
    await expect(listed).to_have_count(2)


async def test_charts_of_sampled_labels_are_not_called_those_of_all_predictions(
    server: HttpServer, opened: Opened
) -> None:
    report = report_of({"m": Model(), "every": Model()})
    sampled = {
        "accuracy": {"value": 0.7, "effective_labels": 40.0},
        "share_expected": 0.2,
        "share_without": 0.0,
        "since_timestamp_seconds": BEGAN_MS / 1000 - 60,
        "until_timestamp_seconds": BEGAN_MS / 1000,
        "settled": {"age_seconds": 60.0, "labels_asked": 50, "labels_arrived": 49},
        "leads": {},
    }
    server.publish(replace(report, details={"m": {"sampled_labels": sampled}}))
    page = await opened(f"{server.url}/#/model/m")
    chart = page.locator("#model .chart").first
    await expect(page.locator("#model .sentence").first).to_contain_text("70.0")
    await expect(chart).to_contain_text("not the accuracy of all predictions")
    for section in ("More charts", "Every estimate"):
        summary = page.locator("#model summary", has_text=section)
        await expect(summary).to_contain_text("of the labels that came, each counted once")
    await page.goto(f"{server.url}/#/model/every")
    await expect(chart).to_contain_text("How often the model is right, beside its baselines")


async def test_the_description_fits_a_phone(server: HttpServer, opened: Opened) -> None:
    page = await opened(f"{server.url}/docs", viewport={"width": 360, "height": 800})
    await expect(page.locator("#schemas section").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_a_model_without_detectors_or_hits_has_no_empty_chart(
    server: HttpServer, opened: Opened
) -> None:
    report = report_of({"m": Model(accuracy=0.0, persistent=0.0, majority=0.0), "other": Model()})
    of_others = ("detector_statistic", "detector_threshold", "alarms_total")
    families = [
        replace(each, samples=[s for s in each.samples if s[0][each.labels.index("model")] != "m"])
        if each.name in of_others
        else each
        for each in report.families
    ]
    server.publish(replace(report, families=families))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    await expect(page.get_by_role("heading", name="Recall of each class")).to_be_visible()
    await expect(page.get_by_role("heading", name="Detector adwin")).to_have_count(0)
    recall = page.locator("figure", has=page.get_by_role("heading", name="Recall of each class"))
    axis = "node => node.getContext('2d').getImageData(0, 0, node.width / 10, node.height).data.some(v => v)"
    await expect(recall.locator("canvas")).to_be_visible()
    assert await recall.locator("canvas").evaluate(axis), "it has an axis of shares"
    await page.goto(f"{server.url}/#/model/other")
    await expect(page.get_by_role("heading", name="Detector adwin")).to_be_visible()
