"""A page over a server in this process; whatever the browser complains of fails the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.chromium import DESKTOP, chromium
from tests.edge.web.http_faces import FakeHealth, serving

Opened = Callable[..., Awaitable[Page]]
SECTIONS = [
    *("alarms", "days", "charts", "segments", "classes", "labels", "early", "probabilities", "estimates"),
    "daemon",
]
UNFOLDED = f"localStorage.setItem('streamwatch-sections', '{json.dumps(SECTIONS)}')"
DETAILED = "localStorage.setItem('streamwatch-details', 'on')"
PATIENCE_MS = 120_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def health() -> FakeHealth:
    return FakeHealth()


@pytest_asyncio.fixture(loop_scope="session")
async def server(health: FakeHealth) -> AsyncIterator[HttpServer]:
    async with serving(health) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
def complaints() -> list[str]:
    """What the browser has complained of so far; a test that expects some clears them."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def opened(browser: Browser, complaints: list[str]) -> AsyncIterator[Opened]:
    """`await opened(url, color_scheme="dark")` is a page that shows it.

    With `unfolded`, every section was left open; with `details`, details were left switched on.
    """

    contexts: list[BrowserContext] = []

    def reported(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    async def open_page(url: str, *, unfolded: bool = False, details: bool = False, **context: Any) -> Page:
        opening = await browser.new_context(**{"viewport": DESKTOP, **context})
        contexts.append(opening)
        if unfolded:
            await opening.add_init_script(UNFOLDED)
        if details:
            await opening.add_init_script(DETAILED)
        page = await opening.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", reported)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(url)
        return page

    yield open_page
    for context in contexts:
        await context.close()
    assert complaints == []
