"""The API's description as a page, and the list of routes: all there, from nowhere else."""

from __future__ import annotations

import aiohttp
import pytest
from playwright.async_api import expect

from streamwatch.assembly.http import ROUTES
from streamwatch.edge.web.openapi import document
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.browser.test_status_page import TOKEN
from tests.edge.web.http_faces import serving

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]


async def test_every_route_and_every_schema_is_on_the_page_and_links_lead_to_them(
    server: HttpServer, opened: Opened
) -> None:
    page = await opened(f"{server.url}/docs")
    described = document(ROUTES)
    await expect(page.locator("#schemas section")).to_have_count(len(described["components"]["schemas"]))
    headings = await page.locator("#operations h3").all_inner_texts()
    assert sorted(headings) == sorted(f"GET {path}" for path in described["paths"])
    past = page.get_by_role("region", name="/api/v1/models/{model}/past", exact=True)
    await past.get_by_role("link", name="Past", exact=True).click()
    await expect(page.get_by_role("region", name="Past", exact=True)).to_be_in_viewport()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.reload()
    await expect(page.locator("#schemas section").first).to_be_visible()
    assert {url.startswith(f"{server.url}/") for url in asked} == {True}


async def test_the_description_asks_for_the_token(opened: Opened, complaints: list[str]) -> None:
    async with serving(token=TOKEN) as server:
        page = await opened(f"{server.url}/docs")
        await page.get_by_role("textbox", name="Token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await expect(page.locator("#schemas section").first).to_be_visible()
        await page.close()
    assert all("401" in complaint for complaint in complaints)
    complaints.clear()


async def test_the_list_of_routes_names_every_one(server: HttpServer) -> None:
    async with aiohttp.ClientSession(server.url) as session, session.get("/api") as answer:
        listed = await answer.json()
    assert [route["path"] for route in listed["routes"]] == list(document(ROUTES)["paths"])
    assert (listed["docs"], listed["openapi"]) == ("/docs", "/api/v1/openapi.json")
