"""The page of folds: the API's means, tests and ranks, whatever models are called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
HOSTILE = '"><img src=x onerror=alert(1)> & co'
ACCURACIES = {
    "a": [0.9, 0.8, 0.85],
    HOSTILE: [0.7, 0.75, 0.72],
    "c": [0.5, 0.55, 0.6],
}


def details(names: list[str], shift: float = 0.0) -> dict[str, dict[str, object]]:
    return {
        name: {
            "folds": {
                "landmark": {str(f): value / 2 for f, value in enumerate(ACCURACIES[name])},
                "fading:0.999": {str(f): value + shift for f, value in enumerate(ACCURACIES[name])},
            }
        }
        for name in names
    }


def folded() -> Report:
    """A report of models that predict in folds."""
    return replace(report_of({name: Model() for name in ACCURACIES}), details=details(list(ACCURACIES)))


async def test_folds_are_shown_with_their_tests_and_follow_reports(
    server: HttpServer, opened: Opened
) -> None:
    report = report_of({name: Model() for name in ACCURACIES})
    server.publish(replace(report, details=details(list(ACCURACIES))))
    page = await opened(server.url)
    await page.get_by_role("link", name="Folds").click()
    await expect(page.locator("#model h1")).to_have_text("Folds")
    tables = page.locator("#model .tables table")
    await expect(tables).to_have_count(2)
    means = [text.replace("\u202f", "") for text in await tables.nth(0).locator("tbody tr").all_inner_texts()]
    assert means == [f"{HOSTILE}\t72.3%\t2.5%\t3", "a\t85.0%\t5.0%\t3", "c\t55.0%\t5.0%\t3"]
    pairs = await tables.nth(1).locator("tbody tr").all_inner_texts()
    assert pairs[-1] == "a – c\t+0.300\t3 – 0\t0.250\t6, 0\t0.250"
    await expect(page.locator("img.diagram")).to_have_attribute(
        "alt", f"Mean ranks: {HOSTILE} 2.00, a 1.00, c 3.00"
    )
    assert await page.locator("img.diagram").evaluate(
        "image => image.naturalWidth > 0 && image.naturalHeight > 0"
    )
    await page.locator("#model select").select_option("landmark")
    await expect(tables.nth(0).locator("tbody td").nth(3)).to_have_text("42.5\u202f%")
    await page.locator("#model select").select_option("fading:0.999")
    server.publish(
        replace(report_of({name: Model() for name in ACCURACIES}, 5), details=details(["a", "c"], 0.01))
    )
    await expect(page.locator("img.diagram")).to_have_count(0)
    await expect(tables.nth(0).locator("tbody tr")).to_have_count(2)
    await expect(tables.nth(0).locator("tbody td").nth(0)).to_have_text("86.0\u202f%")


async def test_without_folds_the_page_says_how_to_have_some(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of({"m": Model()}))
    page = await opened(f"{server.url}/#/folds")
    await expect(page.locator("#model .sentence")).to_contain_text("No model predicts in folds")
    await page.get_by_role("link", name="← All models").click()
    await expect(page.locator("#rows tr")).to_have_count(1)
