"""The status page in a real browser: its numbers are the API's, its alarms prompt, its names harmless."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Page, expect

from streamwatch.edge.web.server import HttpServer
from tests.browser.chromium import PHONE
from tests.browser.conftest import Opened
from tests.cpu_budget import soon
from tests.edge.web.http_faces import BEGAN_MS, FADING, FakeHealth, Model, alarm, report_of, serving, worse
from tests.ports import free_port

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
TOKEN = "correct-horse-battery-staple"  # noqa: S105  # opens nothing but these tests
CAVEATS = {"first_horizon_ends_timestamp_seconds": BEGAN_MS / 1000 + 86_400.0, "labels_assumed_as": "legit"}
MODELS = {
    "better": Model(accuracy=0.9, persistent=0.8123, pending=1_234, alarms=2, last_alarm=BEGAN_MS / 1000),
    "open": Model(accuracy=0.81, outcomes=77),
    "worse": worse(Model(kappa_plus=0.0)),
}


async def api(server: HttpServer, path: str = "models") -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/api/v1/{path}") as answer:
        return await answer.json()


async def rows(page: Page) -> dict[str, dict[str, str]]:
    """Every model's cells by column, as a person reads them."""
    found: list[list[str]] = await page.locator("#rows tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.innerText))"
    )
    names = await page.locator("#headings th").evaluate_all(
        "cells => cells.map(c => c.className.split(' ')[0])"
    )
    return {
        row[0]: {name: text.replace("\u202f", "") for name, text in zip(names, row, strict=True)}
        for row in found
    }


def percent(value: float) -> str:
    return f"{value * 100:.1f}%"


async def test_the_numbers_are_those_of_the_api(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of(MODELS))
    page = await opened(server.url, details=True)
    await expect(page.locator("#rows tr")).to_have_count(3)
    shown, models = await rows(page), (await api(server))["models"]
    assert list(shown) == ["worse", "open", "better"]  # what needs a look comes first
    for name, row in shown.items():
        metrics = models[name]["metrics"]
        assert row["c-accuracy"].split()[0] == percent(metrics["accuracy_ratio"][FADING])
        bounds = metrics["accuracy_bound_ratio"]
        lower, upper = percent(bounds["hoeffding"][FADING]), percent(bounds["hoeffding_upper"][FADING])
        assert row["c-accuracy"].split("\n")[1] == f"{lower.rstrip('%')} – {upper}"
        for baseline, cell in (("persistent", "c-no-change"), ("majority", "c-majority")):
            assert row[cell] == percent(metrics["baseline_accuracy_ratio"][baseline][FADING])
        assert row["c-kappa_plus"] == f"{metrics['kappa_plus'][FADING]:.3f}"
        assert row["c-pending"] == f"{metrics['pending_predictions']:,}"
        assert row["c-outcomes"] == f"{metrics['outcomes_total']:,}"
        alarms = sum(metrics["alarms_total"].values())
        assert row["c-last-alarm"].endswith(f"{alarms} in all" if alarms else "none")
    stated = [row["c-verdict"].split("\n") for row in shown.values()]
    assert [words[0] for words in stated] == [
        "Worse than no change",
        "No clear difference",
        "Better than no change",
    ]
    assert [words[1][:6] if words[1:] else "" for words in stated] == ["since ", "", "since "]
    assert shown["better"]["c-delay"] == "≤5.0s\n90 %: 5.0s"


async def test_a_report_and_its_alarm_are_there_within_two_seconds(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of(MODELS))
    page = await opened(server.url, details=True)
    await expect(page.locator("#rows tr")).to_have_count(3)
    raised = alarm("better", 3, event_ms=round(time.time() * 1000))
    changed = Model(accuracy=0.7, alarms=3, last_alarm=raised.event_ms / 1000)
    row = page.locator("#rows tr", has_text="better")

    async def both_shown() -> bool:
        alarms = await page.locator("#alarms li").all_inner_texts()
        return any("better" in text for text in alarms) and "3 in all" in await row.inner_text()

    async def same_way() -> None:
        await page.evaluate("fetch('/healthz').then(() => new Promise(requestAnimationFrame)).then(() => 0)")

    server.publish(report_of({**MODELS, "better": changed}, 1, [raised]))
    await soon(2.0, both_shown, same_way)
    assert "2.0\u202f% → 31.0\u202f%" in await page.locator("#alarms li").inner_text()
    await expect(page.locator("#announcer")).to_have_text(re.compile("^Alarm: better, adwin, error"))
    assert await page.locator("#announcer").get_attribute("aria-live") == "polite"
    assert (await rows(page))["better"]["c-accuracy"].startswith("70.0%")


