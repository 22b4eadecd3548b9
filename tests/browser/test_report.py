"""The page that `streamwatch report` writes, in Chromium without a network: whole, for everybody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from streamwatch.cli import app
from streamwatch.edge.daemon_api import Address
from streamwatch.edge.web.server import HttpServer
from streamwatch.history.reporting.page import page
from streamwatch.history.reporting.sources import from_daemon
from streamwatch.history.reporting.writing import html
from tests.browser.chromium import DESKTOP, PHONE
from tests.browser.test_axe import troubled
from tests.browser.test_comparisons import compared
from tests.commands import CliRunner

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
SCREENS = {"desktop light": (DESKTOP, "light"), "desktop dark": (DESKTOP, "dark"), "phone": (PHONE, "light")}


def scored_lines(folder: Path) -> Path:
    """Outcomes of a model that falls, with scores, as a daemon would have joined them."""
    file = folder / "scored.csv"
    rows = ["id,model,prediction,label,timestamp"]
    for i in range(1_200):
        label = "ab"[(i // 3) % 2]
        wrong = i % 10 == 0 or (i > 800 and i % 2 == 0)
        rows.append(f"{i},<b>m</b>,{'ba'[(i // 3) % 2] if wrong else label},{label},{1_760_000_000_000 + i}")
    file.write_text("\n".join(rows) + "\n")
    return file


async def looked_at(browser: Browser, file: Path) -> None:
    """Open a file offline on every screen: nothing is asked for, pictures are drawn, axe finds nothing."""
    for name, (viewport, scheme) in SCREENS.items():
        opening = await browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
        shown = await opening.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        shown.on("console", lambda message, stated=complaints: stated.append(message.text))
        shown.on("request", lambda request, stated=asked: stated.append(request.url[:60]))
        await shown.goto(file.as_uri())
        await expect(shown.locator("h1")).to_be_visible()
        loaded = await shown.evaluate("[...document.images].map(i => i.naturalWidth > 100)")
        results: Any = await Axe().run(shown)
        assert [violation["id"] for violation in results.response["violations"]] == [], name
        assert all(loaded), name
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        wide = await shown.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 1, f"{name}: the page is {wide} px too wide"
        await opening.close()
        assert [each for each in complaints if "axe" not in each] == []


async def test_the_page_of_a_replay_needs_no_network(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    arguments = ["report", str(scored_lines(tmp_path)), "-o", str(file)]
    made = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert made.exit_code == 0, made.output
    await looked_at(browser, file)


@pytest.mark.parametrize("report", [troubled, compared])
async def test_the_page_of_an_api_needs_no_network(
    report: Any, server: HttpServer, browser: Browser, tmp_path: Path
) -> None:
    server.publish(report())
    source = await asyncio.to_thread(from_daemon, Address(server.url), {"streamwatch": "0"})
    assert set(source.models)
    file = tmp_path / "report.html"
    file.write_text(html(page(source)), encoding="utf-8")
    await looked_at(browser, file)
