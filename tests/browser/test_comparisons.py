"""The page of comparisons: champions above challengers by lead, who was right alone, and Q over time."""

from __future__ import annotations

import re

import aiohttp
import pytest
from playwright.async_api import expect

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, MonitorsSpec
from streamwatch.edge.web.server import HttpServer
from tests.browser.conftest import Opened
from tests.edge.web.http_faces import BEGAN_MS, Model, families_of
from tests.edge.web.judged_pairs import judged

pytestmark = [pytest.mark.real("chromium"), pytest.mark.asyncio(loop_scope="session")]
INTERVAL = re.compile(r"since .* \((between .* and .*|.* at the latest)\)")
CHAMPION, BEST, EQUAL = "champ/1", "<b>best</b>", "equal"
SPEC = MonitorsSpec(comparisons=(ComparisonSpec(CHAMPION, ("*",)),), verdict_outcomes=2_000)


def pair(challenger: str, *, right: bool, champion_right: bool) -> Outcome:
    answers = {True: "yes", False: "no"}
    pairs = (PairedAnswer(CHAMPION, answers[champion_right]),)
    return Outcome(challenger, "yes", answers[right], BEGAN_MS, 0, pairs=pairs)


def grown(comparisons: ComparisonSet, pairs: int) -> None:
    """Of ten ids the champion misses three and one challenger one; the other misses three others."""
    comparisons.fold(pair(BEST, right=at % 10 > 0, champion_right=at % 10 > 2) for at in range(pairs))
    comparisons.fold(pair(EQUAL, right=at % 10 < 7, champion_right=at % 10 > 2) for at in range(pairs))


async def test_a_verdict_says_whether_it_is_certain(server: HttpServer, opened: Opened) -> None:
    models = families_of({name: Model() for name in ("old/1", "new")})
    sets = {
        "confirmed": judged("new", wins=30, losses=10),
        "in the order of labels so far": judged("new", wins=40, losses=0, pairs=3_000, late=True),
    }
    for words, comparisons in sets.items():
        server.publish(Report([*models, *comparisons.families()], BEGAN_MS, {}))
        page = await opened(f"{server.url}/#/comparisons")
        row = page.get_by_role("region", name="Challengers, by lead").locator("tbody tr").first
        await expect(row.locator(".badge")).to_have_text("Better")
        await expect(row).to_contain_text(words)
        if words == "confirmed":
            await expect(row).to_contain_text(INTERVAL)


def compared() -> Report:
    """A report in which two models are compared with a third."""
    comparisons = ComparisonSet(SPEC)
    grown(comparisons, 400)
    models = families_of({name: Model() for name in (CHAMPION, BEST, EQUAL)})
    return Report([*models, *comparisons.families()], BEGAN_MS, {})


async def test_the_page_has_champion_challengers_by_lead_discordance_and_q_over_time(
    server: HttpServer, opened: Opened
) -> None:
    comparisons = ComparisonSet(SPEC)
    models = families_of({name: Model() for name in (CHAMPION, BEST, EQUAL)})

    def publish(second: int) -> None:
        server.publish(Report([*models, *comparisons.families()], BEGAN_MS + 1_000 * second, {}))

    publish(0)
    page = await opened(server.url)
    await expect(page.locator("#rows tr")).to_have_count(3)  # until then the link moves, also below a pointer
    await page.get_by_role("link", name="Comparisons", exact=True).click()
    await expect(page.locator("#model h1")).to_have_text("Comparisons")
    await expect(page.locator("#model .empty")).to_contain_text("monitors.comparisons")
    await expect(page).to_have_title("Comparisons · streamwatch")

    for second in range(1, 6):
        grown(comparisons, 500)
        publish(second)
    group = page.locator(".comparison")
    await expect(group.locator("h2").first).to_have_text(f"Champion {CHAMPION}")
    rows = group.get_by_role("region", name="Challengers, by lead").locator("tbody tr")
    await expect(rows.locator("th")).to_have_text([BEST, EQUAL])  # as text: a name is never markup
    await expect(rows.nth(0)).to_contain_text("2,500")
    assert await rows.locator(".badge").all_inner_texts() == ["Better", "Open"]
    asked = f"{server.url}/api/v1/comparisons"
    async with aiohttp.ClientSession() as session, session.get(asked) as answer:
        reported = (await answer.json())["comparisons"]
    for row, document in zip(await rows.all(), reported, strict=True):
        cells = [text.replace("\u202f", "") for text in await row.locator("td").all_inner_texts()]
        found = document["measures"]["fading:0.999"]
        assert f"{found['challenger_error_ratio'] * 100:.1f}%" in cells
        assert f"{found['champion_error_ratio'] * 100:.1f}%" in cells
        assert f"{found['q']:+.3f}".replace("-", "−").replace("+0.000", "0.000") in cells

    # On 5 times 500 ids: of ten, two are the best one's alone; three are each other's.
    matrix = group.get_by_role("region", name="Ids on which only one is right").locator("tbody tr")
    assert await matrix.all_inner_texts() == [
        f"{CHAMPION}\t\t0\t750",
        f"{BEST}\t500\t\t–",
        f"{EQUAL}\t750\t–\t",
    ]
    chart = group.locator("figure", has=page.get_by_role("heading", name="Q over time"))
    await expect(chart.locator(".canvas")).to_have_attribute("aria-label", re.compile(EQUAL))
    await expect(page.locator("#comparison-rule")).to_contain_text("descriptive")

    await page.go_back()
    await expect(page.locator("#models-title")).to_be_visible()


async def test_the_theme_may_change_and_the_phone_shows_it_all(server: HttpServer, opened: Opened) -> None:
    comparisons = ComparisonSet(SPEC)
    grown(comparisons, 50)
    server.publish(Report(comparisons.families(), BEGAN_MS, {}))
    page = await opened(f"{server.url}/#/comparisons", viewport={"width": 390, "height": 800})
    await expect(page.locator(".comparison canvas")).to_have_count(1)
    await page.locator("#theme").click()
    await expect(page.locator(".comparison canvas")).to_have_count(1)
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