async def test_one_model_s_view_has_its_charts_and_every_estimate(server: HttpServer, opened: Opened) -> None:
    for second in range(5):
        server.publish(report_of({"m": Model(accuracy=0.9 - second / 50, alarms=second // 3)}, second))
        await until_observed(server, "m", second + 1)
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    charts = page.get_by_role("img")
    await expect(charts).to_have_count(6)
    described = [await chart.get_attribute("aria-label") or "" for chart in await charts.all()]
    assert re.search(
        r"^Accuracy from .* to .*Latest: .*accuracy 82\.0\u202f%, no change 80\.0.*; 1 alarm\.$", described[0]
    )
    assert re.search(
        r"^Accuracy under each forgetting .*landmark 41\.0.*fading:0\.999 82\.0\u202f%", described[1]
    )
    assert "κ⁺ 0.500" in described[2]
    assert re.search(r"^Share of each class .*fraud 10\.0\u202f%, legit 90\.0\u202f%", described[3])
    assert re.search(r"^Recall of each class .*fraud 82\.0\u202f%", described[4])
    assert re.search(r"^Detector adwin .*statistic 0\.0911.*threshold 0\.2", described[5])
    drawn = "node => node.getContext('2d').getImageData(0, 0, node.width, node.height).data.some(v => v)"
    assert await page.locator("canvas").first.evaluate(drawn)
    estimates = (
        page.get_by_role("region", name="Estimates")
        .get_by_role("row")
        .filter(has_text="Share of outcomes the model got right")
    )
    metrics = (await api(server, "models/m"))["metrics"]
    assert percent(metrics["accuracy_ratio"][FADING]) in (await estimates.inner_text()).replace("\u202f", "")
    await expect(page.get_by_role("region", name="Classes").get_by_role("row")).to_have_count(3)

    server.publish(report_of({"m": Model(accuracy=0.5)}, 9))
    await expect(charts.first).to_have_attribute("aria-label", re.compile(r"accuracy 50\.0"))
    await expect(estimates).to_contain_text("50.0")
    await page.get_by_role("link", name="All models").click()
    await expect(page.get_by_role("heading", name="Models")).to_be_visible()


async def until_observed(server: HttpServer, model: str, points: int) -> None:
    async with asyncio.timeout(300):
        while len((await api(server, f"models/{model}/history")).get("timestamps", ())) < points:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_no_name_becomes_markup_and_every_name_has_its_view(server: HttpServer, opened: Opened) -> None:
    hostile = """<img src=x onerror="document.title='owned'">/%2F?#&'"""
    server.publish(report_of({hostile: Model()}, 0, [alarm(hostile)]))
    page = await opened(server.url)
    await page.locator("#rows a").click()
    await expect(page.locator("#model h1")).to_have_text(hostile)
    await expect(page.get_by_role("img")).to_have_count(1)
    assert await page.title() != "owned"
    assert await page.locator("main img").count() == 0


async def test_models_are_sorted_and_filtered_from_the_keyboard(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of({f"m{n}": Model(outcomes=100 + (n * 7) % 10) for n in range(10)}))
    page = await opened(server.url, details=True)
    await expect(page.locator("#rows tr")).to_have_count(10)
    await page.get_by_role("button", name="Outcomes").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("columnheader", name="Outcomes")).to_have_attribute(
        "aria-sort", "descending"
    )
    await expect(page.locator("#rows tr").first).to_contain_text("m7")
    await page.keyboard.press("Enter")
    await expect(page.locator("#rows tr").first).to_contain_text("m0")
    await page.get_by_role("searchbox").fill("M3")
    await expect(page.locator("#rows tr")).to_have_count(1)
    await page.get_by_role("searchbox").fill("none of them")
    await expect(page.get_by_text("No model's name contains")).to_be_visible()


async def test_a_focused_row_keeps_the_focus_while_rows_change_positions(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of({"a": Model(outcomes=1), "b": Model(outcomes=2), "c": Model(outcomes=3)}))
    page = await opened(server.url, details=True)
    await page.get_by_role("button", name="Outcomes").click()
    await expect(page.locator("#rows tr").first).to_contain_text("c")
    await page.get_by_role("link", name="a", exact=True).focus()
    server.publish(report_of({"a": Model(outcomes=9), "b": Model(outcomes=2), "c": Model(outcomes=3)}, 1))
    await expect(page.locator("#rows tr").first).to_contain_text("a")
    await expect(page.get_by_role("link", name="a", exact=True)).to_be_focused()


async def test_before_the_first_labels_the_page_says_what_it_waits_for(
    server: HttpServer, health: FakeHealth, opened: Opened
) -> None:
    health.reasons = ["the estimators are being compiled"]
    page = await opened(server.url)
    await expect(page.locator("#no-models")).to_contain_text(
        "Not ready yet: the estimators are being compiled"
    )
    health.reasons = []
    server.publish(report_of({}))
    await expect(page.locator("#no-models")).to_contain_text("Waiting for the first predictions")
    await expect(page.get_by_text("No alarm yet")).to_be_visible()
    server.publish(report_of({"m": Model()}, 1))
    await expect(page.locator("#no-models")).to_be_hidden()
    await expect(page.locator("#rows tr")).to_have_count(1)


async def test_a_lost_connection_is_reported_not_shown_as_ready_and_comes_back_by_itself(
    opened: Opened, complaints: list[str]
) -> None:
    async with serving(listen=f"127.0.0.1:{free_port()}") as first:
        listen = first.url.removeprefix("http://")
        first.publish(report_of({"m": Model()}))
        page = await opened(first.url)
        await expect(page.locator("#rows tr")).to_have_count(1)
        await expect(page.locator("#chips")).to_contain_text("ready")
    await expect(page.get_by_role("alert")).to_contain_text("The connection was lost")
    await expect(page.locator("#chips li")).to_have_text(["no answer"])
    await expect(page.locator("#health dd").first).to_have_text("no answer")
    await expect(page).to_have_title("No connection · streamwatch")
    await expect(page.locator("#connection")).to_have_text("reconnecting…")
    async with serving(listen=listen) as second:
        second.publish(report_of({"m": Model(), "n": Model()}, 5))
        await expect(page.locator("#rows tr")).to_have_count(2)
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.locator("#connection")).to_contain_text("live")
        await expect(page.locator("#chips")).to_contain_text("ready")
        await expect(page).to_have_title("streamwatch")
        await page.close()
    assert all("ERR_" in complaint for complaint in complaints)
    complaints.clear()


async def test_the_token_is_asked_for_and_forgotten_with_the_tab(
    opened: Opened, complaints: list[str]
) -> None:
    async with serving(token=TOKEN) as server:
        server.publish(report_of(MODELS))
        page = await opened(server.url)
        field = page.get_by_role("textbox", name="Token")
        await field.fill("something else entirely")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("That token was not accepted")).to_be_visible()
        assert await page.locator("#rows tr").count() == 0
        await field.fill(TOKEN)
        await page.get_by_role("button", name="Show the numbers").click()
        await expect(page.locator("#rows tr")).to_have_count(3)
        await expect(page.locator("#health")).to_contain_text("reachable")
        await page.locator("#rows a").first.click()
        await expect(page.get_by_role("img")).to_have_count(1)
        assert TOKEN not in await page.evaluate("JSON.stringify(localStorage) + document.cookie + location")
        await page.close()
    assert all("401" in complaint for complaint in complaints)
    complaints.clear()


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("view", ["", "#/model/better"])
async def test_a_phone_shows_everything_without_scrolling_sideways(
    server: HttpServer, opened: Opened, view: str, *, details: bool
) -> None:
    server.publish(report_of({**MODELS, "a-model-with-a-name-that-is-far-too-long-for-it" * 2: Model()}))
    page = await opened(f"{server.url}/{view}", viewport=PHONE, unfolded=True, details=details)
    await expect(page.get_by_role("img") if view else page.locator("#rows tr")).to_have_count(
        6 if view else 4
    )
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if not view:
        assert await page.get_by_role("table").get_by_role("row").count() == 5  # cards are still a table
        await page.get_by_label("Sort by").select_option("Model")
        await expect(page.locator("#rows tr").last).to_contain_text("worse")


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("width", [1_920, 1_440, 1_425, 1_424, 1_090, 901])
async def test_no_column_is_cut_off_at_any_width(
    server: HttpServer, opened: Opened, width: int, *, details: bool
) -> None:
    wide = Model(outcomes=98_765_432, pending=123_456, alarms=12_345, last_alarm=BEGAN_MS / 1000)
    name = "a-model-with-a-name-that-is-far-too-long-for-it" * 2
    server.publish(replace(report_of({name: wide}), details={name: CAVEATS}))
    page = await opened(server.url, viewport={"width": width, "height": 900}, details=details)
    await expect(page.locator("#rows tr")).to_have_count(1)
    beyond: list[str] = await page.locator("#models").evaluate(
        """table => [...table.querySelectorAll("th, td")]
          .filter(cell => cell.scrollWidth > cell.clientWidth + 1
            || cell.getBoundingClientRect().right > table.getBoundingClientRect().right)
          .map(cell => `${cell.innerText} ${cell.scrollWidth} ${cell.clientWidth}`)"""
    )
    assert beyond == [], width


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_has_enough_contrast(server: HttpServer, opened: Opened, scheme: str) -> None:
    server.publish(replace(report_of(MODELS, 0, [alarm("better")]), details={"better": CAVEATS}))
    page = await opened(server.url, color_scheme=scheme, details=True, unfolded=True)
    await expect(page.locator("#rows tr")).to_have_count(3)
    least: list[Any] = await page.evaluate(CONTRAST)
    assert least[0] >= 4.5, least
    await page.get_by_role("button", name="Theme").click()  # automatic → light
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")


CONTRAST = """() => {
  const parsed = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3)
    .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("dialog, noscript, svg")) continue;
    const [a, b] = [luminance(parsed(getComputedStyle(node).color)), luminance(behind(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least[0]) least = [contrast, node.outerHTML.slice(0, 120)];
  }
  return least;
}"""


async def test_nothing_moves_for_who_wants_no_motion(server: HttpServer, opened: Opened) -> None:
    page = await opened(server.url, reduced_motion="reduce")
    server.publish(report_of({"m": Model()}))
    await expect(page.locator("#rows tr")).to_have_count(1)
    server.publish(report_of({"m": Model(outcomes=2)}, 1, [alarm("m")]))
    await expect(page.locator("#alarms li")).to_have_count(1)
    assert await page.locator("#alarms li").evaluate("node => getComputedStyle(node).animationName") == "none"
