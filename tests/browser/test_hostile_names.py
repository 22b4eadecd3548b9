"""Models whose names try to be something else are shown as what they are called."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.async_api import expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import Model, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
NAMES = [
    ".",
    "..",
    "__proto__",
    "constructor",
    "<img src=x onerror=window.owned=1>",
    '"><script>window.owned=1</script>',
    "javascript:window.owned=1",
    "%2E%2E",
    "a/../../b?c#d",
    "\u202egnp.exe",
    "{{constructor.constructor('window.owned=1')()}}",
]


async def test_every_hostile_name_is_listed_and_has_its_page(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of({name: Model() for name in NAMES}))
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(len(NAMES))
    for name in NAMES:
        await page.goto(f"{server.url}/#/model/{quote(name, safe='')}")
        await expect(page.locator("h1", has_text=name)).to_be_visible()
        await expect(page.locator("#model .chart").first).to_be_visible()
        assert await page.locator("img[src=x]").count() == 0
        assert await page.evaluate("window.owned") is None
