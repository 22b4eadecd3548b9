"""The page by keyboard and screen reader, on a phone, in any time zone, and while no daemon answers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from streamwatch.core.metrics import family, single
from streamwatch.edge.web.server import HttpServer
from tests.browser.chromium import DESKTOP, PHONE
from tests.browser.conftest import Opened
from tests.browser.test_status_page import MODELS, until_observed
from tests.edge.web.http_faces import FakeHealth, Model, alarm, report_of

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]

FOCUSED = """() => {
  const node = document.activeElement;
  if (node === document.body) return null;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  const ring = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
  let seen = node.checkVisibility({ visibilityProperty: true }) && box.width > 1 && box.height > 1;
  for (let at = node.parentElement; at; at = at.parentElement) {
    if (getComputedStyle(at).overflowX === "visible") continue;
    const around = at.getBoundingClientRect();
    if (box.left - ring < around.left || box.right + ring > around.right) seen = false;
    if (box.top - ring < around.top) seen = false;
  }
  return [node.innerText || node.id, seen];
}"""
"""The name of what has the focus, and whether it and its ring can be seen whole."""


async def stops(page: Page) -> list[tuple[str, bool]]:
    """What Tab comes to, from the first to the last."""
    found: list[tuple[str, bool]] = []
    while len(found) < 100:
        await page.keyboard.press("Tab")
        stop = await page.evaluate(FOCUSED)
        if stop is None:
            break
        found.append((stop[0], stop[1]))
    return found


@pytest.mark.parametrize("width", [1_440, 700, 390])
async def test_tab_goes_from_top_to_bottom_and_its_ring_is_always_seen(
    server: HttpServer, opened: Opened, width: int
) -> None:
    server.publish(report_of(MODELS, 0, [alarm("better"), alarm("open")]))
    page = await opened(server.url, viewport={"width": width, "height": 900})
    await expect(page.locator("#alarms li")).to_have_count(2)
    found = await stops(page)
    assert [name for name, seen in found if not seen] == []
    names = [name for name, _ in found]
    assert names[0] == "Skip to the numbers"
    order = ["streamwatch", "Details", "filter", "worse", "better", "Metrics", "Ready?"]
    assert sorted(order, key=names.index) == order


async def test_who_comes_back_from_a_model_is_where_they_left(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of(MODELS))
    page = await opened(server.url)
    link = page.locator("#rows").get_by_role("link", name="better")
    await link.press("Enter")
    await expect(page.get_by_role("heading", name="better")).to_be_focused()
    await page.get_by_role("link", name="All models").press("Enter")
    await expect(link).to_be_focused()


async def test_headings_verdicts_and_buttons_are_read_out_by_their_names(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of(MODELS))
    page = await opened(server.url)
    table = page.get_by_role("table", name="Models")
    judged = table.get_by_role("columnheader", name="Better than no change?", exact=True)
    await expect(judged).to_have_attribute("aria-sort", "ascending")
    for verdict in ("Better than no change", "Worse than no change", "No clear difference"):
        await expect(table.get_by_role("cell", name=re.compile(f"^{verdict}( since .+)?$"))).to_have_count(1)
    line = table.get_by_role("row", name="worse").get_by_role("img")
    await expect(line).to_have_attribute(
        "aria-label", re.compile("^Accuracy over the last |^No accuracy yet")
    )
    for viewport in (DESKTOP, PHONE):
        await page.set_viewport_size(viewport)  # type: ignore[arg-type]
        await expect(page.get_by_role("button", name="Theme: automatic")).to_be_visible()
        await expect(table.get_by_role("columnheader")).to_have_count(7)
        await expect(table.get_by_role("columnheader", name="Accuracy", exact=True)).to_have_count(1)


async def test_a_phone_has_room_for_the_filter_and_the_theme_beside_the_name(
    server: HttpServer, health: FakeHealth, opened: Opened
) -> None:
    health.reasons = ["the estimators are being compiled"]
    page = await opened(server.url, viewport=PHONE)
    await expect(page.locator("#no-models")).to_contain_text("Not ready yet")
    boxes = {name: await page.locator(name).bounding_box() for name in ("#filter", ".brand", "#theme")}
    field, brand, theme = (box for box in boxes.values() if box)
    assert field["width"] >= 140, "what it is for must be readable"
    assert theme["y"] < brand["y"] + brand["height"]
    health.reasons = []
    server.publish(report_of(MODELS))
    await expect(page.locator("#connection")).to_contain_text("live ·")
    header = ("#connection", "#chips", "#theme", ".brand")
    tops = [box["y"] for name in header if (box := await page.locator(name).bounding_box())]
    assert tops[0] > brand["y"] + brand["height"] - 1, "on a line of its own, however long it gets"
    assert tops[1] > tops[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_fields_and_what_they_ask_for_can_be_made_out(
    server: HttpServer, opened: Opened, scheme: str
) -> None:
    page = await opened(server.url, color_scheme=scheme)
    colours: list[str] = await page.locator("#filter").evaluate(
        """field => [getComputedStyle(field).backgroundColor, getComputedStyle(document.body).backgroundColor,
          getComputedStyle(field).borderTopColor, getComputedStyle(field, "::placeholder").color]"""
    )
    inside, around, border, text = map(luminance, colours)
    assert contrast(text, inside) >= 4.5
    assert min(contrast(border, inside), contrast(border, around)) >= 3.0


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(a: float, b: float) -> float:
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


async def test_times_say_their_zone(server: HttpServer, opened: Opened) -> None:
    server.publish(report_of(MODELS, 0, [alarm("better")]))
    await until_observed(server, "better", 1)
    server.publish(report_of(MODELS, 1, [alarm("better")]))
    page = await opened(server.url, timezone_id="Asia/Kolkata", details=True)
    await expect(page.locator("#alarms time")).to_have_attribute("datetime", "2025-10-09T08:53:20.000Z")
    await expect(page.locator("#alarms time")).to_contain_text("14:23:20")
    await expect(page.locator("#alarms-meaning")).to_contain_text("in GMT+5:30")
    await expect(page.locator("footer")).to_contain_text("Times in GMT+5:30, UTC beside them")
    utc = re.compile(r"14:23:2[01] GMT\+5:30 \(08:53:2[01] UTC\)$")
    for selector in ("#alarms time", "#connection", "#rows .c-last-alarm[title]"):
        await expect(page.locator(selector).first).to_have_attribute("title", utc)
    await expect(page.locator("#health dd[title]").last).to_have_attribute("title", utc)
    await expect(page.locator("#rows .minor[title]").first).to_have_attribute("title", utc)
    await page.locator("#rows").get_by_role("link", name="better").click()
    await expect(page.get_by_role("img").first).to_have_attribute(
        "aria-label", re.compile(r"from 14:23:20 \(08:53:20 UTC\) to 14:23:21 \(08:53:21 UTC\)")
    )
    await expect(page.locator(".chart-legend").first).to_contain_text("at 9 Oct, 14:23:21 (08:53:21 UTC)")
    since = page.locator("#model .since")
    await expect(since).to_have_text("Since 9 Oct, 14:23:20 (08:53:20 UTC).")
    await expect(page.locator("#model .sentence.detail")).to_contain_text("holds since outcome 17")


async def test_another_day_in_utc_is_stated_and_utc_itself_is_not_stated_twice(
    server: HttpServer, opened: Opened
) -> None:
    late = alarm("better", event_ms=1_760_050_800_000)  # 23:00 UTC, the next day in Kolkata
    server.publish(report_of(MODELS, 0, [late]))
    shown = "#alarms time"
    page = await opened(server.url, timezone_id="Asia/Kolkata")
    await expect(page.locator(shown)).to_have_text("10 Oct, 04:30:00")
    await expect(page.locator(shown)).to_have_attribute("title", re.compile(r"\(9 Oct, 23:00:00 UTC\)$"))
    page = await opened(server.url, timezone_id="UTC")
    await expect(page.locator(shown)).to_have_attribute("title", re.compile(r"23:00:00 UTC$"))


async def test_charts_and_tables_tell_the_same_where_the_past_leaves_the_latest_report_out(
    server: HttpServer, opened: Opened
) -> None:
    server.publish(report_of({"m": Model(accuracy=0.9)}))
    await until_observed(server, "m", 1)
    server.publish(report_of({"m": Model(accuracy=0.7)}, 0.5))
    page = await opened(f"{server.url}/#/model/m", unfolded=True)
    estimates = (
        page.get_by_role("region", name="Estimates")
        .get_by_role("row")
        .filter(has_text="Share of outcomes the model got right")
    )
    await expect(estimates).to_contain_text("70.0")
    chart = page.locator("figure", has=page.get_by_role("heading", name="Accuracy", exact=True))
    await expect(chart.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"accuracy 70\.0"))
    await expect(chart.get_by_role("listitem").filter(has_text="accuracy")).to_contain_text("70.0")


async def test_a_model_nobody_has_seen_is_reported_to_be_unknown(
    server: HttpServer, opened: Opened, complaints: list[str]
) -> None:
    server.publish(report_of(MODELS))
    page = await opened(f"{server.url}/#/model/fruad-v3")
    await expect(page.locator("#model")).to_contain_text(
        "No model named “fruad-v3” has been evaluated, and none of its predictions is waiting"
    )
    await page.close()
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


async def test_a_topic_whose_records_join_nothing_is_seen(server: HttpServer, opened: Opened) -> None:
    topics = [
        family("topic_predictions_total", [(("scored",), 1_000.0), (("retried",), 20.0)]),
        family("topic_predictions_joined_total", [(("scored",), 940.0)]),
        family("topic_labels_total", [(("outcomes",), 950.0), (("<b>",), 0.0)]),
        family(
            "topic_label_results_total",
            [(("joined", "outcomes"), 940.0), (("orphaned", "outcomes"), 10.0)],
        ),
    ]
    report = report_of({"m": Model()})
    server.publish(replace(report, families=[*report.families, *topics]))
    page = await opened(server.url, unfolded=True)
    await expect(page.locator("#health dt", has_text="Predictions of topic scored")).to_have_count(1)
    shown = await page.locator("#health").evaluate(
        "facts => Object.fromEntries([...facts.querySelectorAll('dt')].map("
        "dt => [dt.innerText, dt.nextElementSibling.innerText.replaceAll('\u202f', '')]))"
    )
    assert {name: text for name, text in shown.items() if " of " in name} == {
        "Predictions of topic retried": "0.0% of 20 joined",
        "Predictions of topic scored": "94.0% of 1,000 joined",
        "Labels of topic <b>": "none",
        "Labels of topic outcomes": "98.9% of 950 joined",
    }


async def test_many_predictions_of_ids_that_were_predicted_before_are_reported(
    server: HttpServer, opened: Opened
) -> None:
    report = report_of({"m": Model()})
    counts = {"accepted": 700.0, "duplicate": 572.0, "conflict": 128.0}
    repeated = [single(f"predictions_{name}_total", count) for name, count in counts.items()]
    server.publish(replace(report, families=[*report.families, *repeated]))
    page = await opened(server.url)
    reported = re.compile(r"\d\s?% of predictions repeat an id: two models with one name\?")
    await expect(page.locator("#chips")).to_contain_text(reported)
    counts |= {"duplicate": 4.0, "conflict": 3.0}
    seldom = [single(f"predictions_{name}_total", count) for name, count in counts.items()]
    server.publish(replace(report, families=[*report.families, *seldom]))
    await expect(page.locator("#chips")).not_to_contain_text("repeat an id")
    await expect(page.locator("#health")).to_contain_text("Predictions repeated")


async def test_nothing_is_claimed_of_kafka_and_state_before_the_state_is_open(
    server: HttpServer, health: FakeHealth, opened: Opened
) -> None:
    health.reasons = ["the estimators are being compiled"]
    health.facts = {"kafka_up": 0.0, "caught_up": 0.0, "state_durable": 0.0}
    page = await opened(server.url)
    await expect(page.locator("#chips li")).to_have_text(["the estimators are being compiled"])
    await expect(page.locator("#health")).not_to_contain_text("unreachable")
    await expect(page.locator("#health")).not_to_contain_text("in memory")
    health.facts |= {"commits_total": 0.0}
    health.reasons = ["Kafka cannot be reached"]
    await expect(page.locator("#health")).to_contain_text("unreachable")
    await expect(page.locator("#chips")).to_contain_text("state in memory only")
