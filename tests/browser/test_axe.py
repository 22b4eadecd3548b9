"""axe-core finds nothing on any page, light and dark, on a desktop and on a phone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.server import HttpServer
from tests.browser.chromium import DESKTOP, PHONE
from tests.browser.conftest import Opened
from tests.browser.test_comparisons import compared
from tests.browser.test_folds import folded
from tests.edge.web.http_faces import Model, alarm, report_of, worse
from tests.edge.web.test_past import NOON_S, every, report_with_past
from tests.edge.web.test_trouble import changed_verdict, with_open_alarm

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
SCREENS = {
    "desktop light": {"viewport": DESKTOP, "color_scheme": "light"},
    "desktop dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone light": {"viewport": PHONE, "color_scheme": "light"},
    "phone dark": {"viewport": PHONE, "color_scheme": "dark"},
}


def troubled() -> Report:
    """Models of every kind of trouble, and one with a past."""
    models = {
        "m": Model(alarms=2),
        "poor": worse(Model()),
        "silent": Model(accuracy=0.8),
        "z": Model(accuracy=0.8),
    }
    made = report_of(models, 0, [changed_verdict("z"), alarm("m")])
    made = replace(made, details={"silent": {"nothing_joins": {"predictions": 9}}})
    made = with_open_alarm(made, "m")
    past = report_with_past(every(60, NOON_S - 7_200, NOON_S))
    return replace(made, pasts=past.pasts, history_days=past.history_days, published_ms=past.published_ms)


PAGES = {
    "": (troubled, "#rows tr"),
    "#/?group=on": (troubled, "#groups li"),
    "#/model/m": (troubled, "#model canvas"),
    "#/model/silent": (troubled, "#model canvas"),
    "#/comparisons": (compared, "#model table"),
    "#/folds": (folded, "#model table"),
    "docs": (troubled, "#schemas section"),
}


@pytest.mark.parametrize("everything", [False, True], ids=["first view", "everything open"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_axe_finds_nothing(
    server: HttpServer, opened: Opened, screen: str, *, everything: bool
) -> None:
    found: list[Any] = []
    shown_at_first = {path: PAGES[path] for path in PAGES if not everything or path in {"", "#/model/m"}}
    for path, (report, shown) in shown_at_first.items():
        server.publish(report())
        page = await opened(
            f"{server.url}/{path}",
            unfolded=everything,
            details=everything,
            reduced_motion="reduce",
            **SCREENS[screen],
        )
        await expect(page.locator(shown).first).to_be_visible()
        results = await Axe().run(page)
        found += [
            (path, violation["id"], [node["html"][:160] for node in violation["nodes"]][:3])
            for violation in results.response["violations"]
        ]
        await page.close()
    assert found == []
