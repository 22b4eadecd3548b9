"""The confusion matrix on a model's page: true classes down, predicted ones across."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
MATRIX = {
    "forgetting": "fading:0.999",
    "classes": ["fraud", "<b>legit</b>"],
    "counts": [[12.4, 3.0], [7.0, 958.6]],
}


async def test_a_models_page_has_its_matrix_and_one_without_has_none(
    server: HttpServer, opened: Opened
) -> None:
    report = report_of({"with": Model(), "without": Model()})
    server.publish(replace(report, details={"with": {"classes": MATRIX["classes"], "confusion": MATRIX}}))
    page = await opened(f"{server.url}/#/model/with", unfolded=True)
    panel = page.locator("#model section", has=page.get_by_role("heading", name="Confusion"))
    await expect(panel.locator("h2")).to_have_text("Confusion (fading:0.999)")
    assert await panel.locator("thead th").all_inner_texts() == ["true ↓ predicted →", *MATRIX["classes"]]
    assert await panel.locator("tbody tr").all_inner_texts() == ["fraud\t12\t3", "<b>legit</b>\t7\t959"]
    await page.goto(f"{server.url}/#/model/without")
    await expect(page.locator("#model h1")).to_have_text("without")
    await expect(page.locator("#model td")).not_to_have_count(0)
    await expect(page.get_by_role("heading", name="Confusion")).to_have_count(0)


async def test_a_matrix_of_one_class_says_what_its_row_and_its_column_are(
    server: HttpServer, opened: Opened
) -> None:
    matrix = {"forgetting": "fading:0.999", "classes": ["legit"], "counts": [[816.0]]}
    server.publish(replace(report_of({"m": Model()}), details={"m": {"confusion": matrix}}))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    panel = page.locator("#model section", has=page.get_by_role("heading", name="Confusion"))
    await expect(panel.locator("tbody tr")).to_have_count(1)
    assert await panel.locator("thead th").all_inner_texts() == ["true ↓ predicted →", "legit"]
