"""A model's page says what late labels leave out, and since when predictions err."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.core.records.events import ErrorChange
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, Model, alarm, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
BEGAN = BEGAN_MS / 1000
ACCURACY = {"accuracy": 0.9, "lower": 0.88, "upper": 0.92, "effective_sample_size": 1_234.0}
CHANGE = {
    "since_timestamp_seconds": BEGAN,
    "earliest_timestamp_seconds": BEGAN - 60,
    "latest_timestamp_seconds": BEGAN + 60,
    "before": 0.1,
    "after": 0.3,
}
YOUNG = {
    "horizon_seconds": 86_400.0,
    "as_of_timestamp_seconds": BEGAN,
    "by_prediction_time": {
        "width_seconds": 2_025.0,
        "start_timestamp_seconds": [BEGAN],
        "outcomes": [424],
        "errors": [40],
    },
}
SETTLED = {
    **YOUNG,
    "settled": ACCURACY,
    "delay_corrected": ACCURACY,
    "naive": 0.783,
    "bias": -0.117,
    "share_labelled": {
        "age_seconds": [3_600.0 * (hour + 1) for hour in range(23)],
        "errors": [0.5] * 22 + [1.0],
        "hits": [0.25] * 22 + [1.0],
    },
    "delays_moved": {"hits": {"before_seconds": 10_800.0, "after_seconds": 14_400.0}},
    "change": CHANGE,
}
FLAWLESS = {
    **SETTLED,
    "share_labelled": {"age_seconds": [3_600.0 * (hour + 1) for hour in range(23)], "hits": [1.0] * 23},
}
WINDOW = {**YOUNG, "settled": ACCURACY, "delay_corrected_undefined": "hits_too_late"}
QUICK = {
    "first_horizon_ends_timestamp_seconds": BEGAN + 86_400.0,
    "first_horizon_predictions": 1_829,
    "first_horizon_labelled": 424,
    "first_horizon_only_label": "<b>fraud</b>",
}


async def test_late_labels_are_a_panel_and_quick_ones_a_caveat(server: HttpServer, opened: Opened) -> None:
    change = ErrorChange(BEGAN_MS, BEGAN_MS - 60_000, BEGAN_MS + 60_000, 0.1, 0.3)
    made = report_of(
        {"late": Model(), "window": Model(), "young": Model()}, 0, [alarm("late", predictions=change)]
    )
    details = {
        "late": {"late_labels": SETTLED},
        "window": {"late_labels": WINDOW},
        "young": {"late_labels": YOUNG, **QUICK},
    }
    server.publish(replace(made, details=details))
    page = await opened(f"{server.url}/#/model/late", unfolded=True)
    panel = page.locator("#model .panel", has=page.get_by_role("heading", name="Late labels", exact=True))
    await expect(panel).to_contain_text("corrected for labels to come")
    await expect(panel).to_contain_text("90.0\u202f% (88.0\u202f% – 92.0\u202f%)")
    await expect(panel).to_contain_text("\u22120.117")
    await expect(panel).to_contain_text("err more: 10.0\u202f% → 30.0\u202f%")
    await expect(panel).to_contain_text(
        re.compile(r"Delays have moved: those of hits 4\.0\sh instead of 3\.0\sh")
    )
    delays = page.locator(
        "#model .panel", has=page.get_by_role("heading", name="Share of labels that have arrived")
    )
    await expect(delays.locator("tbody tr")).to_have_count(6)
    await expect(delays.locator("tbody tr").last).to_contain_text("100.0\u202f%")
    await expect(page.locator("#model .alarms .change")).to_contain_text("predictions err more since about")

    await page.goto(f"{server.url}/#/model/window")
    await expect(panel).to_contain_text("hardly any label of a hit comes so soon; the settled accuracy holds")
    await expect(panel).to_contain_text("90.0\u202f% (88.0\u202f% – 92.0\u202f%)")

    await page.goto(f"{server.url}/#/model/young")
    shown = page.locator("#model .caveat")
    await expect(shown).to_contain_text(
        "Only quick labels are in so far (424 of 1,829, all “<b>fraud</b>”): many predictions"
    )
    await expect(panel).to_contain_text("Undefined until 30 predictions are settled")
    await expect(delays).to_have_count(0)


async def test_every_number_of_late_labels_is_seen_beside_another_panel(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(replace(report_of({"m": Model()}), details={"m": {"late_labels": SETTLED}}))
    page = await opened(f"{server.url}/#/model/m", unfolded=True, viewport={"width": 1_200, "height": 900})
    table = page.get_by_role("region", name="Late labels", exact=True)
    await expect(table).to_contain_text("bias of the visible accuracy")
    assert await table.evaluate("node => node.scrollWidth <= node.clientWidth")


async def test_how_late_errors_are_is_undefined_of_a_model_without_errors(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(replace(report_of({"m": Model()}), details={"m": {"late_labels": FLAWLESS}}))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    delays = page.get_by_role("region", name="Share of labels that have arrived")
    await expect(delays.locator("tbody tr").first.locator("td")).to_have_text(["–", "100.0\u202f%"])
